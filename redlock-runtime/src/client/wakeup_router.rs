//! Delivery of notifications from nodes to the tokens that they are about, and of reconnects to all tokens.
//!
//! 0. A message about a token of another manager is dropped. Nodes send a message to the manager in its token, so
//!    another process has published this one. Acting on it would use the permissions of this process on a lock that it
//!    does not own.
//! 1. If the message names a token of this process for the key, that token is notified. It may be the token of the
//!    local queue, or share the lock. If no call uses it, it is released to the waiters.
//!    If claims are confirmed later, the router plans that: it often runs on the thread of the watchdog, which the task
//!    that waits for the lock would have to wake.
//! 2. A token that only keeps its key taken does not react.
//! 3. Any other token is released: its process or its call is gone, or its release was lost, and no other process would
//!    ever release it. While its release is in flight, another one would find nothing.
//! 4. When a connection is new, every held token soon asks its node to confirm the lock. The watchdog sends these
//!    questions over time, so that many of them delay neither this process nor the node.

use crate::client::local_queue::LocalQueue;
use crate::client::revoked::revoked;
use crate::lock::Mode;
use crate::node::Connected;
use crate::protocol::command::{Deliver, Notice, Subject, Wakeup};
use crate::protocol::last_command::LastCommand;
use crate::protocol::rules::Rule;
use std::sync::{Arc, OnceLock, Weak};

/// Router that is created before its manager, because the nodes need it and exist before the manager.
#[derive(Clone, Debug, Default)]
pub(crate) struct WakeupRouter(Arc<OnceLock<Weak<LocalQueue>>>);

impl WakeupRouter {
    /// Sends all later wake-ups to the tokens of `local`.
    pub(crate) fn connect(&self, local: &Arc<LocalQueue>) {
        // Connected once, by the builder.
        let _ = self.0.set(Arc::downgrade(local));
    }

    /// Returns the function for wake-ups of node number `index`.
    pub(crate) fn of_node(&self, index: usize) -> Deliver {
        let router = self.clone();
        Arc::new(move |wakeup| {
            if let Some(local) = router.0.get().and_then(Weak::upgrade) {
                route(&local, index, wakeup);
            }
        })
    }

    /// Returns the function for new connections to node number `index`.
    pub(crate) fn connected(&self, index: usize) -> Connected {
        let router = self.clone();
        Arc::new(move || {
            if let Some(local) = router.0.get().and_then(Weak::upgrade)
                && local.shared().rules.apply(Rule::ReconnectsAsk)
            {
                connected(&local, index);
            }
        })
    }
}

/// Makes every holder ask node number `index`, whose connection is new.
fn connected(local: &Arc<LocalQueue>, index: usize) {
    local.change_all(local.shared().clock.now(), |acquisition| acquisition.connected(index));
}

/// Handles a notification from node number `index`.
fn route(local: &Arc<LocalQueue>, index: usize, Wakeup { subject, notice }: Wakeup) {
    let shared = local.shared();
    if !subject.token.is_of(shared.id) && shared.rules.apply(Rule::ForeignTokensAreIgnored) {
        return;
    }
    let wanted_by = match notice {
        Notice::Contended { by } | Notice::Wanted { by } => Some(by),
        Notice::Granted | Notice::Claimed(_) | Notice::Proven(_) | Notice::Free | Notice::Freed | Notice::Busy => None,
        Notice::Revoked { by } => {
            revoked(local, index, &subject, by);
            return;
        }
        Notice::Stopped => {
            shared.stopped(&subject);
            return;
        }
    };
    if let Some(by) = wanted_by.filter(|_| shared.rules.apply(Rule::TokensFollowTheLatest)) {
        shared.token_clock.observe(by.time());
    }
    let ours = local.find(&subject);
    let recalls = || wanted_by.zip(ours.as_ref()).is_some_and(|(by, ours)| local.recall(ours, by));
    let knows_first = shared.rules.apply(Rule::RecallAfterKnown);
    let mut is_recalled = !knows_first && recalls();
    let is_known = ours.as_ref().is_some_and(|ours| ours.notice(index, notice));
    is_recalled |= knows_first && is_known && recalls();
    if let (Some(ours), Notice::Granted | Notice::Claimed(_) | Notice::Proven(_)) = (&ours, notice) {
        local.plan_confirmation(ours);
    }
    let is_kept = !is_known && shared.kept_tokens.is_kept(&subject.token, shared.clock.now());
    // A notification shows no contention if it released an idle lock, even if several nodes sent it. The same holds if
    // its key is only kept taken, or if the other token only asks.
    if wanted_by.is_some_and(|by| !by.asks()) && !is_recalled && !is_kept {
        shared.hot_keys.heat(&subject.key, shared.clock.now());
    }
    let stays = is_kept && shared.rules.apply(Rule::KeptTokensStay);
    if !is_known && !stays && notice != Notice::Busy {
        // A permit is released as a permit, so that the call in the admission lock is notified.
        let subject = if notice == Notice::Freed { subject.of_mode(Mode::Permit) } else { subject };
        release_unknown(local, index, subject);
    }
}

/// Releases an unknown token at node number `index`, unless a release in flight does that.
fn release_unknown(local: &LocalQueue, index: usize, mut subject: Subject) {
    let (shared, now) = (local.shared(), local.shared().clock.now());
    let is_leaving = shared.nodes.get(index).is_some_and(|node| node.ledger().leaving.contains(&subject.token));
    if !is_leaving && shared.rules.apply(Rule::UnknownTokensAreReleased) {
        // The key in events has the usual form, without the namespace.
        subject.key = subject.key.within(&shared.namespace);
        shared.release(index, Arc::new(subject), LastCommand::for_unknown_token(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::acquisition::Acquisition;
    use crate::client::hooked_node::{Fate, HookedNode};
    use crate::lock::OwnerToken;
    use crate::lock::owner_token::ManagerId;
    use crate::protocol::command::{Claim, Verb};
    use crate::time::clock::Clock;
    use crate::time::token_clock::TokenTime;
    use crate::{LockManager, LockRequest};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    const KEY: &str = "order:7";
    const TTL: Duration = Duration::from_secs(30);

    /// Returns the number of releases of one token, if a node still announces a claim of the token after the first one.
    async fn releases(of_take: Fate, of_release: Fate, is_wanted: bool, has_parts: bool) -> usize {
        let releases = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&releases);
        let node = HookedNode::new(Clock::tokio(), move |command| {
            if !matches!(command.verb, Verb::Release { .. }) {
                return of_take;
            }
            seen.fetch_add(1, Ordering::Relaxed);
            of_release
        });
        if has_parts {
            node.divide();
        }
        let local = Arc::new(LocalQueue::new(Arc::new(node.shared()), None));
        let now = local.shared().clock.now();
        let ours = Acquisition::of_key(local.shared(), &KEY.into(), TTL, now);
        ours.try_at_once(now, TTL).await;
        if is_wanted {
            let by = OwnerToken::new(ManagerId::random(), TokenTime::new(1, 0));
            assert!(ours.notice(0, Notice::Contended { by }));
        }
        ours.release();
        route(&local, 0, Wakeup { subject: Subject::new(KEY.into(), *ours.token()), notice: Notice::Granted });
        releases.load(Ordering::Relaxed)
    }

    #[tokio::test(start_paused = true)]
    async fn late_grant_is_released_again_unless_a_release_in_flight_suffices() {
        use Fate::{Answered, CutOff, Unanswered};
        let table = [
            ("the release is on its way", Answered, Unanswered, true, false, 1),
            ("it is answered", Answered, Answered, true, false, 2),
            ("nobody knows what became of it", Answered, CutOff, true, false, 2),
            ("something before it may come after it", CutOff, Unanswered, true, false, 2),
            ("nobody else is known to want the lock", Answered, Unanswered, false, false, 2),
            ("another part may execute something before it later", Answered, Unanswered, true, true, 2),
        ];
        for (name, of_take, of_release, is_wanted, has_parts, expected) in table {
            assert_eq!(releases(of_take, of_release, is_wanted, has_parts).await, expected, "{name}");
        }
    }

    /// Returns `true` if `KEY` is regarded as contended after two notifications about a waiter. Meanwhile, it is in use
    /// or idle.
    async fn is_hot(is_in_use: bool) -> bool {
        let node = HookedNode::new(Clock::tokio(), |_| Fate::Answered);
        let local = Arc::new(LocalQueue::new(Arc::new(node.shared()), None));
        let manager = LockManager::new(Arc::clone(&local));
        let request = || LockRequest::new(KEY).linger(TTL / 2);
        drop(manager.acquire(request()).await.unwrap());
        let guard = manager.acquire(request()).await.unwrap();
        let ours = local.acquisition(KEY).unwrap();
        let in_use = is_in_use.then_some(guard);
        let notice = Notice::Contended { by: OwnerToken::new(ManagerId::random(), TokenTime::new(1, 0)) };
        for index in [0, 0] {
            route(&local, index, Wakeup { subject: Subject::new(KEY.into(), *ours.token()), notice });
        }
        drop(in_use);
        assert!(node.is_empty(), "it is given back");
        !local.shared().hot_keys.may_try_at_once(&KEY.into(), true, local.shared().clock.now())
    }

    #[test]
    fn message_about_a_token_of_another_manager_sends_no_command() {
        let by = OwnerToken::new(ManagerId::random(), TokenTime::new(1, 0));
        let claim = Claim { length: Duration::from_secs(1), begun: Duration::from_secs(1) };
        let notices = [
            Notice::Granted,
            Notice::Claimed(claim),
            Notice::Free,
            Notice::Freed,
            Notice::Busy,
            Notice::Stopped,
            Notice::Contended { by },
            Notice::Wanted { by },
            Notice::Revoked { by },
        ];
        let sent = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&sent);
        let node = HookedNode::new(Clock::Boot, move |_| {
            seen.fetch_add(1, Ordering::Relaxed);
            Fate::Answered
        });
        let local = Arc::new(LocalQueue::new(Arc::new(node.shared()), None));
        for notice in notices {
            route(&local, 0, Wakeup { subject: Subject::new(KEY.into(), by), notice });
        }
        assert_eq!(sent.load(Ordering::Relaxed), 0);
        let ours = OwnerToken::new(local.shared().id, TokenTime::new(1, 0));
        route(&local, 0, Wakeup { subject: Subject::new(KEY.into(), ours), notice: Notice::Granted });
        assert_eq!(sent.load(Ordering::Relaxed), 1, "an unknown token of our own is released");
    }

    #[test]
    fn unknown_token_is_released_in_the_mode_of_the_notification() {
        let modes = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&modes);
        let node = HookedNode::new(Clock::Boot, move |command| {
            seen.lock().unwrap().push(command.subject.mode);
            Fate::Answered
        });
        let local = Arc::new(LocalQueue::new(Arc::new(node.shared()), None));
        for notice in [Notice::Granted, Notice::Freed] {
            let ours = OwnerToken::new(local.shared().id, TokenTime::new(1, 0));
            route(&local, 0, Wakeup { subject: Subject::new(KEY.into(), ours), notice });
        }
        assert_eq!(*modes.lock().unwrap(), [Mode::Exclusive, Mode::Permit]);
    }

    /// A claim lives for a second, and the next renewal comes much later.
    #[tokio::test(start_paused = true)]
    async fn late_claim_is_confirmed_soon_after_the_other_votes() {
        let extended = Arc::new(Mutex::new(Vec::new()));
        let clock = Clock::tokio();
        let nodes = [0, 1, 2].map(|index| {
            let seen = Arc::clone(&extended);
            HookedNode::new(clock, move |command| match command.verb {
                Verb::Extend { .. } | Verb::Renew { .. } => {
                    seen.lock().unwrap().push(index);
                    Fate::Answered
                }
                _ if index == 2 => Fate::CutOff,
                _ => Fate::Answered,
            })
        });
        let local = Arc::new(LocalQueue::new(Arc::new(HookedNode::shared_of(nodes, clock)), None));
        let manager = LockManager::new(Arc::clone(&local));
        let guard = manager.acquire(LockRequest::new(KEY).ttl(TTL)).await.unwrap();
        let subject = Subject::new(KEY.into(), *local.acquisition(KEY).unwrap().token());
        route(&local, 2, Wakeup { subject, notice: Notice::Granted });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(*extended.lock().unwrap(), [0, 1, 2]);
        assert!(guard.is_held());
    }

    #[tokio::test(start_paused = true)]
    async fn contention_makes_the_key_hot_only_while_the_lock_is_in_use() {
        assert!(is_hot(true).await);
        assert!(!is_hot(false).await);
    }
}
