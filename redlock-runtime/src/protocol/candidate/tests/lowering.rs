//! Tests of a lock that its token has downgraded.

use super::*;
use crate::protocol::hold_options::HoldOptions;

const RENEWED: HoldOptions = HoldOptions { renew: true, ..HoldOptions::UNTIL_BEGUN };

impl Scene {
    /// Downgrades the lock. Returns the commands that inform the nodes.
    fn lower(&mut self) -> Vec<(usize, Verb)> {
        let (now, mut sent) = (self.now(), Vec::new());
        self.candidate.lower();
        self.candidate.tell_lowered(now, |out| sent.push((out.index, out.verb)));
        sent
    }
}

#[test]
fn every_node_that_has_voted_is_told_and_the_others_as_soon_as_they_can_be() {
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
fn an_extension_on_its_way_does_not_keep_a_node_from_being_told() {
    let mut scene = Scene::holding(1);
    scene.send(0, EXTEND);
    assert_eq!(scene.lower(), [(0, EXTEND)], "the one before names the mode before");
}

#[test]
fn it_goes_to_no_other_call() {
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
fn a_lock_that_is_over_tells_nobody() {
    let mut scene = Scene::holding(1);
    scene.advance(TTL);
    assert_eq!(scene.lower(), []);
}
