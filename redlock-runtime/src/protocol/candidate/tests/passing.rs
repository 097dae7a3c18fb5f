//! Tests of the limits for passing a lock on within the process.

use super::*;

const WANTED: Wanted = Wanted { ttl: TTL, is_fenced: false, is_kept: false, linger: Duration::ZERO };
const BUDGET: LocalBudget = LocalBudget { passes: 3, time: Duration::from_millis(20) };

fn pass(scene: &mut Scene) -> bool {
    let now = scene.now();
    scene.candidate.pass(WANTED, BUDGET, now)
}

fn passes(scene: &mut Scene) -> usize {
    (0..100).take_while(|_| pass(scene)).count()
}

fn contend(scene: &mut Scene) {
    let now = scene.now();
    scene.candidate.contended(0, false, now);
}

#[test]
fn uncontended_lock_is_handed_off_for_at_most_one_ttl() {
    let mut scene = Scene::holding(3);
    for _ in 0..10 {
        assert_eq!(passes(&mut scene), 100);
        // The lease is extended, and still the token is not passed on forever.
        scene.advance((TTL / 10).saturating_sub(MILLISECOND));
        (0..3).for_each(|node| scene.hear(node, EXTEND, EXTENDED));
    }
    assert!(pass(&mut scene));
    scene.advance(Duration::from_millis(10));
    assert!(!pass(&mut scene) && scene.is_won());
}

#[test]
fn contended_lock_is_handed_off_a_few_times() {
    type Learn = fn(&mut Scene);
    let ways: [(&str, Learn); 3] = [
        ("a wake-up", contend),
        ("an extension", |scene| scene.hear(0, EXTEND, Reply::Extended { waiters: 1, number: None })),
        ("a refusal", |scene| scene.hear(2, EXTEND, Reply::Taken)),
    ];
    for (how, learn) in ways {
        let mut scene = Scene::holding(3);
        assert_eq!(passes(&mut scene), 100, "those before do not count");
        learn(&mut scene);
        assert_eq!(passes(&mut scene), 3, "{how}");
    }
}

#[test]
fn contended_lock_is_handed_off_for_a_short_time() {
    let mut scene = Scene::holding(3);
    contend(&mut scene);
    scene.advance(BUDGET.time.saturating_sub(MILLISECOND));
    // More of them wait; the time counts from the first.
    contend(&mut scene);
    assert!(pass(&mut scene));
    scene.advance(MILLISECOND);
    assert!(!pass(&mut scene));
}

#[test]
fn wait_time_does_not_count_against_the_hand_off_budget() {
    let mut scene = Scene::waiting(1);
    scene.hear(0, ACQUIRE, QUEUED);
    scene.advance(BUDGET.time * 10);
    scene.hear(0, ACQUIRE, GRANTED);
    let now = scene.now();
    scene.candidate.hold(now);
    assert!(scene.candidate.is_contended());
    assert_eq!(passes(&mut scene), 3);
}

#[test]
fn contended_lock_is_not_handed_off_without_a_budget() {
    let none = LocalBudget { passes: 0, ..BUDGET };
    let mut scene = Scene::holding(1);
    let now = scene.now();
    assert!(scene.candidate.pass(WANTED, none, now));
    contend(&mut scene);
    assert!(!scene.candidate.pass(WANTED, none, now));
}

#[test]
fn queue_place_is_handed_off_and_a_first_try_is_not() {
    for (phase, expected) in [(Phase::Waiting, true), (Phase::Trying, false), (Phase::Ended, false)] {
        let mut scene = Scene::holding(1);
        scene.candidate.phase = phase;
        assert_eq!(pass(&mut scene), expected, "{phase:?}");
    }
}

#[test]
fn expired_lease_is_not_handed_off() {
    let mut scene = Scene::holding(1);
    let valid = scene.provable();
    scene.advance(valid.saturating_sub(MILLISECOND));
    assert!(pass(&mut scene));
    assert!(!scene.candidate.is_passable(scene.now()), "but too little is left for a whole body");
    scene.advance(MILLISECOND);
    assert!(!pass(&mut scene));
}

#[test]
fn hand_off_requires_a_quarter_of_the_ttl() {
    let mut scene = Scene::holding(3);
    let valid = scene.provable();
    scene.advance(valid.saturating_sub(TTL / 4 + MILLISECOND));
    assert!(scene.candidate.is_passable(scene.now()));
    scene.advance(MILLISECOND);
    assert!(!scene.candidate.is_passable(scene.now()));
    (0..2).for_each(|node| scene.hear(node, EXTEND, EXTENDED));
    assert!(scene.candidate.is_passable(scene.now()));
}

#[test]
fn superseded_lock_stays_lost_despite_later_answers() {
    let mut scene = Scene::holding(1);
    scene.candidate.phase = Phase::Superseded;
    scene.hear(0, EXTEND, EXTENDED);
    assert_eq!((scene.candidate.held_until(), scene.is_won()), (None, false));
    assert_eq!(scene.wants(), [None]);
}
