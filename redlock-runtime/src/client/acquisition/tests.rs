//! Tests of the driver of a candidate: arriving answers, and woken tasks.

use super::state::{Sleeper, State};
use super::{Acquisition, NO_MEMBER};
use crate::client::hooked_node::{Fate, HookedNode};
use crate::node::Pending;
use crate::protocol::candidate::{Candidate, LeaseTerms, Outgoing, Queue, Wanted};
use crate::protocol::command::{Answer, Notice, ProvenClaim, Reply, Subject, Verb};
use crate::protocol::hold_options::HoldOptions;
use crate::protocol::quorum::{Quorum, Verdict};
use crate::protocol::rules::Rules;
use crate::protocol::timing::CLAIM;
use crate::request::Place;
use crate::time::ballot_clock::Believed;
use crate::time::clock::{Clock, Instant};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::advance;

const TTL: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_secs(3);
const GRANTED: Answer = Ok(Reply::Granted { smaller: false, number: None });
const QUEUED: Answer = Ok(Reply::Queued { left: None, rank: 0 });
const EXTENDED: Answer = Ok(Reply::Extended { waiters: 0, number: None });

/// Held lock whose nodes answer when the test decides it, in virtual time.
struct Scene {
    state: State,
    clock: Clock,
    unanswered: Vec<VecDeque<oneshot::Sender<Answer>>>,
}

impl Scene {
    fn new(nodes: usize) -> Self {
        let clock = Clock::tokio();
        let (quorum, rules) = (Quorum::of(nodes, 0), Rules { without: None });
        let terms = LeaseTerms { ttl: TTL, drift_factor: 0.01, node_timeout: TTL / 50, quorum, rules };
        let candidate = Candidate::new(std::iter::repeat_n(1, nodes), terms, clock.now());
        Self { state: State::new(candidate, nodes), clock, unanswered: (0..nodes).map(|_| VecDeque::new()).collect() }
    }

    fn holding(nodes: usize) -> Self {
        let mut scene = Self::new(nodes);
        let now = scene.clock.now();
        scene.send(|candidate, send| candidate.try_at_once(now, send));
        (0..nodes).for_each(|node| scene.answer(node, GRANTED));
        scene.state.take_in(scene.clock);
        scene.state.candidate.hold(now);
        scene
    }

    /// Creates a token that waits for three nodes, whose task continues by itself after `sleep`.
    fn waiting(sleep: Duration) -> Self {
        let mut scene = Self::new(3);
        let now = scene.clock.now();
        scene.state.candidate.wait(now);
        scene.send(|candidate, send| assert!(candidate.next_commands(now, |_| true, send)));
        (0..3).for_each(|node| scene.answer(node, QUEUED));
        scene.state.take_in(scene.clock);
        scene.state.sleeper = Some(Sleeper { waker: Waker::noop().clone(), until: now.after(sleep) });
        scene
    }

    /// Hands the lock over from a node, as a claim. Returns `true` if the waiting task must be woken.
    fn claimed(&mut self, node: usize) -> bool {
        let now = self.clock.now();
        self.state.candidate.claimed(node, None, now);
        self.state.due_sleeper(now).is_some()
    }

    fn extend(&mut self) {
        let now = self.clock.now();
        self.send(|candidate, send| assert!(candidate.extend(None, now, send)));
    }

    fn send(&mut self, ask: impl FnOnce(&mut Candidate, &mut dyn FnMut(Outgoing))) {
        let mut asked = Vec::new();
        ask(&mut self.state.candidate, &mut |out| asked.push(out.index));
        for index in asked {
            let (answer, pending) = oneshot::channel();
            self.unanswered[index].push_back(answer);
            self.state.expect(index, Pending::later(pending));
        }
    }

    /// Delivers the answer to the oldest unanswered command; it was not processed yet.
    fn answer(&mut self, node: usize, answer: Answer) {
        self.unanswered[node].pop_front().unwrap().send(answer).unwrap();
    }

    fn watch(&mut self) {
        self.state.watchers.watch(&mut None, NO_MEMBER, Waker::noop());
    }

    fn valid_until(&self) -> Option<Instant> {
        self.state.candidate.valid_until()
    }
}

#[tokio::test(start_paused = true)]
async fn one_task_processes_any_number_of_answers_without_yielding() {
    // Tokio would return 128 of them before the task has to yield to other tasks.
    for _ in 0..1000 {
        let mut scene = Scene::holding(1);
        scene.extend();
        scene.answer(0, EXTENDED);
        scene.state.take_in(scene.clock);
        assert!(!scene.state.candidate.is_awaited());
    }
}

#[tokio::test(start_paused = true)]
async fn loss_of_a_deciding_node_wakes_the_body() {
    for (answer, is_woken) in [(Ok(Reply::NotOwner), true), (EXTENDED, false)] {
        let mut scene = Scene::holding(3);
        advance(TTL / 2).await;
        scene.extend();
        // The third node keeps its older lease.
        (0..2).for_each(|node| scene.answer(node, EXTENDED));
        scene.state.take_in(scene.clock);
        scene.watch();
        scene.extend();
        scene.answer(0, answer.clone());
        scene.state.take_in(scene.clock);
        assert_eq!(scene.state.watchers.called().len(), usize::from(is_woken), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn clock_step_shortens_arrived_answers_and_not_later_ones() {
    let mut scene = Scene::holding(1);
    let before = scene.valid_until().unwrap();
    scene.watch();
    scene.extend();
    // The answer has arrived, and was not processed.
    scene.answer(0, EXTENDED);
    advance(Duration::from_millis(1)).await;
    scene.extend();
    scene.state.on_clock_step(0, STEP, scene.clock);
    assert_eq!(scene.valid_until(), Some(before.before(STEP)));
    assert_eq!(scene.state.watchers.called().len(), 1, "the body has less time than it thought");
    scene.answer(0, EXTENDED);
    scene.state.take_in(scene.clock);
    assert_eq!(scene.valid_until(), Some(before.after(Duration::from_millis(1))));
}

#[tokio::test(start_paused = true)]
async fn waiting_task_is_woken_only_by_an_unexpected_event() {
    // One of three claims causes a question about 900 ms later, and nothing else.
    assert!(Scene::waiting(Duration::from_secs(2)).claimed(0), "it would sleep for longer than that");
    let mut scene = Scene::waiting(Duration::from_millis(500));
    assert!(!scene.claimed(0), "it goes on in time by itself");
    scene.state.candidate.supersede();
    assert!(!scene.claimed(1), "it waits no more");
}

#[tokio::test(start_paused = true)]
async fn claim_of_an_abstaining_node_is_not_proven() {
    for abstains in [false, true] {
        let node = HookedNode::new(Clock::tokio(), |_| Fate::Unanswered);
        if abstains {
            node.abstain();
        }
        let shared = Arc::new(node.shared());
        let now = shared.clock.now();
        let ours = Acquisition::of_key(&shared, &"order:7".into(), TTL, now);
        assert!(ours.notice(0, Notice::Proven(ProvenClaim { length: CLAIM, from: now })));
        assert_eq!(ours.validity().is_zero(), abstains);
    }
}

/// Runs a try that asks one of three nodes first, with this fate of commands there. Returns the outcome, and the asked
/// nodes in order. Either another manager has the lock at the first node, or the lock is free.
async fn one_first(fate: Fate, is_taken: bool) -> (Verdict, String) {
    let (clock, asked) = (Clock::tokio(), Arc::new(Mutex::new(String::new())));
    let nodes = ["0", "1", "2"].map(|name| {
        let asked = Arc::clone(&asked);
        HookedNode::new(clock, move |_| {
            asked.lock().unwrap().push_str(name);
            if name == "0" { fate } else { Fate::Answered }
        })
    });
    let others = Acquisition::of_key(&Arc::new(nodes[0].shared()), &"order:7".into(), TTL, clock.now());
    if is_taken {
        others.try_at_once(clock.now(), TTL).await;
        asked.lock().unwrap().clear();
    }
    let shared = Arc::new(HookedNode::shared_of(nodes, clock));
    let ours = Acquisition::of_key(&shared, &"order:7".into(), TTL, clock.now());
    let verdict = ours.try_one_first(ours.node_timeout()).await;
    ours.release();
    let asked = asked.lock().unwrap().clone();
    (verdict, asked)
}

#[tokio::test(start_paused = true)]
async fn one_node_first_try_continues_unless_that_node_refuses() {
    let table = [
        ("it refuses, and has nothing to give back", Fate::Answered, true, Verdict::Contended, "0"),
        ("it agrees", Fate::Answered, false, Verdict::Reached, "012012"),
        ("it is silent", Fate::Unanswered, false, Verdict::Reached, "012012"),
        ("it was cut off", Fate::CutOff, false, Verdict::Reached, "012012"),
    ];
    for (name, fate, is_taken, verdict, asked) in table {
        assert_eq!(one_first(fate, is_taken).await, (verdict, asked.into()), "{name}");
    }
}

/// Its grant would not count, and all others would have to be asked for each try.
#[tokio::test(start_paused = true)]
async fn abstaining_node_is_not_tried_first() {
    let (clock, asked) = (Clock::tokio(), Arc::new(Mutex::new(String::new())));
    let nodes = ["0", "1", "2"].map(|name| {
        let asked = Arc::clone(&asked);
        HookedNode::new(clock, move |_| {
            asked.lock().unwrap().push_str(name);
            Fate::Answered
        })
    });
    nodes[0].abstain();
    let shared = Arc::new(HookedNode::shared_of(nodes, clock));
    let ours = Acquisition::of_key(&shared, &"order:7".into(), TTL, clock.now());
    assert_eq!(ours.try_one_first(ours.node_timeout()).await, Verdict::Reached);
    assert_eq!(*asked.lock().unwrap(), "102");
}

/// A quorum has to accept one and the same number.
#[tokio::test(start_paused = true)]
async fn one_node_first_try_proposes_the_same_number_to_all_nodes() {
    let (clock, proposed) = (Clock::tokio(), Arc::new(Mutex::new(Vec::new())));
    let nodes = [(); 3].map(|()| {
        let proposed = Arc::clone(&proposed);
        HookedNode::new(clock, move |command| {
            if let Verb::SetNx { .. } = command.verb {
                proposed.lock().unwrap().push(command.fence);
            }
            Fate::Answered
        })
    });
    let shared = Arc::new(HookedNode::shared_of(nodes, clock));
    shared.servers.ballots.believe(Believed::Ours);
    let ours = Acquisition::of_key(&shared, &"order:7".into(), TTL, clock.now());
    ours.resume(Wanted { ttl: TTL, is_fenced: true, is_kept: false, linger: Duration::ZERO });
    assert_eq!(ours.try_one_first(ours.node_timeout()).await, Verdict::Reached);
    let proposed = proposed.lock().unwrap().clone();
    assert!(proposed.len() == 3 && proposed[0].is_some(), "{proposed:?}");
    assert_eq!(proposed[1..], [proposed[0]; 2]);
}

/// One of two nodes that are needed does not answer ballots.
#[tokio::test(start_paused = true)]
async fn shutdown_ends_the_wait_for_a_fencing_number() {
    let clock = Clock::tokio();
    let nodes = [(); 2].map(|()| {
        HookedNode::new(clock, |command| match command.verb {
            Verb::SetNx { .. } | Verb::Release { .. } => Fate::Answered,
            _ => Fate::Unanswered,
        })
    });
    let shared = Arc::new(HookedNode::shared_of(nodes, clock));
    let ours = Acquisition::of_key(&shared, &"order:7".into(), TTL, clock.now());
    ours.resume(Wanted { ttl: TTL, is_fenced: false, is_kept: false, linger: Duration::ZERO });
    ours.try_at_once(clock.now(), TTL).await;
    ours.resume(Wanted { ttl: TTL, is_fenced: true, is_kept: false, linger: Duration::ZERO });
    let begun = clock.now();
    let close = async {
        tokio::task::yield_now().await;
        shared.close();
        shared.changed.notify_waiters();
    };
    let (number, ()) = tokio::join!(ours.numbered(), close);
    assert!(number.is_err());
    assert_eq!(clock.now(), begun, "it has waited for no timer");
}

/// Its guard may be dropped on another thread, while the next local call has the token, and wants the lock exclusively.
#[tokio::test(start_paused = true)]
async fn only_the_current_call_can_downgrade_the_lock() {
    let node = HookedNode::new(Clock::tokio(), |_| Fate::Answered);
    let shared = Arc::new(node.shared());
    let now = shared.clock.now();
    let ours = Acquisition::of_key(&shared, &"order:7".into(), TTL, now);
    ours.try_at_once(now, TTL).await;
    let site = shared.sites.at(Place::unknown(), None).id;
    ours.begin(HoldOptions::default(), site, None, now);
    let turn = ours.turn();
    assert!(!ours.lower(turn.wrapping_add(1), || {}));
    assert!(ours.lower(turn, || {}));
    assert!(!ours.lower(turn, || {}), "once");
}

/// Ten thousand held locks should take at most 1 KiB each on three nodes; `benches/held` measures it, with the names of
/// the keys and the local queue.
#[test]
fn held_lock_uses_little_memory() {
    let of_each_node = Candidate::BYTES_PER_NODE + size_of::<Queue<Pending>>();
    assert!(of_each_node <= 80, "{of_each_node} bytes of each node");
    let of_itself = size_of::<Acquisition>() + size_of::<Subject>();
    assert!(of_itself <= 392, "{of_itself} bytes");
}
