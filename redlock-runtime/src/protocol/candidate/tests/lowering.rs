//! Tests of a lock that its token has downgraded.

use super::*;
use crate::protocol::hold_options::HoldOptions;

const RENEWED: HoldOptions = HoldOptions { renew: true, ..HoldOptions::UNTIL_BEGUN };

impl Scene {
    /// Downgrades the lock. Returns the commands that inform the nodes.
    fn lower(&mut self) -> Vec<(usize, Verb)> {
        let (now, mut sent) = (self.now(), Vec::new());
        self.candidate.lower();
        self.candidate.send_downgrade(now, |out| sent.push((out.index, out.verb)));
        sent
    }
}

#[test]
fn downgrade_is_sent_to_voters_at_once_and_to_other_nodes_later() {
    let mut scene = Scene::new(3);
    (0..2).for_each(|node| scene.hear(node, SET, GRANTED));
    scene.fail(2, SET, unreachable());
    let now = scene.now();
    scene.candidate.hold(now);
    scene.candidate.begin(RENEWED, now);
    let end = scene.candidate.held_until();
    assert_eq!(scene.lower(), [(0, EXTEND), (1, EXTEND)]);
    assert!(scene.candidate.is_lowered() && scene.candidate.held_until() == end, "nothing that was proven ends");
    assert!(scene.voter(2).is_due(scene.now()), "it is asked with the next look");
}

#[test]
fn downgrade_is_sent_despite_an_extension_in_flight() {
    let mut scene = Scene::holding(1);
    scene.send(0, EXTEND);
    assert_eq!(scene.lower(), [(0, EXTEND)], "the one before names the mode before");
}

#[test]
fn downgraded_lock_is_neither_handed_off_nor_idle() {
    let wanted = Wanted { ttl: TTL, is_fenced: false, is_kept: false, linger: Duration::ZERO };
    let mut scene = Scene::holding(1);
    let now = scene.now();
    scene.candidate.begin(RENEWED, now);
    scene.candidate.linger(TTL);
    let mut other = scene.clone();
    assert!(other.candidate.keep(now).is_some());
    let mut other = scene.clone();
    assert!(other.candidate.pass(wanted, LocalBudget::default(), now));
    scene.lower();
    assert_eq!(scene.candidate.keep(now), None);
    assert!(!scene.candidate.pass(wanted, LocalBudget::default(), now));
}

#[test]
fn expired_lock_sends_no_downgrade() {
    let mut scene = Scene::holding(1);
    scene.advance(TTL);
    assert_eq!(scene.lower(), []);
}
