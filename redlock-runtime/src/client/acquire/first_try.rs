//! First try of a call at all nodes. For a call that does not wait, this is the whole acquisition.
//!
//! A call for several keys repeats the try with short pauses before it joins their queues. While it waits for one key,
//! it would block the free ones, and a place in several queues costs the nodes much more than a try.

use super::{AcquireError, Call};
use crate::client::local_queue::LocalOwner;
use crate::client::timers::sleep;
use crate::error::LockError;
use crate::lock::part::Part;
use crate::observe::spans::Path;
use crate::protocol::candidate::Waited;
use crate::protocol::quorum::Verdict;
use crate::protocol::rules::Rule;
use crate::protocol::timing::{
    AFTER_FAILURE, LONGEST_PAUSE_OF_TRIES, LONGEST_SILENCE, LONGEST_TRYING, PAUSE_OF_TRIES, TRIES_BEFORE_THE_QUEUES,
    TRIES_FOR_ONE_AT_ALL,
};
use crate::time::clock::Instant;

impl Call<'_> {
    /// Returns `true` if the call begins with a try instead of the queues. A shared lock needs a script in either case,
    /// so a try saves only the wake-up channel, if that is not open yet. For several keys, it avoids blocking other
    /// calls.
    pub(super) fn should_try_at_once(&self, now: Instant) -> bool {
        if self.stands_beside() {
            let is_first = !self.shared().is_listening() || self.compatible_calling_frame().is_some();
            return !self.waits() || is_first || self.wants_several();
        }
        self.shared().hot_keys.may_try_at_once(&self.key, self.waits(), now)
    }

    /// Takes the lock if it is free at enough nodes. A waiting call continues in their queues.
    pub(super) async fn try_at_once(&self, mut turn: LocalOwner, now: Instant) -> Result<LocalOwner, AcquireError> {
        // A call that does not wait has only this try.
        if !self.waits() {
            return self.try_until_answered(turn).await;
        }
        if let Some(frame) = self.compatible_calling_frame() {
            return self.try_beside_caller(turn, &frame).await;
        }
        // Try at the nodes. A call for an admission lock sends its permit request right behind.
        let comes_late = self.comes_late();
        let verdict;
        if self.wants_several() {
            (turn, verdict) = self.try_for_several(turn, now).await?;
        } else {
            let ahead = self.permit_call_of_admission().map(Self::prepare_early_request);
            turn.acquisition().send_try(now);
            if let Some(pending_permit) = ahead {
                pending_permit.send_after_admission(&turn);
            }
            verdict = turn.acquisition().tried(self.patience()).await;
        }
        if verdict == Verdict::Reached {
            self.way.goes(Path::Fast);
            return Ok(turn);
        }
        // A refusal of the permit request follows right behind a refusal of the admission lock.
        if let Some(permit) = self.permit_call_of_admission() {
            permit.wait_for_refusal_replies(&turn, self.patience()).await;
        }
        match verdict {
            _ if self.has_time() => {
                if self.permit_call_of_admission().is_some() {
                    self.abandon_early_request(&mut turn)?;
                }
                self.wait(turn).await
            }
            // The place in the queues would be left at once, and its unanswered questions would hide the state of the
            // nodes.
            Verdict::Contended => Err(AcquireError::Failed(self.timed_out(turn.acquisition()).await)),
            // The nodes had no time to answer, because the wait was over.
            Verdict::Reached | Verdict::OutOfReach | Verdict::Open
                if comes_late && turn.acquisition().lacks_answers() =>
            {
                Err(AcquireError::Failed(self.timeout_error(None)))
            }
            Verdict::Reached | Verdict::OutOfReach | Verdict::Open => {
                Err(AcquireError::Failed(turn.acquisition().failure()))
            }
        }
    }

    /// Returns `true` if the call wants several keys, and shares none of them.
    fn wants_several(&self) -> bool {
        !self.mode.is_shared() && !self.parts.is_single()
    }

    /// Tries for several keys, repeatedly if some are taken. All nodes are asked at once, unless other calls have had
    /// some of the keys lately. In that case, competing calls would split the votes of the nodes.
    async fn try_for_several(&self, turn: LocalOwner, now: Instant) -> Result<(LocalOwner, Verdict), AcquireError> {
        let (hot_keys, alone) = (&self.shared().hot_keys, self.parts.iter().filter_map(Part::alone));
        let verdict = if hot_keys.should_ask_one_node_first(alone, now) {
            turn.acquisition().try_one_first(self.patience()).await
        } else {
            self.try_at_all(&turn).await
        };
        if verdict == Verdict::Contended { self.try_again(turn).await } else { Ok((turn, verdict)) }
    }

    /// Tries for several keys at all nodes at once, and remembers taken keys for the next calls.
    async fn try_at_all(&self, turn: &LocalOwner) -> Verdict {
        let verdict = turn.acquisition().try_at_once(self.now(), self.patience()).await;
        if verdict == Verdict::Contended {
            self.shared().hot_keys.meet(self.parts.iter().filter_map(Part::alone), self.now());
        }
        verdict
    }

    /// Repeats the try for several keys that were taken, with a pause before each try. Most tries ask one node first.
    /// Some ask all nodes, because that node may have kept a lock that is free at all others.
    async fn try_again(&self, mut turn: LocalOwner) -> Result<(LocalOwner, Verdict), AcquireError> {
        let (end, mut about) = (self.now().after(LONGEST_TRYING), PAUSE_OF_TRIES);
        for number in 1..=TRIES_BEFORE_THE_QUEUES {
            // The pause is random, so that two colliding calls do not collide again and again.
            let pause = about.mul_f64(0.5 + fastrand::f64());
            about = LONGEST_PAUSE_OF_TRIES.min(2 * about);
            // A try near the time limit could fail without answers, although the nodes have reported that the keys are
            // taken.
            let is_late = |left| left <= pause + self.shared().node_timeout(self.wanted.ttl);
            if end <= self.now() || self.left().is_some_and(is_late) {
                break;
            }
            // Each try has another token. The previous one is released before the pause, because it may own some of the
            // nodes.
            turn.change_to_successor(self.wanted.ttl)?;
            turn.acquisition().resume(self.wanted);
            sleep(pause).await;
            self.may_go_on()?;
            let verdict = if number % TRIES_FOR_ONE_AT_ALL == 0 {
                self.try_at_all(&turn).await
            } else {
                turn.acquisition().try_one_first(self.patience()).await
            };
            if verdict != Verdict::Contended {
                return Ok((turn, verdict));
            }
        }
        Ok((turn, Verdict::Contended))
    }

    /// Takes the lock, or finds that another token owns it. The time limit for silent nodes is that of all calls. A
    /// call that does not wait for a holder still waits for the nodes, because a short failure shows nothing about the
    /// lock.
    pub(super) async fn try_until_answered(&self, mut turn: LocalOwner) -> Result<LocalOwner, AcquireError> {
        let limit = self.now().after(LONGEST_SILENCE);
        loop {
            let now = self.now();
            // The last try gets its node timeout as well. Otherwise, its error would only show that it had no time.
            match turn.acquisition().try_at_once(now, limit.since(now).max(self.patience())).await {
                Verdict::Reached => {
                    self.way.goes(Path::Fast);
                    return Ok(turn);
                }
                Verdict::Contended => return self.handle_taken_lock(turn).await,
                Verdict::OutOfReach | Verdict::Open => {}
            }
            if limit.since(self.now()) <= AFTER_FAILURE {
                return Err(AcquireError::Failed(turn.acquisition().failure()));
            }
            // Another token, because this one may have votes that cannot be proven any longer. It is released before
            // the pause. The pause is random, because two calls with some nodes each would collide again and again.
            turn.change_to_successor(self.wanted.ttl)?;
            turn.acquisition().resume(self.wanted);
            self.may_go_on()?;
            sleep(AFTER_FAILURE.mul_f64(0.5 + 0.5 * fastrand::f64())).await;
            self.may_go_on()?;
        }
    }

    /// Handles a taken lock. If locks linger, it may be idle: its manager then releases it on request, or reports that
    /// a body runs. Without a report, the process is silent, or its library does not know the question.
    async fn handle_taken_lock(&self, mut turn: LocalOwner) -> Result<LocalOwner, AcquireError> {
        let taken = self.taken(turn.acquisition()).await;
        let may_be_idle = self.local.lingers() && taken.is_contended();
        if !may_be_idle || !self.shared().rules.apply(Rule::WhoDoesNotWaitAsks) {
            return Err(AcquireError::Failed(taken));
        }
        turn.change(turn.acquisition().asking())?;
        turn.acquisition().resume(self.wanted);
        let limit = self.now().after(turn.acquisition().node_timeout());
        match turn.acquisition().wait(Some(limit)).await {
            Waited::Held => {
                self.way.goes(Path::Queued);
                Ok(turn)
            }
            Waited::Superseded => Err(AcquireError::Superseded),
            Waited::Closed => Err(AcquireError::Failed(LockError::Closed)),
            Waited::TimedOut | Waited::Silent | Waited::LostMajority => Err(AcquireError::Failed(taken)),
        }
    }

    /// Checks that the manager is still open.
    ///
    /// # Errors
    /// [`LockError::Closed`] if the manager was shut down.
    fn may_go_on(&self) -> Result<(), AcquireError> {
        if self.shared().is_closed() { Err(AcquireError::Failed(LockError::Closed)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use crate::client::hooked_node::{Fate, HookedNode};
    use crate::client::local_queue::LocalQueue;
    use crate::protocol::command::Verb;
    use crate::time::clock::Clock;
    use crate::{LockGuard, LockManager, LockRequest};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;
    use tokio::time::sleep;

    /// Manager of three nodes, a record of the nodes that it asks at once, and locks on `b` that other managers have at
    /// the first nodes.
    struct Scene {
        manager: LockManager,
        asked: Arc<Mutex<String>>,
        held: Vec<LockGuard>,
    }

    impl Scene {
        async fn taken_at(first: usize) -> Self {
            let (clock, asked) = (Clock::tokio(), Arc::new(Mutex::new(String::new())));
            let nodes = ["0", "1", "2"].map(|name| {
                let asked = Arc::clone(&asked);
                HookedNode::new(clock, move |command| {
                    if let Verb::SetNx { .. } = command.verb {
                        asked.lock().unwrap().push_str(name);
                    }
                    Fate::Answered
                })
            });
            let of = |shared| LockManager::new(Arc::new(LocalQueue::new(Arc::new(shared), None)));
            let mut held = Vec::new();
            for node in nodes.iter().take(first) {
                held.push(of(node.shared()).acquire("b").await.unwrap());
            }
            asked.lock().unwrap().clear();
            Self { manager: of(HookedNode::shared_of(nodes, clock)), asked, held }
        }

        /// Makes a call for `a` and `b`. Returns `true` if it got its locks in time, and the nodes that it asked at
        /// once, one letter for each command.
        async fn call(&self) -> (bool, String) {
            let request = LockRequest::all(["a", "b"]).wait(Duration::from_millis(80));
            let is_had = self.manager.acquire(request).await.is_ok();
            (is_had, std::mem::take(&mut *self.asked.lock().unwrap()))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn uncontended_keys_are_tried_at_all_nodes_at_once() {
        for taken_at in [0, 1] {
            let scene = Scene::taken_at(taken_at).await;
            for _ in 0..2 {
                assert_eq!(scene.call().await, (true, "012".into()), "others have it at {taken_at} nodes");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn contended_keys_are_tried_at_one_node_first_and_sometimes_at_all() {
        let mut scene = Scene::taken_at(3).await;
        let (is_had, asked) = scene.call().await;
        assert!(!is_had && asked.starts_with("012000012"), "{asked}");
        // A lock that only the first node has kept does not block other calls for long.
        scene.held.truncate(1);
        assert_eq!(scene.call().await, (true, "0000012".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn call_for_several_keys_retries_before_it_joins_the_queues() {
        let manager = LockManager::in_memory();
        let held = manager.acquire(LockRequest::all(["a", "b"])).await.unwrap();
        let request = LockRequest::all(["b", "c"]).wait(Duration::from_secs(5));
        let call = tokio::spawn({
            let manager = manager.clone();
            async move { manager.acquire(request).await }
        });
        sleep(Duration::from_millis(1)).await;
        manager.try_acquire("c").await.expect("nobody stands there yet").release().await.unwrap();
        sleep(Duration::from_millis(150)).await;
        assert!(manager.try_acquire("c").await.unwrap_err().is_contended(), "it is kept for the one that waits");
        drop(held);
        drop(call.await.unwrap().expect("its turn has come"));
    }
}
