//! Tests of locks that stay held without a call, and go to the next one.

use super::*;

const LINGER: Duration = Duration::from_secs(2);
const WANTED: Wanted = Wanted { ttl: TTL, is_fenced: false, is_kept: false, linger: LINGER };

/// Creates a lock whose call wants it to linger and has really begun.
fn used() -> Scene {
    let mut scene = Scene::holding(3);
    scene.candidate.linger(LINGER);
    scene.candidate.begin(HoldOptions::default(), scene.now);
    scene
}

impl Scene {
    fn keep(&mut self) -> Option<Duration> {
        let until = self.candidate.keep(self.now);
        until.map(|until| until.since(self.now))
    }

    fn retake(&mut self) -> bool {
        self.candidate.retake(WANTED, self.now)
    }
}

#[test]
fn linger_time_is_limited_by_the_usable_lease() {
    // Passed part of the lease, and the time for which the lock is idle then.
    let left = |passed: u32| Scene::new(1).provable().saturating_sub(TTL / 4 + passed * (TTL / 10));
    for (passed, expected) in [(0, Some(LINGER)), (4, Some(LINGER)), (6, Some(left(6))), (8, None)] {
        let mut scene = used();
        scene.advance(passed * (TTL / 10));
        assert_eq!(scene.keep(), expected, "after {passed} tenths of the ttl");
    }
}

#[test]
fn idle_time_of_a_renewed_lock_is_limited_to_one_ttl() {
    let mut scene = used();
    scene.advance(TTL * 9 / 10);
    (0..3).for_each(|node| scene.hear(node, EXTEND, EXTENDED));
    assert_eq!(scene.keep(), Some(TTL / 10));
    assert!(scene.retake());
    scene.advance(TTL / 10);
    assert!(!scene.retake());
}

/// Change to a held lock, and whether the lock may be idle after it.
type Case = (&'static str, fn(&mut Scene), bool);

#[test]
fn only_a_used_and_uncontended_lock_becomes_idle() {
    let table: [Case; 8] = [
        ("used", |_| {}, true),
        ("without a linger", |scene| scene.candidate.linger(Duration::ZERO), false),
        ("wanted", |scene| scene.candidate.contended(0, false, scene.now), false),
        ("with a least hold", |scene| _ = scene.candidate.begin(least(), scene.now), false),
        ("after its least hold", |scene| (scene.candidate.begin(least(), scene.now), scene.advance(TTL / 5)).1, true),
        ("passed on", |scene| assert!(scene.candidate.pass(WANTED, LocalBudget::default(), scene.now)), false),
        ("taken over", |scene| assert!(scene.candidate.keep(scene.now).is_some() && scene.retake()), false),
        ("ended", |scene| assert!(scene.candidate.end()), false),
    ];
    for (name, change, expected) in table {
        let mut scene = used();
        change(&mut scene);
        assert_eq!(scene.keep().is_some(), expected, "{name}");
    }
    assert_eq!(Scene::holding(3).keep(), None, "nobody has begun");
}

fn least() -> HoldOptions {
    HoldOptions { min_hold: Some(TTL / 5), ..HoldOptions::default() }
}

#[test]
fn idle_lock_is_reused_only_if_still_valid_and_uncontended() {
    let table: [Case; 6] = [
        ("idle", |_| {}, true),
        ("with a new connection to a node", |scene| scene.candidate.connected(1, scene.now), false),
        ("wanted meanwhile", |scene| scene.candidate.contended(1, true, scene.now), false),
        ("with too little left", |scene| scene.advance(TTL * 3 / 4), false),
        (
            "of servers whose clocks went ahead",
            |scene| (0..2).for_each(|node| scene.candidate.on_clock_step(node, TTL)),
            false,
        ),
        ("given back", |scene| assert!(scene.candidate.end()), false),
    ];
    for (name, change, expected) in table {
        let mut scene = used();
        assert!(scene.keep().is_some());
        change(&mut scene);
        assert_eq!(scene.retake(), expected, "{name}");
    }
    let mut scene = used();
    assert!(scene.keep().is_some());
    assert!(!scene.candidate.retake(Wanted { ttl: TTL / 2, ..WANTED }, scene.now), "another ttl");
}

#[test]
fn idle_lock_is_not_renewed() {
    let mut scene = used();
    assert!(scene.keep().is_some());
    scene.advance(TTL / 2);
    assert!(scene.candidate.renew(scene.now, scene.now, |out| panic!("{out:?}")));
}

#[test]
fn asking_token_does_not_prevent_lingering() {
    let mut scene = used();
    assert!(scene.candidate.has_body());
    scene.candidate.asked(0, true);
    assert!(scene.keep().is_some() && !scene.candidate.has_body());
    assert!(scene.retake() && !scene.candidate.has_body(), "the next call has not begun");
    scene.candidate.begin(HoldOptions::default(), scene.now);
    assert!(scene.candidate.has_body());
    assert!(scene.candidate.end() && !scene.candidate.has_body());
}

#[test]
fn asking_token_stops_waiting_after_a_busy_reply() {
    let mut scene = Scene::waiting(3);
    let limit = Some(scene.now.after(NODE_TIMEOUT));
    assert!(scene.candidate.wait_until(limit, scene.now).is_ok());
    scene.candidate.busy();
    assert_eq!(scene.candidate.wait_until(limit, scene.now), Err(Waited::TimedOut));
}
