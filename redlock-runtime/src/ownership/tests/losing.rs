//! Bodies hear of it when the lock is theirs for a shorter time than they thought.

use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

#[derive(Default)]
struct Body(AtomicBool);

impl Wake for Body {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

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
        let body = Arc::new(Body::default());
        scene.standing.watchers.watch(&mut None, &Waker::from(Arc::clone(&body)));
        scene.hear(0, EXTEND, answer);
        assert_eq!(body.0.load(Ordering::Relaxed), is_woken, "{answer:?}");
        assert_eq!(scene.standing.held_until() == Some(oldest), is_woken, "{answer:?}");
    }
}
