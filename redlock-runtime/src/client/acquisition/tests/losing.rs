//! Bodies hear of it when the lock is theirs for a shorter time than they thought.

use super::*;
use std::task::Waker;

#[tokio::test(start_paused = true)]
async fn a_node_that_is_taken_away_wakes_the_body_before_the_older_leases_run_out() {
    // What the node that was renewed with the others says next, and whether the body has to hear of it.
    for (answer, is_woken) in [(Reply::NotOwner, true), (EXTENDED, false)] {
        let mut scene = Scene::holding(3);
        let oldest = scene.standing.held_until().unwrap();
        advance(TTL / 2).await;
        for node in [0, 1] {
            scene.hear(node, EXTEND, EXTENDED);
        }
        scene.standing.watchers.watch(&mut None, Waker::noop());
        scene.hear(0, EXTEND, answer);
        assert_eq!(scene.standing.watchers.called().len(), usize::from(is_woken), "{answer:?}");
        assert_eq!(scene.standing.held_until() == Some(oldest), is_woken, "{answer:?}");
    }
}
