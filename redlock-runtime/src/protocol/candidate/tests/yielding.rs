//! Tests of yields to smaller tokens, and of the uncertainty after them.

use super::*;

/// Creates a token that has the first of `nodes` nodes, where a smaller token waits.
fn beaten(nodes: usize) -> Scene {
    let mut scene = Scene::waiting(nodes);
    scene.hear(0, ACQUIRE, BEATEN);
    scene
}

#[test]
fn minority_is_yielded_at_once_and_a_majority_never() {
    /// Answers of three nodes, and the next commands for them.
    type Row = ([Option<Reply>; 3], [Option<Verb>; 3]);
    let (vote, first) = (Some(GRANTED), Some(BEATEN));
    let (ask, confirm, give) = (Some(ACQUIRE), Some(EXTEND), Some(YIELD));
    let first = || first.clone();
    let table: [Row; 6] = [
        ([None, None, None], [ask, ask, ask]),
        ([vote, None, None], [None, ask, ask]),
        ([first(), None, None], [give, ask, ask]),
        ([first(), Some(QUEUED), None], [give, None, ask]),
        ([first(), Some(QUEUED), Some(QUEUED)], [give, None, None]),
        // With a majority of votes whose leases are long enough, no further command is needed.
        ([first(), first(), None], [None, None, None]),
    ];
    for (replies, expected) in table {
        let mut scene = Scene::waiting(3);
        for (node, reply) in replies.iter().enumerate() {
            if let Some(reply) = reply {
                scene.hear(node, ACQUIRE, reply.clone());
            }
        }
        assert_eq!(scene.wants(), expected, "{replies:?}");
    }
    let mut scene = Scene::waiting(3);
    (0..2).for_each(|node| scene.claim(node));
    assert_eq!(scene.wants(), [confirm, confirm, None], "the third one is not asked while the others are confirmed");
}

#[test]
fn waiter_yields_only_to_a_smaller_token() {
    for is_smaller in [false, true] {
        let mut scene = Scene::waiting(3);
        scene.hear(0, ACQUIRE, GRANTED);
        let now = scene.now();
        scene.candidate.contended(0, is_smaller, now);
        assert_eq!(scene.wants()[0], is_smaller.then_some(YIELD));
    }
}

#[test]
fn holder_yields_nothing() {
    let mut scene = Scene::holding(3);
    let now = scene.now();
    (0..3).for_each(|node| scene.candidate.contended(node, true, now));
    assert_eq!(scene.wants(), [None, None, None]);
}

#[test]
fn grant_before_a_yield_does_not_count_after_it() {
    for late in [EXTENDED, GRANTED] {
        let mut scene = beaten(3);
        scene.send(0, EXTEND);
        scene.send(0, YIELD);
        scene.answer(0, Ok(late.clone()));
        assert_eq!((scene.vote(0), scene.voter(0).lease_end()), (Vote::Open, None), "{late:?}");
        scene.answer(0, Ok(YIELDED));
        assert_eq!((scene.vote(0), scene.voter(0).lease_end()), (Vote::TAKEN, None), "{late:?}");
    }
}

#[test]
fn nothing_is_sent_after_a_yield_until_it_is_answered() {
    let mut scene = beaten(1);
    scene.send(0, YIELD);
    scene.claim(0);
    for _ in 0..3 {
        assert_eq!(scene.wants(), [None]);
        scene.advance(Duration::from_secs(2));
        let now = scene.now();
        scene.candidate.tick(now);
    }
    scene.answer(0, Ok(YIELDED));
    assert_eq!(scene.wants(), [Some(ACQUIRE)], "the claim may have been newer or older: the node is asked again");
}

#[test]
fn kept_vote_must_be_confirmed() {
    let mut scene = beaten(1);
    scene.send(0, YIELD);
    scene.answer(0, Ok(Reply::Kept));
    assert!(!scene.is_won(), "its expiry is what it was, which nobody knows");
    assert_eq!(scene.wants(), [Some(EXTEND)]);
}

#[test]
fn yield_with_an_unknown_outcome_taints_its_node_forever() {
    let table: [(NodeError, bool); 6] = [
        (disconnected(), true),
        (NodeError::TimedOut(NODE_TIMEOUT), true),
        (NodeError::UnexpectedReply("".into()), true),
        // These commands were not executed, and never will be.
        (unreachable(), false),
        (NodeError::Stalled(NODE_TIMEOUT), false),
        (NodeError::Refused("NOPERM".into()), false),
    ];
    for (error, is_tainted) in table {
        let mut scene = beaten(1);
        scene.fail(0, YIELD, error.clone());
        assert_eq!(
            (scene.voter(0).is_tainted, scene.candidate.has_lost_its_majority(scene.now())),
            (is_tainted, is_tainted),
            "{error:?}"
        );
        scene.advance(Duration::from_secs(1));
        assert_eq!(scene.wants() == [Some(ACQUIRE)], !is_tainted, "{error:?}");
    }
}

#[test]
fn tainted_nodes_never_vote_and_too_many_of_them_lose_the_majority() {
    let mut scene = beaten(3);
    scene.fail(0, YIELD, disconnected());
    assert!(!scene.candidate.has_lost_its_majority(scene.now()), "two others can still make a majority");
    scene.claim(0);
    scene.claim(1);
    assert_eq!(scene.wants()[..2], [None, None], "one vote, not two");
    scene.hear(1, EXTEND, EXTENDED);
    assert!(!scene.is_won());
    scene.claim(2);
    scene.hear(2, EXTEND, EXTENDED);
    assert!(scene.is_won());
    let mut scene = beaten(3);
    scene.hear(1, ACQUIRE, BEATEN);
    (0..2).for_each(|node| scene.fail(node, YIELD, disconnected()));
    assert!(scene.candidate.has_lost_its_majority(scene.now()));
    let mut scene = beaten(3);
    scene.fail(0, YIELD, disconnected());
    scene.fail(1, ACQUIRE, disconnected());
    assert!(scene.candidate.has_lost_its_majority(scene.now()), "one that is away must not be waited for");
}
