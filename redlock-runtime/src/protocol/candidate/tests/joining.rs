//! Tests of other local calls that join the present users of a shared lock.

use super::*;

const WANTED: Wanted = Wanted { ttl: TTL, is_fenced: false, is_kept: false, linger: Duration::ZERO };
const BUDGET: LocalBudget = LocalBudget { passes: 3, time: Duration::from_millis(20) };

fn join(scene: &mut Scene) -> bool {
    let now = scene.now();
    scene.candidate.join(WANTED, BUDGET, now)
}

fn joins(scene: &mut Scene) -> usize {
    (0..100).take_while(|_| join(scene)).count()
}

#[test]
fn lock_without_waiting_writers_is_joined_for_at_most_one_ttl() {
    let mut scene = Scene::holding(3);
    for _ in 0..10 {
        assert_eq!(joins(&mut scene), 100);
        scene.advance((TTL / 10).saturating_sub(MILLISECOND));
        (0..3).for_each(|node| scene.hear(node, EXTEND, EXTENDED));
    }
    assert!(join(&mut scene));
    scene.advance(Duration::from_millis(10));
    assert!(!join(&mut scene) && scene.is_won());
}

#[test]
fn joining_reader_keeps_the_renewal_terms_of_the_lock() {
    let mut scene = Scene::holding(1);
    let now = scene.now();
    scene.candidate.begin(HoldOptions { renew: true, ..HoldOptions::UNTIL_BEGUN }, now);
    assert!(join(&mut scene));
    assert!(scene.candidate.has_body() && scene.candidate.renewed_until().is_some());
}

#[test]
fn lock_with_a_waiting_writer_is_joined_only_within_the_budget() {
    let mut scene = Scene::holding(3);
    assert_eq!(joins(&mut scene), 100, "those before do not count");
    let now = scene.now();
    scene.candidate.contended(0, false, now);
    let mut late = scene.clone();
    assert_eq!(joins(&mut scene), 3);
    late.advance(BUDGET.time.saturating_sub(MILLISECOND));
    let now = late.now();
    late.candidate.contended(1, false, now);
    assert!(join(&mut late), "the time counts from the first");
    late.advance(MILLISECOND);
    assert!(!join(&mut late));
}

#[test]
fn reader_with_different_options_does_not_join() {
    let other = Wanted { ttl: TTL / 2, ..WANTED };
    for wanted in [other, Wanted { is_fenced: true, ..WANTED }, Wanted { is_kept: true, ..WANTED }] {
        let mut scene = Scene::holding(1);
        let now = scene.now();
        assert!(!scene.candidate.join(wanted, BUDGET, now), "{wanted:?}");
        assert!(join(&mut scene));
    }
}

#[test]
fn only_a_held_lock_is_joined() {
    for phase in [Phase::Trying, Phase::Waiting, Phase::Superseded, Phase::Ended] {
        let mut scene = Scene::holding(1);
        scene.candidate.phase = phase;
        assert!(!join(&mut scene), "{phase:?}");
    }
}

#[test]
fn reader_joins_only_with_a_quarter_of_the_ttl_left() {
    let mut scene = Scene::holding(3);
    let valid = scene.provable();
    scene.advance(valid.saturating_sub(TTL / 4 + MILLISECOND));
    assert!(join(&mut scene));
    scene.advance(MILLISECOND);
    assert!(!join(&mut scene));
    (0..2).for_each(|node| scene.hear(node, EXTEND, EXTENDED));
    assert!(join(&mut scene));
}

#[test]
fn reader_does_not_join_after_the_end_time_of_the_lock() {
    let mut scene = Scene::holding(1);
    let now = scene.now();
    scene.candidate.set_must_end(Some(now.after(MILLISECOND)));
    assert!(join(&mut scene));
    scene.advance(MILLISECOND);
    assert!(!join(&mut scene));
    scene.candidate.set_must_end(None);
    assert!(join(&mut scene));
}

#[test]
fn lock_that_may_be_broken_is_not_joined() {
    let mut scene = Scene::holding(1);
    let now = scene.now();
    scene.candidate.revoked(0, now);
    assert!(!join(&mut scene));
}
