//! Tests of bodies that begin on proven claims.

use super::*;
use crate::protocol::candidate::waiting::Waited;
use crate::protocol::command::Number;
use crate::protocol::hold_options::HoldOptions;
use crate::protocol::timing::CONFIRM_AFTER;

/// Provable part of a claim that is announced at once: less drift and 2 ms.
const PROVEN: Duration = Duration::from_millis(988);
const EXTENSION: Option<Verb> = Some(EXTEND);

impl Scene {
    /// Announces a claim of node number `node`, with the given length and age in milliseconds.
    fn announce(&mut self, node: usize, length: u64, ago: u64) {
        let from = self.now.before(Duration::from_millis(ago));
        self.candidate.claimed(node, Some(ProvenClaim { length: Duration::from_millis(length), from }), self.now);
    }

    /// Sends the commands that are due. Returns the end of the wait, if it is over.
    fn go_on(&mut self) -> Option<Waited> {
        self.candidate.next_commands(self.now, |_| true, |_| {});
        self.candidate.wait_outcome(self.now)
    }

    /// Returns the remaining time of the lock.
    fn left(&self) -> Duration {
        self.candidate.held_until().map_or(Duration::ZERO, |end| end.since(self.now))
    }

    /// Creates a token that waits, and has the claim of one of three nodes.
    fn with_one_claim() -> Self {
        let mut scene = Self::waiting(3);
        (0..3).for_each(|node| scene.hear(node, ACQUIRE, QUEUED));
        scene.announce(0, 1000, 0);
        assert_eq!((scene.go_on(), scene.wants()), (None, vec![None; 3]), "one is no majority");
        scene
    }

    /// Creates a token that has begun on the claims of two of three nodes, whose extensions are not answered.
    fn begun() -> Self {
        let mut scene = Self::with_one_claim();
        assert!(!scene.candidate.set_followed(scene.now), "it holds nothing yet");
        scene.announce(1, 1000, 0);
        assert_eq!(scene.wants(), [EXTENSION, EXTENSION, None]);
        assert_eq!(scene.go_on(), Some(Waited::Held));
        scene
    }
}

#[test]
fn body_begins_on_claims_and_continues_on_leases() {
    let mut scene = Scene::begun();
    assert!(scene.candidate.counts_claims(scene.now) && scene.candidate.is_held(scene.now));
    assert_eq!(scene.left(), PROVEN);
    scene.answer(0, Ok(EXTENDED));
    assert_eq!(scene.left(), PROVEN, "of two nodes, the other is still a claim");
    scene.answer(1, Ok(EXTENDED));
    assert_eq!((scene.left(), scene.candidate.counts_claims(scene.now)), (scene.provable(), false));
}

#[test]
fn answer_that_denies_a_claim_stops_the_body() {
    let mut scene = Scene::begun();
    scene.answer(0, Ok(EXTENDED));
    scene.answer(1, Ok(Reply::NotOwner));
    assert!(scene.candidate.is_over(scene.now));
}

#[test]
fn unconfirmed_lock_ends_with_its_claims_and_stays_lost() {
    let mut scene = Scene::begun();
    scene.advance(PROVEN);
    assert!(scene.candidate.is_over(scene.now));
    (0..2).for_each(|node| scene.answer(node, Ok(EXTENDED)));
    assert!(scene.candidate.is_over(scene.now), "somebody else may have had it in between");
}

#[test]
fn claims_are_confirmed_together_while_the_body_runs() {
    let mut scene = Scene::with_one_claim();
    scene.announce(1, 1000, 0);
    assert_eq!((scene.wants(), scene.go_on()), (vec![None; 3], Some(Waited::Held)), "the body begins without them");
    assert_eq!(scene.candidate.begin(HoldOptions::default(), scene.now), CONFIRM_AFTER);
    scene.advance(MILLISECOND);
    scene.announce(2, 1000, 0);
    assert_eq!(scene.wants(), vec![None; 3], "a late claim is not confirmed before the others");
    let due = scene.now.before(MILLISECOND).after(CONFIRM_AFTER);
    assert_eq!(scene.candidate.look(scene.now, scene.now, false), Look::DueAt(due));
    scene.now = due;
    let renew = |scene: &mut Scene| {
        let mut asked = Vec::new();
        assert!(scene.candidate.renew(scene.now, scene.now, |out| asked.push((out.index, out.verb))));
        asked
    };
    assert_eq!(renew(&mut scene), [(0, EXTEND), (1, EXTEND)]);
    assert_eq!(scene.wants(), vec![None; 3]);
    (0..2).for_each(|node| scene.answer(node, Ok(EXTENDED)));
    assert_eq!(renew(&mut scene), [(2, EXTEND)], "the late claim comes after them");
    scene.answer(2, Ok(EXTENDED));
    assert_eq!((scene.left(), scene.candidate.counts_claims(scene.now)), (scene.provable(), false));
}

#[test]
fn claims_of_a_task_that_is_not_polled_are_confirmed() {
    let mut scene = Scene::with_one_claim();
    scene.announce(1, 1000, 0);
    scene.now = scene.now.after(CONFIRM_AFTER);
    assert_eq!(scene.candidate.look(scene.now, scene.now, false), Look::Due);
    let mut asked = Vec::new();
    assert!(scene.candidate.renew(scene.now, scene.now, |out| asked.push((out.index, out.verb))));
    assert_eq!(asked, [(0, EXTEND), (1, EXTEND)]);
    assert_eq!(scene.candidate.look(scene.now, scene.now, false), Look::Nothing, "once");
    (0..2).for_each(|node| scene.answer(node, Ok(EXTENDED)));
    assert_eq!((scene.go_on(), scene.left()), (Some(Waited::Held), scene.provable()));
}

#[test]
fn unconfirmed_claims_of_a_lost_lock_need_no_check() {
    let mut scene = Scene::with_one_claim();
    scene.announce(1, 1000, 0);
    assert_eq!(scene.go_on(), Some(Waited::Held));
    scene.advance(PROVEN);
    assert!(scene.candidate.is_over(scene.now));
    assert_eq!(scene.candidate.check_within(scene.now), TTL / 8);
}

#[test]
fn waiting_call_of_the_process_confirms_the_claims_at_once() {
    let mut scene = Scene::with_one_claim();
    scene.announce(1, 1000, 0);
    assert_eq!(scene.go_on(), Some(Waited::Held));
    assert!(scene.candidate.set_followed(scene.now));
    assert_eq!(scene.wants(), [EXTENSION, EXTENSION, None]);
    scene.go_on();
    assert!(!scene.candidate.set_followed(scene.now), "they are on their way");
}

#[test]
fn extensions_are_sent_first_if_a_claim_is_too_short_for_the_call() {
    type Change = fn(&mut Candidate);
    let changes: [(&str, Change); 3] = [
        ("idle time afterwards", |candidate| candidate.linger(Duration::from_secs(1))),
        ("admission lock", |candidate| candidate.mark_as_admission()),
        ("call behind it", |candidate| {
            candidate.set_followed(Instant::from_origin(Duration::ZERO));
        }),
    ];
    for (name, change) in changes {
        let mut scene = Scene::with_one_claim();
        change(&mut scene.candidate);
        scene.announce(1, 1000, 0);
        assert_eq!(scene.wants(), [EXTENSION, EXTENSION, None], "{name}");
    }
    for (name, ago) in [("half of a claim", 480), ("less than half of a claim", 500)] {
        let mut scene = Scene::with_one_claim();
        scene.announce(1, 1000, ago);
        let is_sent_later = scene.wants() == [None, None, None];
        assert_eq!(is_sent_later, ago < 490, "{name}");
    }
}

#[test]
fn later_claim_is_extended() {
    let mut scene = Scene::begun();
    scene.announce(2, 1000, 0);
    assert_eq!(scene.wants(), [None, None, EXTENSION]);
}

/// Length of the claims in milliseconds, their age, whether a number is wanted, and the remaining time of the lock.
/// `None` if the body has to wait for the answers.
type Case = (&'static str, u64, u64, bool, Option<u64>);

#[test]
fn body_begins_only_with_enough_proven_time_left() {
    let table: [Case; 7] = [
        ("at once", 1000, 0, false, Some(988)),
        ("announced late", 1000, 700, false, Some(288)),
        ("announced too late", 1000, 750, false, None),
        ("as short as the ttl of the one before", 300, 0, false, Some(295)),
        ("too short", 200, 0, false, None),
        ("no longer than any claim", 60_000, 0, false, Some(988)),
        ("a number has to be drawn", 1000, 0, true, None),
    ];
    for (name, length, ago, is_fenced, expected) in table {
        let mut scene = Scene::waiting(1);
        scene.candidate.set_fencing_wanted(is_fenced);
        scene.candidate.set_followed(scene.now);
        scene.hear(0, ACQUIRE, QUEUED);
        scene.announce(0, length, ago);
        let waited = scene.go_on();
        assert_eq!(waited.is_some(), expected.is_some(), "{name}");
        assert!(
            expected.is_none_or(|millis| scene.left() == Duration::from_millis(millis)),
            "{name}: {:?}",
            scene.left()
        );
        // The extension is on its way in any case.
        let number = is_fenced.then_some(Number::Accepted(7));
        scene.answer(0, Ok(Reply::Extended { waiters: 0, number }));
        assert!(scene.candidate.wait_outcome(scene.now).is_some() && scene.left() == scene.provable(), "{name}");
    }
}

#[test]
fn claim_lasts_no_longer_than_a_command_in_flight_allows() {
    // A question for the rest of a lease without renewal, which may be executed after the claim began.
    let rest = Duration::from_millis(300);
    for (verb, expected) in [(SET, 988), (ACQUIRE, 988), (EXTEND, 988), (Verb::Extend { ttl: rest }, 295)] {
        let mut scene = Scene::waiting(1);
        let lease_end = scene.candidate.terms().proven_by(verb, scene.now);
        scene.candidate.voters[0].asked(InFlight::new(verb, scene.now, lease_end));
        scene.announce(0, 1000, 0);
        assert_eq!(scene.left(), Duration::from_millis(expected), "{verb:?}");
    }
}

#[test]
fn call_that_keeps_its_key_waits_for_lease_answers() {
    let mut scene = Scene::waiting(1);
    scene.candidate.set_kept_afterwards(true);
    scene.announce(0, 1000, 0);
    assert_eq!(scene.go_on(), None);
    scene.answer(0, Ok(EXTENDED));
    assert_eq!(scene.go_on(), Some(Waited::Held));
}

#[test]
fn call_that_keeps_its_key_does_not_continue_on_inherited_claims() {
    // With a ttl that is short enough for passing a claim on.
    for (is_kept, is_passable) in [(false, true), (true, false)] {
        let mut scene = Scene::waiting(1);
        scene.candidate.terms = Arc::new(LeaseTerms { ttl: CLAIM, ..*scene.candidate.terms() });
        scene.candidate.set_followed(scene.now);
        scene.announce(0, 1000, 0);
        assert_eq!(scene.go_on(), Some(Waited::Held));
        scene.candidate.set_kept_afterwards(is_kept);
        assert_eq!(scene.candidate.is_passable(scene.now), is_passable);
        scene.answer(0, Ok(EXTENDED));
        assert!(scene.candidate.is_passable(scene.now));
    }
}

#[test]
fn lock_held_on_claims_is_checked_until_they_become_leases() {
    for renew in [true, false] {
        let mut scene = Scene::begun();
        let check_within = scene.candidate.begin(HoldOptions { renew, ..HoldOptions::default() }, scene.now);
        assert_eq!(check_within, PROVEN / 8);
        for _ in 0..10 {
            let left = scene.left();
            let next = match scene.candidate.look(scene.now, scene.now, false) {
                Look::DueAt(next) | Look::Later(next) => next,
                Look::Due => {
                    assert!(scene.candidate.renew(scene.now, scene.now, |_| {}));
                    scene.now.after(scene.candidate.check_within(scene.now))
                }
                Look::Nothing => panic!("it is held"),
            };
            assert!(next.since(scene.now) <= left / 8, "{next:?} with {left:?} left");
            scene.now = next;
        }
        (0..2).for_each(|node| scene.answer(node, Ok(EXTENDED)));
        assert_eq!((scene.candidate.answers_due(scene.now), scene.candidate.check_within(scene.now)), (None, TTL / 8));
    }
}

#[test]
fn lock_with_enough_leases_does_not_depend_on_a_late_claim() {
    let mut scene = Scene::holding(2);
    assert_eq!(scene.candidate.depends_on_claims_until(scene.now), None);
    scene = Scene::begun();
    assert_eq!(scene.candidate.depends_on_claims_until(scene.now), scene.candidate.valid_until());
    (0..2).for_each(|node| scene.answer(node, Ok(EXTENDED)));
    scene.announce(2, 1000, 0);
    assert!(scene.candidate.counts_claims(scene.now));
    assert_eq!(scene.candidate.depends_on_claims_until(scene.now), None);
}

#[test]
fn requests_for_the_remaining_lease_do_not_lengthen_it() {
    let mut scene = Scene::begun();
    scene.advance(MILLISECOND);
    scene.candidate.begin(HoldOptions { renew: false, ..HoldOptions::default() }, scene.now);
    let end = scene.candidate.terms().provable(scene.now);
    let mut asked = 0;
    for _ in 0..6 {
        // At some time within a millisecond.
        scene.advance(NODE_TIMEOUT + MILLISECOND / 3);
        scene.candidate.next_commands(scene.now, |_| true, |_| asked += 1);
    }
    assert_eq!(asked, 12, "nobody has answered");
    (0..2).for_each(|node| (0..7).for_each(|_| scene.answer(node, Ok(EXTENDED))));
    assert_eq!(scene.candidate.valid_until(), Some(end));
}

#[test]
fn claim_after_a_yield_proves_nothing() {
    for rule in [None, Some(Rule::YieldVoidsProof)] {
        let mut scene = Scene::waiting(1);
        scene.candidate.terms = Arc::new(LeaseTerms { rules: Rules { without: rule }, ..*scene.candidate.terms() });
        scene.candidate.voters[0].rules = Rules { without: rule };
        scene.send(0, YIELD);
        scene.announce(0, 1000, 0);
        assert_eq!(scene.left().is_zero(), rule.is_none());
        scene.answer(0, Ok(YIELDED));
        assert!(scene.left().is_zero());
    }
}

#[test]
fn tainted_node_proves_nothing() {
    let mut scene = Scene::waiting(1);
    scene.fail(0, YIELD, disconnected());
    scene.announce(0, 1000, 0);
    assert_eq!((scene.left(), scene.go_on()), (Duration::ZERO, Some(Waited::LostMajority)));
}

#[test]
fn clock_step_ends_a_claim_earlier() {
    let mut scene = Scene::begun();
    scene.candidate.on_clock_step(0, Duration::from_millis(300));
    assert_eq!(scene.left(), Duration::from_millis(688));
}

#[test]
fn lock_without_renewal_requests_the_same_extension_for_each_claim() {
    let mut scene = Scene::begun();
    scene.candidate.begin(HoldOptions { renew: false, ..HoldOptions::default() }, scene.now);
    scene.announce(2, 1000, 0);
    assert_eq!(scene.wants(), [None, None, EXTENSION]);
    // The same when the answers are lost with their connections.
    (0..2).for_each(|node| scene.answer(node, Err(disconnected())));
    scene.candidate.connected(0, scene.now);
    assert_eq!(scene.wants(), [EXTENSION, None, EXTENSION]);
}
