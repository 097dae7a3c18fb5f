//! Tests of the effects of answers and of silence.

use super::*;

#[test]
fn answers_of_partial_rounds_are_combined() {
    type Step = (Verb, Answer);
    let table: [(&str, &[Step], Vote, Option<u32>); 9] = [
        ("a grant", &[(SET, Ok(GRANTED))], Vote::CLAIM, Some(0)),
        ("a place in the queue", &[(ACQUIRE, Ok(QUEUED))], Vote::TAKEN, None),
        ("silence changes nothing", &[(SET, Ok(GRANTED)), (EXTEND, Err(disconnected()))], Vote::CLAIM, Some(0)),
        ("a later answer raises the end", &[(SET, Ok(GRANTED)), (EXTEND, Ok(EXTENDED))], Vote::CLAIM, Some(1)),
        ("\"not yours\" takes the node out", &[(SET, Ok(GRANTED)), (EXTEND, Ok(Reply::NotOwner))], Vote::TAKEN, None),
        ("a first answer may be an error", &[(SET, Err(unreachable()))], Vote::Failed, None),
        ("a later one makes it good", &[(SET, Err(disconnected())), (ACQUIRE, Ok(GRANTED))], Vote::CLAIM, Some(1)),
        ("what is kept is a vote", &[(ACQUIRE, Ok(BEATEN)), (YIELD, Ok(Reply::Kept))], Vote::CLAIM, None),
        (
            "and a lease again when extended",
            &[(ACQUIRE, Ok(BEATEN)), (YIELD, Ok(Reply::Kept)), (EXTEND, Ok(EXTENDED))],
            Vote::CLAIM,
            Some(2),
        ),
    ];
    for (what, steps, vote, proven_by) in table {
        let mut scene = Scene::new(1);
        let mut ends = Vec::new();
        for (verb, answer) in steps {
            ends.push(TERMS.provable(scene.now()));
            scene.send(0, *verb);
            scene.advance(Duration::from_millis(10));
            scene.answer(0, answer.clone());
        }
        let end = proven_by.map(|step| ends[step as usize]);
        assert_eq!((scene.vote(0), scene.voter(0).lease_end()), (vote, end), "{what}");
    }
}

#[test]
fn lease_is_counted_from_the_send_time() {
    let mut scene = Scene::new(1);
    let proven = TERMS.provable(scene.now());
    scene.send(0, SET);
    scene.advance(TTL / 2);
    scene.answer(0, Ok(GRANTED));
    assert_eq!(scene.candidate.valid_until(), Some(proven));
}

/// Error of a script that has failed after a part of it.
fn raised() -> NodeError {
    NodeError::Refused(ErrorReply::raised("NOPERM"))
}

#[test]
fn release_is_sent_to_every_node_that_may_know_the_token() {
    let table: [(Verb, Answer, bool); 23] = [
        (SET, Ok(GRANTED), true),
        (SET, Ok(Reply::Taken), false),
        (SET, Err(disconnected()), true),
        (SET, Err(NodeError::TimedOut(NODE_TIMEOUT)), true),
        (SET, Err(NodeError::UnexpectedReply("".into())), true),
        (SET, Err(NodeError::NotReplicated { acked: 0, wanted: 1 }), true),
        (SET, Err(unreachable()), false),
        (SET, Err(NodeError::Stalled(NODE_TIMEOUT)), false),
        (SET, Err(NodeError::Refused("READONLY".into())), false),
        (SET, Err(raised()), true),
        (ACQUIRE, Err(raised()), true),
        (ACQUIRE, Err(NodeError::Refused("NOPERM".into())), false),
        (ADOPT, Err(raised()), true),
        (ACQUIRE, Ok(GRANTED), true),
        (ACQUIRE, Ok(QUEUED), true),
        (ACQUIRE, Err(disconnected()), true),
        (ACQUIRE, Err(unreachable()), false),
        (EXTEND, Ok(Reply::NotOwner), false),
        (ADOPT, Ok(EXTENDED), true),
        (ADOPT, Ok(Reply::NotOwner), false),
        (ADOPT, Err(disconnected()), true),
        (ADOPT, Err(unreachable()), false),
        (YIELD, Err(disconnected()), true),
    ];
    for (verb, answer, may_know) in table {
        let mut scene = Scene::new(1);
        scene.send(0, verb);
        assert!(scene.voter(0).may_know(), "an answer that is still to come");
        let shown = format!("{verb:?}: {answer:?}");
        scene.answer(0, answer);
        assert_eq!(scene.voter(0).may_know(), may_know, "{shown}");
    }
}

#[test]
fn only_a_release_removes_a_token_from_the_queue() {
    let mut scene = Scene::waiting(1);
    scene.hear(0, ACQUIRE, QUEUED);
    for (verb, answer) in [(EXTEND, Ok(Reply::NotOwner)), (ACQUIRE, Err(unreachable())), (ACQUIRE, Ok(QUEUED))] {
        scene.send(0, verb);
        scene.answer(0, answer);
        assert!(scene.voter(0).may_know(), "{verb:?}");
    }
    let mut scene = Scene::waiting(1);
    scene.claim(0);
    scene.hear(0, EXTEND, Reply::NotOwner);
    assert!(scene.voter(0).may_know(), "the token stands in the queue for as long as anybody can tell");
}

#[test]
fn unsent_later_command_does_not_undo_an_earlier_one() {
    let mut scene = Scene::new(1);
    scene.fail(0, SET, disconnected());
    scene.fail(0, EXTEND, unreachable());
    assert!(scene.voter(0).may_know());
    let mut scene = Scene::new(1);
    scene.fail(0, SET, unreachable());
    scene.fail(0, SET, unreachable());
    assert!(!scene.voter(0).may_know());
    let mut scene = Scene::new(1);
    scene.send(0, SET);
    scene.send(0, EXTEND);
    scene.answer(0, Ok(Reply::Taken));
    assert!(scene.voter(0).may_know(), "the second one is still on its way");
}

#[test]
fn majority_of_the_leases_decides_instead_of_the_votes() {
    let mut scene = Scene::waiting(3);
    scene.hear(0, ACQUIRE, GRANTED);
    assert!(!scene.is_won());
    scene.claim(1);
    scene.claim(2);
    assert!(!scene.is_won(), "nobody knows when the expiry of a claim was set");
    scene.hear(2, EXTEND, EXTENDED);
    assert!(scene.is_won());
    scene.hear(2, EXTEND, Reply::NotOwner);
    assert!(!scene.is_won());
}

#[test]
fn nearly_expired_lease_is_not_won() {
    let mut scene = Scene::new(1);
    scene.hear(0, SET, GRANTED);
    let useful = scene.provable().saturating_sub(TTL / 20);
    scene.advance(useful);
    assert!(scene.is_won());
    scene.advance(MILLISECOND);
    assert!(!scene.is_won());
}

#[test]
fn answer_overtaken_by_a_claim_does_not_remove_the_claim() {
    // `ACQUIRE` was answered "queued", the holder released, and its wake-up came first.
    let mut scene = Scene::waiting(1);
    scene.send(0, ACQUIRE);
    scene.claim(0);
    scene.answer(0, Ok(QUEUED));
    assert_eq!(scene.wants(), [Some(EXTEND)], "the extension finds out which was newer");
    scene.hear(0, EXTEND, Reply::NotOwner);
    assert_eq!(scene.wants(), [Some(ACQUIRE)]);
    // Without the claim, the same answer counts.
    scene.hear(0, ACQUIRE, QUEUED);
    assert_eq!((scene.vote(0), scene.wants()), (Vote::TAKEN, vec![None]));
}
