//! What an answer changes, and what silence does not.

use super::*;
use crate::protocol::candidate::voter::Vote;

#[tokio::test(start_paused = true)]
async fn partial_rounds_compose() {
    type Step = (Verb, Answer);
    let table: [(&str, &[Step], Vote, Option<u32>); 9] = [
        ("a grant", &[(SET, Ok(GRANTED))], Vote::Granted, Some(0)),
        ("a place in the queue", &[(ACQUIRE, Ok(QUEUED))], Vote::NotOurs, None),
        ("silence changes nothing", &[(SET, Ok(GRANTED)), (EXTEND, Err(disconnected()))], Vote::Granted, Some(0)),
        ("a later answer raises the end", &[(SET, Ok(GRANTED)), (EXTEND, Ok(EXTENDED))], Vote::Granted, Some(1)),
        ("\"not yours\" takes the node out", &[(SET, Ok(GRANTED)), (EXTEND, Ok(Reply::NotOwner))], Vote::NotOurs, None),
        ("a first answer may be an error", &[(SET, Err(unreachable()))], Vote::Failed, None),
        ("a later one makes it good", &[(SET, Err(disconnected())), (ACQUIRE, Ok(GRANTED))], Vote::Granted, Some(1)),
        ("what is kept is a vote", &[(ACQUIRE, Ok(BEATEN)), (YIELD, Ok(Reply::Kept))], Vote::Granted, None),
        (
            "and a lease again when extended",
            &[(ACQUIRE, Ok(BEATEN)), (YIELD, Ok(Reply::Kept)), (EXTEND, Ok(EXTENDED))],
            Vote::Granted,
            Some(2),
        ),
    ];
    for (what, steps, vote, proven_by) in table {
        let mut scene = Scene::new(1);
        let mut ends = Vec::new();
        for (verb, answer) in steps {
            ends.push(TERMS.provable(scene.now()));
            scene.send(0, *verb);
            advance(Duration::from_millis(10)).await;
            scene.answer(0, answer.clone());
        }
        let end = proven_by.map(|step| ends[step as usize]);
        assert_eq!((scene.node(0).vote, scene.node(0).end(Rules::default())), (vote, end), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_counted_from_the_send() {
    let mut scene = Scene::new(1);
    let proven = TERMS.provable(scene.now());
    scene.send(0, SET);
    advance(TTL / 2).await;
    scene.answer(0, Ok(GRANTED));
    assert_eq!(scene.standing.valid_until(), Some(proven));
}

#[tokio::test(start_paused = true)]
async fn whatever_may_know_the_token_is_told_of_its_release() {
    let table: [(Verb, Answer, bool); 18] = [
        (SET, Ok(GRANTED), true),
        (SET, Ok(Reply::Held), false),
        (SET, Err(disconnected()), true),
        (SET, Err(NodeError::TimedOut(NODE_TIMEOUT)), true),
        (SET, Err(NodeError::Unintelligible("".into())), true),
        (SET, Err(unreachable()), false),
        (SET, Err(NodeError::Stalled(NODE_TIMEOUT)), false),
        (SET, Err(NodeError::Refused("READONLY".into())), false),
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
        assert!(scene.node(0).may_know(), "an answer that is still to come");
        let shown = format!("{verb:?}: {answer:?}");
        scene.answer(0, answer);
        assert_eq!(scene.node(0).may_know(), may_know, "{shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_a_release_takes_a_token_out_of_a_queue() {
    let mut scene = Scene::waiting(1).await;
    scene.hear(0, ACQUIRE, QUEUED);
    for (verb, answer) in [(EXTEND, Ok(Reply::NotOwner)), (ACQUIRE, Err(unreachable())), (ACQUIRE, Ok(QUEUED))] {
        scene.send(0, verb);
        scene.answer(0, answer);
        assert!(scene.node(0).may_know(), "{verb:?}");
    }
    let mut scene = Scene::waiting(1).await;
    scene.claim(0);
    scene.hear(0, EXTEND, Reply::NotOwner);
    assert!(scene.node(0).may_know(), "the token stands in the queue for as long as anybody can tell");
}

#[tokio::test(start_paused = true)]
async fn a_later_command_that_was_not_sent_does_not_make_the_first_one_undone() {
    let mut scene = Scene::new(1);
    scene.fail(0, SET, disconnected());
    scene.fail(0, EXTEND, unreachable());
    assert!(scene.node(0).may_know());
    let mut scene = Scene::new(1);
    scene.fail(0, SET, unreachable());
    scene.fail(0, SET, unreachable());
    assert!(!scene.node(0).may_know());
    let mut scene = Scene::new(1);
    scene.send(0, SET);
    scene.send(0, EXTEND);
    scene.answer(0, Ok(Reply::Held));
    assert!(scene.node(0).may_know(), "the second one is still on its way");
}

#[tokio::test(start_paused = true)]
async fn a_majority_of_the_leases_decides_and_not_of_the_votes() {
    let mut scene = Scene::waiting(3).await;
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

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_as_good_as_over_is_not_won() {
    let mut scene = Scene::new(1);
    scene.hear(0, SET, GRANTED);
    let useful = scene.provable().saturating_sub(TTL / 20);
    advance(useful).await;
    assert!(scene.is_won());
    advance(MILLISECOND).await;
    assert!(!scene.is_won());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_a_claim_has_overtaken_does_not_take_it_away() {
    // `ACQUIRE` was answered "queued", the holder released, and its wake-up came first.
    let mut scene = Scene::waiting(1).await;
    scene.send(0, ACQUIRE);
    scene.claim(0);
    scene.answer(0, Ok(QUEUED));
    assert_eq!(scene.wants(), [Some(EXTEND)], "the extension finds out which was newer");
    scene.hear(0, EXTEND, Reply::NotOwner);
    assert_eq!(scene.wants(), [Some(ACQUIRE)]);
    // Without the claim, the same answer counts.
    scene.hear(0, ACQUIRE, QUEUED);
    assert_eq!((scene.node(0).vote, scene.wants()), (Vote::NotOurs, vec![None]));
}

#[tokio::test(start_paused = true)]
async fn one_task_takes_in_any_number_of_answers() {
    // Tokio would let it have 128 of them before it has to make room for other tasks.
    for _ in 0..1000 {
        let mut scene = Scene::holding(1);
        scene.hear(0, EXTEND, EXTENDED);
        assert!(!scene.standing.is_awaited());
    }
}
