//! How long a lock may be passed on within the process.

use super::*;
use crate::request::LocalBudget;

const BUDGET: LocalBudget = LocalBudget { passes: 3, time: Duration::from_millis(20) };

fn pass(scene: &mut Scene) -> bool {
    let now = scene.now();
    scene.standing.pass(now, BUDGET)
}

fn passes(scene: &mut Scene) -> usize {
    (0..100).take_while(|_| pass(scene)).count()
}

fn contend(scene: &mut Scene) {
    let now = scene.now();
    scene.standing.contended(0, false, now);
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_nobody_else_wants_is_passed_on_for_one_ttl_in_all() {
    let mut scene = Scene::holding(3);
    for _ in 0..10 {
        assert_eq!(passes(&mut scene), 100);
        // The lease is made longer, and still the token is not passed on for ever.
        advance((TTL / 10).saturating_sub(MILLISECOND)).await;
        (0..3).for_each(|node| scene.hear(node, EXTEND, EXTENDED));
    }
    assert!(pass(&mut scene));
    advance(Duration::from_millis(10)).await;
    assert!(!pass(&mut scene) && scene.is_won());
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_others_want_is_passed_on_a_few_times() {
    type Learn = fn(&mut Scene);
    let ways: [(&str, Learn); 3] = [
        ("a wake-up", contend),
        ("an extension", |scene| scene.hear(0, EXTEND, Reply::Extended { waiters: 1, number: None })),
        ("a refusal", |scene| scene.hear(2, EXTEND, Reply::Held)),
    ];
    for (how, learn) in ways {
        let mut scene = Scene::holding(3);
        assert_eq!(passes(&mut scene), 100, "those before do not count");
        learn(&mut scene);
        assert_eq!(passes(&mut scene), 3, "{how}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_others_want_is_passed_on_for_a_short_time() {
    let mut scene = Scene::holding(3);
    contend(&mut scene);
    advance(BUDGET.time.saturating_sub(MILLISECOND)).await;
    // More of them wait; the time counts from the first.
    contend(&mut scene);
    assert!(pass(&mut scene));
    advance(MILLISECOND).await;
    assert!(!pass(&mut scene));
}

#[tokio::test(start_paused = true)]
async fn what_the_wait_has_taken_is_not_counted() {
    let mut scene = Scene::waiting(1).await;
    scene.hear(0, ACQUIRE, QUEUED);
    advance(BUDGET.time * 10).await;
    scene.hear(0, ACQUIRE, GRANTED);
    let now = scene.now();
    scene.standing.hold(now);
    assert!(scene.standing.is_contended());
    assert_eq!(passes(&mut scene), 3);
}

#[tokio::test(start_paused = true)]
async fn no_budget_is_no_pass_while_others_wait() {
    let none = LocalBudget { passes: 0, ..BUDGET };
    let mut scene = Scene::holding(1);
    let now = scene.now();
    assert!(scene.standing.pass(now, none));
    contend(&mut scene);
    assert!(!scene.standing.pass(now, none));
}

#[tokio::test(start_paused = true)]
async fn a_place_in_the_queue_is_passed_on_and_a_first_try_is_not() {
    for (phase, expected) in [(Phase::Waiting, true), (Phase::Claiming, false), (Phase::Left, false)] {
        let mut scene = Scene::holding(1);
        scene.standing.phase = phase;
        assert_eq!(pass(&mut scene), expected, "{phase:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_has_run_out_is_not_passed_on() {
    let mut scene = Scene::holding(1);
    let valid = scene.provable();
    advance(valid.saturating_sub(MILLISECOND)).await;
    assert!(pass(&mut scene));
    assert!(!scene.standing.is_passable(scene.now()), "but too little is left for a whole body");
    advance(MILLISECOND).await;
    assert!(!pass(&mut scene));
}

#[tokio::test(start_paused = true)]
async fn a_quarter_of_the_ttl_must_be_left_for_the_next() {
    let mut scene = Scene::holding(3);
    let valid = scene.provable();
    advance(valid.saturating_sub(TTL / 4 + MILLISECOND)).await;
    assert!(scene.standing.is_passable(scene.now()));
    advance(MILLISECOND).await;
    assert!(!scene.standing.is_passable(scene.now()));
    (0..2).for_each(|node| scene.hear(node, EXTEND, EXTENDED));
    assert!(scene.standing.is_passable(scene.now()));
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_was_taken_over_stays_lost_whatever_the_nodes_say_later() {
    let mut scene = Scene::holding(1);
    scene.standing.phase = Phase::Forfeited;
    scene.hear(0, EXTEND, EXTENDED);
    assert_eq!((scene.standing.held_until(), scene.is_won()), (None, false));
    assert_eq!(scene.wants(), [None]);
}
