//! The masters of a cluster, each with connections of its own, and which of them has which slot.

use super::address::MemberAddress;
use super::redirection::Redirect;
use super::routes::Routes;
use super::seeds::Seeds;
use super::slot_map::{SlotMap, ranges};
use crate::error::NodeError;
use crate::lock::slot::slot_of;
use crate::node::environment::Environment;
use crate::node::redis::RedisNode;
use crate::node::server_identity::Identity;
use crate::node::status::Status;
use crate::node::{BackgroundThread, Node};
use crate::protocol::command::Deliver;
use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use tokio::runtime::Handle;
use tokio::sync::Notify;

/// A member that takes commands.
pub(super) type Member = Arc<RedisNode>;

/// All that is known of the members of one cluster.
pub(super) struct Members {
    pub(super) seeds: Seeds,
    environment: Environment,
    thread: Arc<BackgroundThread>,
    /// The runtime that the manager was built on.
    host: Option<Handle>,
    this: Weak<Self>,
    /// Makes what sends on the commands that the member at an address refuses.
    redirect: fn(&Weak<Self>, &MemberAddress) -> Arc<dyn Redirect>,
    state: RwLock<State>,
    /// Tells that the map is not what it was.
    pub(super) wanted: Notify,
    /// The member that has taken over a slot last, as far as redirections tell: it knows more than the others.
    best_informed: Mutex<Option<MemberAddress>>,
    /// Whether wake-ups are wanted; it never becomes `false` again.
    is_listening: AtomicBool,
}

struct State {
    routes: Arc<Routes<Member>>,
    /// What was told last; `None` before that.
    map: Option<Arc<SlotMap>>,
    /// Every master, and whoever else commands were sent on to lately.
    known: BTreeMap<MemberAddress, Known>,
    /// Why there is no map.
    trouble: Option<NodeError>,
}

struct Known {
    member: Member,
    /// Whether a command was sent on to it since this was last looked at.
    is_used: bool,
}

impl Members {
    pub(super) fn new(
        seeds: Seeds,
        environment: Environment,
        thread: Arc<BackgroundThread>,
        host: Option<Handle>,
        redirect: fn(&Weak<Self>, &MemberAddress) -> Arc<dyn Redirect>,
    ) -> Arc<Self> {
        let state = State { routes: Arc::new(Routes::nowhere()), map: None, known: BTreeMap::new(), trouble: None };
        Arc::new_cyclic(|this| Self {
            seeds,
            environment,
            thread,
            host,
            this: this.clone(),
            redirect,
            state: RwLock::new(state),
            wanted: Notify::new(),
            best_informed: Mutex::default(),
            is_listening: AtomicBool::new(false),
        })
    }

    /// Who serves which slot.
    pub(super) fn routes(&self) -> Arc<Routes<Member>> {
        self.read(|state| Arc::clone(&state.routes))
    }

    /// Who serves which slot, as it was told last.
    pub(super) fn map(&self) -> Option<Arc<SlotMap>> {
        self.read(|state| state.map.clone())
    }

    /// All members that there may be a connection to: first who knows most of where slots are, then the others in any order.
    pub(super) fn informants(&self) -> Vec<Member> {
        let best = self.best_informed.lock().unwrap_or_else(PoisonError::into_inner).take();
        let known: Vec<_> =
            self.read(|state| state.known.iter().map(|(at, known)| (at.clone(), Arc::clone(&known.member))).collect());
        let (first, mut others): (Vec<_>, Vec<_>) = known.into_iter().partition(|(at, _)| Some(at) == best.as_ref());
        fastrand::shuffle(&mut others);
        first.into_iter().chain(others).map(|(_, member)| member).collect()
    }

    /// The addresses of all members that are known.
    pub(super) fn addresses(&self) -> Vec<MemberAddress> {
        self.read(|state| state.known.keys().cloned().collect())
    }

    /// Asks for a fresh map. `knows` has a slot that another member had before.
    pub(super) fn want_map(&self, knows: Option<MemberAddress>) {
        if knows.is_some() {
            *self.best_informed.lock().unwrap_or_else(PoisonError::into_inner) = knows;
        }
        self.wanted.notify_one();
    }

    /// There is a map. `is_regular`: it was asked for without any reason, so that who is not in it can be let go.
    ///
    /// # Errors
    /// [`NodeError::SameServer`] when another node is this cluster.
    pub(super) fn learn(&self, map: SlotMap, is_regular: bool) -> Result<(), NodeError> {
        let (servers, label) = (&self.environment.servers, self.seeds.label());
        servers.is_cluster(label, map.ids())?;
        // Whoever is promoted later may not have all that its master had.
        map.replicas().iter().for_each(|at| servers.is_replica(&at.to_string(), label, Identity::unknown()));
        let mut gone = Vec::new();
        self.change(|state| {
            let masters: Box<[_]> =
                map.masters().into_iter().map(|at| (at.clone(), Arc::clone(&self.known(state, at).member))).collect();
            if is_regular {
                let is_master = |at: &MemberAddress| masters.iter().any(|(master, _)| master == at);
                state.known.retain(|at, known| {
                    let is_wanted = mem::take(&mut known.is_used) || is_master(at);
                    if !is_wanted {
                        gone.push(Arc::clone(&known.member));
                    }
                    is_wanted
                });
            }
            if state.map.as_deref() != Some(&map) {
                state.routes = Arc::new(state.routes.next(masters, map.owners()));
            }
            (state.map, state.trouble) = (Some(Arc::new(map)), None);
        });
        // Their connections end outside of the lock.
        drop(gone);
        Ok(())
    }

    /// There is no map, or none that may be used. One that was told before goes on, since most of it is true.
    pub(super) fn failed(&self, error: NodeError) {
        self.change(|state| {
            if matches!(error, NodeError::SameServer(_)) {
                state.map = None;
            }
            if state.map.is_none() {
                state.routes = Arc::new(state.routes.next(Box::default(), std::iter::empty()));
                state.trouble = Some(error);
            }
        });
    }

    /// The member at `at`, to which a connection is begun if there is none.
    pub(super) fn member(&self, at: &MemberAddress) -> Member {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let known = self.known(&mut state, at);
        known.is_used = true;
        Arc::clone(&known.member)
    }

    /// Opens the channel for wake-ups at all members, and at all that follow.
    pub(super) fn listen(&self) {
        self.is_listening.store(true, Ordering::Release);
        let members: Vec<_> = self.read(|state| state.known.values().map(|known| Arc::clone(&known.member)).collect());
        for member in members {
            member.listen();
        }
    }

    /// Whether the cluster can be asked about every key.
    pub(super) fn status(&self) -> Status {
        let (routes, map, trouble) =
            self.read(|state| (Arc::clone(&state.routes), state.map.clone(), state.trouble.clone()));
        let Some(map) = map else { return trouble.map_or(Status::Starting, Status::Down) };
        let status: Vec<_> = routes.members().map(|(_, member)| member.status()).collect();
        let is_down = |status: &Status| matches!(status, Status::Down(_));
        if status.contains(&Status::Starting) {
            return Status::Starting;
        }
        let down = status.into_iter().find(is_down);
        down.unwrap_or_else(|| gap(&map).map_or(Status::Up, Status::Down))
    }

    /// Why nobody serves `slot`, if nobody does.
    pub(super) fn absence(&self, slot: u16) -> Status {
        match self.read(|state| (state.map.is_some(), state.trouble.clone())) {
            (false, None) => Status::Starting,
            (false, Some(trouble)) => Status::Down(trouble),
            (true, _) => Status::Down(unserved(&slot.to_string())),
        }
    }

    /// Whether everything is as it should be: there is a map, every slot has a member, and all members are connected.
    pub(super) fn are_well(&self) -> bool {
        self.status() == Status::Up
    }

    /// What is known of the member at `at`, to which a connection is begun if there is none.
    fn known<'a>(&self, state: &'a mut State, at: &MemberAddress) -> &'a mut Known {
        state.known.entry(at.clone()).or_insert_with(|| Known { member: self.start(at), is_used: false })
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

    /// Takes in the wake-ups that the member at `at` brings.
    ///
    /// A cluster passes on to all members what is published at one, so that each wake-up comes from every member. Only the
    /// one counts that comes from the member which has the slot.
    fn deliver_from(&self, at: &MemberAddress) -> Deliver {
        let (members, at, deliver) = (self.this.clone(), at.clone(), Arc::clone(&self.environment.deliver));
        Arc::new(move |wakeup| {
            let slot = slot_of(wakeup.subject.key.name());
            if members.upgrade().is_some_and(|members| members.routes().address(slot) == Some(&at)) {
                deliver(wakeup);
            }
        })
    }

    fn read<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes what is known, and tells all who wait for a change.
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.write().unwrap_or_else(PoisonError::into_inner));
        self.environment.changed.notify_waiters();
    }
}

/// That nobody serves some slots, if so.
pub(super) fn gap(map: &SlotMap) -> Option<NodeError> {
    let gaps = map.gaps();
    (!gaps.is_empty()).then(|| unserved(&ranges(&gaps)))
}

/// That no member serves `slots`.
fn unserved(slots: &str) -> NodeError {
    NodeError::Refused(format!("CLUSTERDOWN no member of the cluster serves the slots {slots}").into())
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members =
            self.read(|state| state.known.values().map(|known| Arc::clone(&known.member)).collect::<Vec<_>>());
        f.debug_list().entries(members).finish()
    }
}
