//! Tests of a token that takes the place of another one.

use super::*;
use crate::protocol::candidate::fencing_number::{Fence, FencingDecision};
use crate::protocol::hold_options::HoldOptions;

/// Creates a token that has the lock at two of three nodes; the third could not be asked, for this reason.
fn scene(missing: NodeError) -> Scene {
    let mut scene = Scene::new(3);
    scene.candidate.adopt();
    (0..2).for_each(|node| scene.hear(node, ADOPT, EXTENDED));
    scene.fail(2, ADOPT, missing);
    let now = scene.now();
    scene.candidate.hold(now);
    scene.candidate.begin(HoldOptions { renew: true, max_hold: None, min_hold: None, window_rest: None }, now);
    scene
}

#[test]
fn unreachable_node_is_asked_to_adopt_until_it_reports_no_lock() {
    for missing in [unreachable(), disconnected()] {
        let (mut scene, adopt) = (scene(missing.clone()), Some(ADOPT));
        assert_eq!((scene.is_won(), scene.renewal()), (true, vec![adopt, adopt, adopt]), "{missing:?}");
        scene.send(2, ADOPT);
        assert_eq!(scene.renewal(), [adopt, adopt, None], "one at a time");
        scene.answer(2, Err(missing.clone()));
        assert_eq!(scene.renewal(), [adopt, adopt, adopt]);
        scene.hear(2, ADOPT, Reply::NotOwner);
        assert_eq!((scene.is_won(), scene.renewal()), (true, vec![adopt, adopt, Some(WIN_BACK)]), "{missing:?}");
    }
}

#[test]
fn returned_node_replaces_a_lost_vote_of_an_adopted_lock() {
    let mut scene = scene(unreachable());
    scene.hear(2, ADOPT, EXTENDED);
    scene.hear(0, ADOPT, Reply::NotOwner);
    assert!(scene.is_won());
    scene.hear(1, ADOPT, Reply::NotOwner);
    assert!(!scene.is_won() && scene.candidate.is_taken());
}

#[test]
fn adopt_at_a_returned_node_carries_the_fencing_number() {
    let mut scene = scene(unreachable());
    let now = scene.now();
    scene.candidate.set_fencing_wanted(true);
    scene.candidate.issue(FencingDecision::Agreed(7), now).unwrap();
    let soon = scene.candidate.valid_until().unwrap();
    let mut sent = Vec::new();
    while sent.len() < 3 {
        let (from, now) = (sent.len(), scene.now());
        assert!(scene.candidate.renew(now, soon, |out| sent.push((out.index, out.verb, out.fence))));
        assert!(sent.len() > from);
        for (node, ..) in &sent[from..] {
            scene.answer(*node, Ok(EXTENDED));
        }
    }
    let said: Vec<_> =
        sent.into_iter().map(|(node, verb, fence)| (node, matches!(verb, Verb::Adopt { .. }), fence)).collect();
    assert_eq!(said, [(0, true, None), (1, true, None), (2, true, Some(Fence::Known(7)))]);
}

#[test]
fn adopted_lock_is_handed_off_like_any_other() {
    let mut scene = scene(unreachable());
    let now = scene.now();
    assert!(scene.candidate.pass(
        Wanted { ttl: TTL, is_fenced: false, is_kept: false, linger: Duration::ZERO },
        LocalBudget { passes: 0, time: Duration::ZERO },
        now
    ));
}
