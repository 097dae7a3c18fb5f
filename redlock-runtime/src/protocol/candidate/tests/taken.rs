//! Tests of the knowledge about other owners of the lock.

use super::*;
use crate::protocol::command::Occupant;

const LEFT: Duration = Duration::from_secs(5);
const QUEUED_FOR: Reply = Reply::Queued { left: Some(LEFT), rank: 0 };

#[test]
fn lock_is_expected_free_when_enough_other_leases_end() {
    let longer = Reply::Queued { left: Some(LEFT * 2), rank: 0 };
    let unknown = Reply::Queued { left: None, rank: 0 };
    let table: [(&[Option<Reply>], Option<Duration>); 8] = [
        (&[Some(QUEUED_FOR)], Some(LEFT)),
        (&[Some(unknown.clone())], None),
        (&[None], None),
        (&[Some(GRANTED), Some(QUEUED_FOR), None], Some(LEFT)),
        (&[Some(longer.clone()), Some(QUEUED_FOR), None], Some(LEFT * 2)),
        (&[Some(longer.clone()), Some(QUEUED_FOR), Some(QUEUED_FOR)], Some(LEFT)),
        (&[Some(longer.clone()), Some(unknown.clone()), None], None),
        (&[Some(GRANTED), Some(GRANTED), Some(longer.clone())], Some(Duration::ZERO)),
    ];
    for (replies, expected) in table {
        let mut scene = Scene::waiting(replies.len());
        for (node, reply) in replies.iter().enumerate() {
            scene.send(node, ACQUIRE);
            if let Some(reply) = reply {
                scene.answer(node, Ok(reply.clone()));
            }
        }
        let left = |scene: &Scene| scene.candidate.free_from(scene.now).map(|at| at.since(scene.now));
        assert_eq!(left(&scene), expected, "{replies:?}");
        scene.advance(LEFT);
        assert_eq!(left(&scene), expected.map(|left| left.saturating_sub(LEFT)), "{replies:?}, later");
    }
}

#[test]
fn node_with_an_own_vote_counts_as_free() {
    let mut scene = Scene::waiting(1);
    scene.hear(0, ACQUIRE, QUEUED_FOR);
    scene.claim(0);
    assert_eq!(scene.candidate.free_from(scene.now), Some(scene.now));
    scene.hear(0, YIELD, Reply::Yielded { left: Some(LEFT) });
    assert_eq!(scene.candidate.free_from(scene.now), Some(scene.now.after(LEFT)));
    scene.fail(0, ACQUIRE, disconnected());
    assert_eq!(scene.candidate.free_from(scene.now), None, "whoever has it");
}

#[test]
fn occupants_found_after_a_try_decide_when_the_lock_is_free() {
    let mut scene = Scene::new(3);
    for node in [0, 1] {
        scene.hear(node, SET, Reply::Taken);
    }
    assert_eq!(scene.candidate.free_from(scene.now), None);
    for (node, left) in [(0, LEFT), (1, LEFT * 2), (2, LEFT)] {
        scene.candidate.found(node, Occupant::Lock(left), scene.now);
    }
    assert_eq!(scene.candidate.free_from(scene.now), Some(scene.now.after(LEFT * 2)), "the third has said nothing");
    assert!(!scene.candidate.is_refused());
    scene.candidate.found(1, Occupant::Nobody, scene.now);
    assert_eq!(scene.candidate.free_from(scene.now), Some(scene.now.after(LEFT)), "gone in the meantime");
    for node in [0, 1] {
        scene.candidate.found(node, Occupant::Data, scene.now);
    }
    assert!(scene.candidate.is_refused());
}
