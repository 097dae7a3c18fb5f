//! Tests that a body is notified when its lock ends earlier than it assumed.

use super::*;

#[test]
fn lost_vote_shortens_the_hold_to_the_oldest_lease() {
    // Next reply of the node that was renewed with the others, and whether less time is left.
    for (answer, is_less) in [(Reply::NotOwner, true), (EXTENDED, false)] {
        let mut scene = Scene::holding(3);
        let oldest = scene.candidate.held_until().unwrap();
        scene.advance(TTL / 2);
        for node in [0, 1] {
            scene.hear(node, EXTEND, EXTENDED);
        }
        let before = scene.candidate.held_until();
        scene.hear(0, EXTEND, answer.clone());
        assert_eq!(scene.candidate.held_until() < before, is_less, "{answer:?}");
        assert_eq!(scene.candidate.held_until() == Some(oldest), is_less, "{answer:?}");
    }
}
