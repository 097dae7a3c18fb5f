//! The masters of a cluster, each with separate connections, and the slots of each.

pub(super) mod condition;

use super::address::MemberAddress;
use super::redirection::Redirect;
use super::routes::Routes;
use super::seeds::Seeds;
use super::settled::Settled;
use super::slot_map::{MOST_MASTERS, SlotMap};
use super::view::View;
use crate::error::NodeError;
use crate::lock::slot::slot_of;
use crate::node::environment::Environment;
use crate::node::redis::RedisNode;
use crate::node::redis::live_connection::LiveConnection;
use crate::node::redis::progress::Progress;
use crate::node::server_identity::Identity;
use crate::node::{BackgroundThread, Node};
use crate::protocol::command::{Deliver, Notice, Wakeup};
use crate::stats::NodeStats;
use crate::time::clock::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Notify;

/// Maximum number of servers outside of the map that members can redirect commands to (`MOVED`, `ASK`). Too small: calls fail while the
/// slots of many members move to new ones at the same time. Too large: a malicious member makes every process open that many connections,
/// each with the login.
pub(super) const MOST_REDIRECTED: usize = 64;

/// Maximum number of members with connections. A map has at most half of them; the rest is for members of earlier maps.
const MOST_KNOWN: usize = 2 * MOST_MASTERS + MOST_REDIRECTED;

/// A member that accepts commands.
pub(super) type Member = Arc<RedisNode>;

/// All known members of one cluster.
pub(super) struct Members {
    pub(super) seeds: Seeds,
    /// The step that the connection to a seed has reached, while a seed is queried for the map.
    pub(super) progress: Progress,
    environment: Environment,
    thread: Arc<BackgroundThread>,
    /// The runtime that the manager was built on.
    host: Option<Handle>,
    this: Weak<Self>,
    /// Creates the forwarder for commands that the member at an address refuses.
    redirect: fn(&Weak<Self>, &MemberAddress) -> Arc<dyn Redirect>,
    state: RwLock<State>,
    /// Notified when the map is outdated.
    pub(super) wanted: Notify,
    /// The member that took over a slot last, according to redirections: it knows more than the others.
    best_informed: Mutex<Option<MemberAddress>>,
    /// `true` if wake-ups are wanted; it never becomes `false` again.
    is_listening: AtomicBool,
    /// Tracks if claims are a proof.
    pub(super) settled: Settled,
    /// Counters of the members that were disconnected.
    gone: Mutex<NodeStats>,
}

struct State {
    routes: Arc<Routes<Member>>,
    /// The latest map; `None` before the first one.
    map: Option<Arc<SlotMap>>,
    /// The newest epoch known to the member that reported the map.
    epoch: u64,
    /// `true` if the cluster is healthy, according to that member.
    is_well: bool,
    /// Every master, and the other members that recently received redirected commands.
    known: BTreeMap<MemberAddress, Known>,
    /// Reason why there is no map.
    trouble: Option<NodeError>,
}

struct Known {
    member: Member,
    /// `true` if a command was redirected to the member since the last check.
    is_used: AtomicBool,
    /// `true` if another member was the first to name it, and not a map.
    is_redirected: bool,
}

/// Source of the first mention of a member.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Map,
    Redirection,
}

impl Members {
    pub(super) fn new(
        seeds: Seeds,
        environment: Environment,
        thread: Arc<BackgroundThread>,
        host: Option<Handle>,
        redirect: fn(&Weak<Self>, &MemberAddress) -> Arc<dyn Redirect>,
    ) -> Arc<Self> {
        let (routes, known) = (Arc::new(Routes::nowhere()), BTreeMap::new());
        let state = State { routes, map: None, epoch: 0, is_well: true, known, trouble: None };
        let settled = Settled::new(environment.servers.clock);
        Arc::new_cyclic(|this| Self {
            seeds,
            progress: Progress::default(),
            environment,
            thread,
            host,
            this: this.clone(),
            redirect,
            state: RwLock::new(state),
            wanted: Notify::new(),
            best_informed: Mutex::default(),
            is_listening: AtomicBool::new(false),
            settled,
            gone: Mutex::default(),
        })
    }

    /// Returns the routes: the member that serves each slot.
    pub(super) fn routes(&self) -> Arc<Routes<Member>> {
        self.read(|state| Arc::clone(&state.routes))
    }

    /// Returns the latest slot map.
    pub(super) fn map(&self) -> Option<Arc<SlotMap>> {
        self.read(|state| state.map.clone())
    }

    /// Returns the newest epoch that members have reported.
    pub(super) fn epoch(&self) -> u64 {
        self.read(|state| state.epoch)
    }

    /// Returns the members that have lost some of their slots in `map`.
    pub(super) fn losers(&self, map: &SlotMap) -> Vec<(MemberAddress, Member)> {
        let Some(before) = self.map() else { return Vec::new() };
        let losers = before.losers(map);
        self.read(|state| {
            let known = losers.into_iter().filter_map(|at| state.known.get_key_value(at));
            known.map(|(at, known)| (at.clone(), Arc::clone(&known.member))).collect()
        })
    }

    /// Returns all members that may have a connection: first the member with the newest knowledge of the slots, then the others in random
    /// order.
    pub(super) fn informants(&self) -> Vec<Member> {
        let best = self.best_informed.lock().unwrap_or_else(PoisonError::into_inner).take();
        let known: Vec<_> =
            self.read(|state| state.known.iter().map(|(at, known)| (at.clone(), Arc::clone(&known.member))).collect());
        let (first, mut others): (Vec<_>, Vec<_>) = known.into_iter().partition(|(at, _)| Some(at) == best.as_ref());
        fastrand::shuffle(&mut others);
        first.into_iter().chain(others).map(|(_, member)| member).collect()
    }

    /// Returns the addresses of all known members.
    pub(super) fn addresses(&self) -> Vec<MemberAddress> {
        self.read(|state| state.known.keys().cloned().collect())
    }

    /// Returns the notifier for changes of a member's status.
    pub(super) fn changed(&self) -> &Notify {
        &self.environment.changed
    }

    /// Requests a new map. `knows` has a slot that another member had before.
    pub(super) fn request_map(&self, knows: Option<MemberAddress>) {
        if knows.is_some() {
            *self.best_informed.lock().unwrap_or_else(PoisonError::into_inner) = knows;
        }
        self.wanted.notify_one();
    }

    /// Installs a new map. If it `is_regular`, it was requested without a special reason, and members that are missing in it are
    /// disconnected. `lost` are members that have lost slots and did not answer.
    ///
    /// # Errors
    /// [`NodeError::SameServer`] if another node is this cluster.
    pub(super) fn learn(&self, view: View, is_regular: bool, lost: &BTreeSet<MemberAddress>) -> Result<(), NodeError> {
        let (View { map, is_well, epoch }, servers, label) = (view, &self.environment.servers, self.seeds.label());
        servers.register_cluster(label, map.ids())?;
        // A replica that is promoted later may lack some of its master's data.
        map.replicas().iter().for_each(|at| servers.record_replica(&at.to_string(), label, Identity::unknown()));
        let crowded_out = self.make_room(&map);
        // Built before the lock is taken that every command reads.
        let routes = self.map().is_none_or(|before| *before != map).then(|| Arc::new(self.routes_by(&map, lost)));
        let before = self.routes();
        if routes.is_some() {
            self.settled.disturb();
        }
        let mut gone = if is_regular { self.remove_unused_members(&map) } else { Vec::new() };
        gone.extend(crowded_out);
        self.end_renamed(&map);
        self.change(|state| {
            state.routes = routes.unwrap_or_else(|| Arc::clone(&state.routes));
            (state.map, state.epoch, state.is_well, state.trouble) = (Some(Arc::new(map)), epoch, is_well, None);
        });
        self.count(&gone);
        // Their connections end outside of the lock.
        drop(gone);
        if before.version() != self.routes().version() {
            // Holders ask the new member of their slot if it has the lock.
            (self.environment.connected)();
        }
        Ok(())
    }

    /// Ends the connections to members with a new id. A member that was reset has a new id and keeps its connections; messages published on
    /// the old channels reach no process.
    fn end_renamed(&self, map: &SlotMap) {
        for at in map.masters() {
            let live = self.read_member(at).and_then(|member| member.connections.live().ok());
            let is_renamed = |live: &Arc<LiveConnection>| !live.channels().may_belong_to(map.id_of(at));
            if let Some(live) = live.filter(is_renamed) {
                live.end(NodeError::Disconnected);
            }
        }
    }

    /// Returns the routes of a `map` that differs from the previous one.
    fn routes_by(&self, map: &SlotMap, lost: &BTreeSet<MemberAddress>) -> Routes<Member> {
        let (before, now) = (self.routes(), self.environment.servers.clock.now());
        // In the order of their addresses.
        let masters: Box<[_]> = map.masters().into_iter().map(|at| (at.clone(), self.known(at, Origin::Map))).collect();
        before.next(masters, map.owners(), |at| match at.filter(|at| !lost.contains(at)) {
            Some(at) => self.read_member(at)?.abstains_for().map(|left| now.after(left)),
            None => self.environment.servers.lost_leases_end(),
        })
    }

    /// Removes members that are missing in `map` and unused since the last call.
    fn remove_unused_members(&self, map: &SlotMap) -> Vec<Member> {
        let (masters, mut gone) = (map.masters(), Vec::new());
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.known.retain(|at, known| {
            let is_wanted = known.is_used.swap(false, Ordering::Relaxed) || masters.contains(at);
            if !is_wanted {
                gone.push(Arc::clone(&known.member));
            }
            is_wanted
        });
        let known = state.known.keys().chain(masters).chain(map.replicas()).map(ToString::to_string);
        let there: BTreeSet<_> = known.collect();
        drop(state);
        self.environment.servers.retain_parts(self.seeds.label(), |address| there.contains(address));
        gone
    }

    /// Records that there is no map, or no usable one. The previous map stays in use, because most of it is correct.
    pub(super) fn failed(&self, error: NodeError) {
        self.change(|state| {
            if matches!(error, NodeError::SameServer(_)) {
                state.map = None;
            }
            if state.map.is_none() {
                state.routes = Arc::new(state.routes.next(Box::default(), std::iter::empty(), |_| None));
                state.trouble = Some(error);
            }
        });
    }

    /// Removes all members that are missing in `map` if there would be too many members otherwise. The members of successive maps must not
    /// add up.
    fn make_room(&self, map: &SlotMap) -> Vec<Member> {
        let masters = map.masters();
        let new = masters.iter().filter(|at| self.read_member(at).is_none()).count();
        let mut gone = Vec::new();
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.known.iter_mut().for_each(|(at, known)| known.is_redirected &= !masters.contains(at));
        if state.known.len() + new > MOST_KNOWN {
            state.known.retain(|at, known| {
                let is_in_map = masters.contains(at);
                if !is_in_map {
                    gone.push(Arc::clone(&known.member));
                }
                is_in_map
            });
        }
        gone
    }

    /// Returns the member at `at`, to which a command is redirected. Starts a connection if there is none. Returns `None` if other members
    /// have named too many servers that are not in a map.
    pub(super) fn member(&self, at: &MemberAddress) -> Option<Member> {
        let is_full = |state: &State| {
            let redirected = state.known.values().filter(|known| known.is_redirected).count();
            redirected >= MOST_REDIRECTED && !state.known.contains_key(at)
        };
        if self.read(is_full) {
            return None;
        }
        let member = self.known(at, Origin::Redirection);
        self.read(|state| {
            if let Some(known) = state.known.get(at) {
                known.is_used.store(true, Ordering::Relaxed);
            }
        });
        Some(member)
    }

    /// Returns the remaining time until `until`, if it is in the future.
    pub(super) fn left_until(&self, until: Option<Instant>) -> Option<Duration> {
        let now = self.environment.servers.clock.now();
        until.map(|until| until.since(now)).filter(|left| !left.is_zero())
    }

    /// Opens the channel for wake-ups at all members, present and future.
    pub(super) fn listen(&self) {
        self.is_listening.store(true, Ordering::Release);
        let members: Vec<_> = self.read(|state| state.known.values().map(|known| Arc::clone(&known.member)).collect());
        for member in members {
            member.listen();
        }
    }

    /// Returns the member at `at`. Starts a connection if there is none.
    fn known(&self, at: &MemberAddress, origin: Origin) -> Member {
        if let Some(member) = self.read_member(at) {
            return member;
        }
        // Not under the lock that every command reads. Another task may be faster: this connection then ends here, after the lock.
        let started = self.start(at);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let is_redirected = origin == Origin::Redirection;
        let known = Known { member: Arc::clone(&started), is_used: AtomicBool::new(false), is_redirected };
        let member = Arc::clone(&state.known.entry(at.clone()).or_insert(known).member);
        drop(state);
        // Repeated: a call of `listen` since the start has not seen this member among the others.
        if self.is_listening.load(Ordering::Acquire) {
            member.listen();
        }
        member
    }

    /// Returns `true` if the channels of the member at `at` are used by no other member.
    fn has_own_channels(&self, at: &MemberAddress) -> bool {
        self.read_member(at).is_some_and(|member| member.connections.server.has_own_channels())
    }

    /// Returns the member at `at`, if there is one.
    fn read_member(&self, at: &MemberAddress) -> Option<Member> {
        self.read(|state| state.known.get(at).map(|known| Arc::clone(&known.member)))
    }

    fn start(&self, at: &MemberAddress) -> Member {
        let environment = Environment { deliver: self.deliver_from(at), ..self.environment.clone() };
        let membership = (self.seeds.label(), (self.redirect)(&self.this, at));
        let (thread, host) = (Arc::clone(&self.thread), self.host.clone());
        let member = RedisNode::start_member(self.seeds.member(at), environment, membership, thread, host);
        if self.is_listening.load(Ordering::Acquire) {
            member.listen();
        }
        member
    }

    /// Creates the handler of the wake-ups from the member at `at`.
    ///
    /// Not every hand-off proves a lease ([`settled`](super::settled)). If it does not, the token asks the member that has the slot.
    fn deliver_from(&self, at: &MemberAddress) -> Deliver {
        let (members, at, deliver) = (self.this.clone(), at.clone(), Arc::clone(&self.environment.deliver));
        Arc::new(move |Wakeup { subject, notice }| {
            let Some(members) = members.upgrade() else { return };
            let is_owner = members.routes().address(slot_of(subject.key.name())) == Some(&at);
            if !is_owner && !members.has_own_channels(&at) {
                // The member that has the slot delivers it as well.
                return;
            }
            if matches!(notice, Notice::Revoked { .. }) {
                members.settled.disturb();
            }
            // In this order: a new map is noted as a disturbance before it is believed.
            let is_believed = !notice.is_proof() || is_owner && members.settled.is_settled();
            let notice = if is_believed { notice } else { Notice::Granted };
            deliver(Wakeup { subject, notice });
        })
    }

    fn read<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the state, and notifies all tasks that wait for a change.
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.write().unwrap_or_else(PoisonError::into_inner));
        self.environment.changed.notify_waiters();
    }
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members =
            self.read(|state| state.known.values().map(|known| Arc::clone(&known.member)).collect::<Vec<_>>());
        f.debug_list().entries(members).finish()
    }
}
