//! A holder that hears that somebody breaks its lock.

use super::*;
use crate::protocol::candidate::ending::Loss;

impl Scene {
    /// Node `node` tells that the lock was broken there; what the holder asks by that.
    fn revoke(&mut self, node: usize) -> Vec<(usize, Verb)> {
        let (now, mut sent) = (self.now(), Vec::new());
        assert!(self.candidate.revoked(node, now));
        self.candidate.renew(now, now, |out| sent.push((out.index, out.verb)));
        sent
    }
}

#[test]
fn it_asks_that_node_at_once_and_believes_no_more_than_the_answers() {
    let mut scene = Scene::holding(3);
    let before = scene.candidate.held_until();
    for node in 0..3 {
        assert_eq!(scene.revoke(node), [(node, EXTEND)]);
        scene.answer(node, Ok(EXTENDED));
    }
    assert!(scene.candidate.held_until() >= before && scene.candidate.is_held(scene.now()), "nothing of it was true");
    assert!(scene.candidate.is_contended(), "but somebody wants it, so that it is not left idle");
}

#[test]
fn it_has_lost_the_lock_when_a_majority_says_so_and_knows_why() {
    for is_told in [true, false] {
        let mut scene = Scene::holding(3);
        for node in 0..2 {
            assert!(scene.candidate.is_held(scene.now()), "a minority");
            if is_told {
                assert!(scene.revoke(node).contains(&(node, EXTEND)));
            } else {
                scene.send(node, EXTEND);
            }
            scene.answer(node, Ok(Reply::NotOwner));
        }
        assert!(!scene.candidate.is_held(scene.now()));
        let expected = if is_told { Loss::Revoked } else { Loss::Taken };
        assert_eq!(scene.candidate.loss(scene.now()), expected);
    }
}

#[test]
fn who_waits_is_told_nothing_by_it() {
    let mut scene = Scene::waiting(3);
    let before = scene.wants();
    assert!(!scene.candidate.revoked(0, scene.now()));
    assert_eq!(scene.wants(), before);
    assert!(!scene.candidate.is_contended());
}
