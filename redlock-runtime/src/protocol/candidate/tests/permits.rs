//! Tests of permits: which holders are counted, and which answers are valid.

use super::super::footprint::Footprint;
use super::super::holder_list::HolderList;
use super::*;
use crate::lock::OwnerToken;
use crate::lock::owner_token::ManagerId;
use crate::protocol::timing::{EXPIRY_MARGIN, QUESTIONS_PER_TURN};
use crate::time::token_clock::TokenTime;

fn numbered(number: u16) -> OwnerToken {
    OwnerToken::new(ManagerId::random(), TokenTime::new(1, number))
}

/// Creates a token that wants a permit at `nodes` nodes, of which `forgetful` may forget everything.
fn wanting(nodes: usize, forgetful: usize) -> Scene {
    let now = Instant::from_origin(Duration::from_secs(1));
    let terms = LeaseTerms { quorum: Quorum::of(nodes, forgetful), ..TERMS };
    Scene { candidate: Candidate::new(std::iter::repeat_n(1, nodes), terms, now).for_permit(), now }
}

fn holder_list(others: &[OwnerToken]) -> HolderList {
    let end = Instant::from_origin(TTL);
    HolderList { others: others.into(), strangers: 0, counts_until: end, first_end: None }
}

/// Returns each choice of some of the nodes, as bits.
fn choices(nodes: usize) -> impl Iterator<Item = u32> {
    0..1 << nodes
}

fn has(choice: u32, node: usize) -> bool {
    choice >> node & 1 == 1
}

#[test]
fn provable_permit_is_counted_despite_forgetful_nodes() {
    let other = numbered(1);
    for (nodes, forgetful) in [(1, 0), (2, 0), (3, 0), (3, 1), (4, 0), (4, 1), (5, 0), (5, 1), (5, 2), (6, 1), (6, 3)] {
        let scene = wanting(nodes, forgetful);
        let Quorum { needed, .. } = Quorum::of(nodes, forgetful);
        let are_enough = |choice: &u32| choice.count_ones() as usize >= needed;
        for given in choices(nodes).filter(are_enough) {
            for forgotten in choices(nodes).filter(|choice| choice.count_ones() as usize <= forgetful) {
                for asked in choices(nodes).filter(are_enough) {
                    let is_there = |node: usize| has(given, node) && !has(forgotten, node);
                    let of = |node: usize| holder_list(if is_there(node) { std::slice::from_ref(&other) } else { &[] });
                    let holder_lists: Vec<_> = (0..nodes).filter(|node| has(asked, *node)).map(of).collect();
                    let counted = scene.candidate.counted(&holder_lists);
                    assert_eq!(counted, 1, "{nodes} {forgetful} {given:b} {forgotten:b} {asked:b}");
                }
            }
        }
    }
}

#[test]
fn permit_in_too_few_holder_lists_is_not_counted() {
    let other = numbered(1);
    for (nodes, holder_lists, expected) in
        [(3, [1, 1], 1), (3, [1, 2], 0), (5, [1, 3], 0), (5, [2, 2], 1), (5, [2, 3], 0)]
    {
        let [with, without] = holder_lists;
        let holder_lists: Vec<_> =
            (0..with).map(|_| holder_list(&[other])).chain((0..without).map(|_| holder_list(&[]))).collect();
        assert_eq!(wanting(nodes, 0).candidate.counted(&holder_lists), expected, "{nodes} {with} {without}");
    }
}

#[test]
fn permit_is_not_requested_at_a_node_with_an_unanswered_yield() {
    let mut admission = Scene::waiting(3);
    admission.send(0, YIELD);
    admission.fail(1, YIELD, NodeError::Disconnected);
    assert_eq!([0, 1, 2].map(|node| admission.candidate.can_request_permits_at(node)), [false, false, true]);
    admission.answer(0, Ok(Reply::Kept));
    assert!(admission.candidate.can_request_permits_at(0), "the node has said that it has executed it");

    let (mut scene, mut asked) = (wanting(3, 0), Vec::new());
    let now = scene.now;
    scene.candidate.enter(
        numbered(0),
        now,
        |node| admission.candidate.can_request_permits_at(node),
        |out| asked.push(out.index),
    );
    assert_eq!(asked, [0, 2]);
}

#[test]
fn admission_extension_requests_the_full_ttl() {
    let ttl_asked = |is_admission: bool| {
        let mut scene = Scene::waiting(1);
        scene.prove(0);
        scene.candidate.hold(scene.now);
        if is_admission {
            scene.candidate.mark_as_admission();
        }
        scene.advance(CLAIM / 2);
        let voter = scene.voter(0);
        scene.candidate.rest(voter, scene.now)
    };
    assert!(ttl_asked(false).is_some_and(|ttl| ttl < TTL));
    assert_eq!(ttl_asked(true), Some(TTL));
}

/// Asks all nodes for a permit; the `answering` nodes report these permit holders.
fn enter(scene: &mut Scene, answering: impl IntoIterator<Item = usize>, others: &[OwnerToken]) {
    let now = scene.now;
    scene.candidate.enter(numbered(0), now, |_| true, |_| ());
    for node in answering {
        scene.answer(node, Ok(Reply::Entered { others: others.into(), strangers: 0, left: None }));
    }
}

#[test]
fn permit_extension_does_not_revive_an_expired_lease() {
    let mut scene = wanting(3, 0);
    enter(&mut scene, 0..3, &[]);
    assert_eq!(scene.candidate.entering(1, scene.now), Entering::Admitted);
    scene.candidate.hold(scene.now);
    scene.advance(TTL / 2);
    (1..3).for_each(|node| scene.hear(node, EXTEND, EXTENDED));
    let before = scene.voter(0).lease_end();
    scene.advance(TTL / 2);
    assert!(scene.candidate.is_held(scene.now) && before.is_some_and(|end| end < scene.now));
    // Another call may have counted at node 0 since, without finding this permit.
    (0..3).for_each(|node| scene.hear(node, EXTEND, EXTENDED));
    let counts = |node: usize| scene.voter(node).lease_end().is_some_and(|end| scene.now < end);
    assert_eq!([0, 1, 2].map(counts), [false, true, true]);
}

#[test]
fn late_permit_extension_is_checked_before_the_lease_ends() {
    let mut scene = wanting(3, 0);
    enter(&mut scene, 0..3, &[]);
    scene.candidate.hold(scene.now);
    let look = |scene: &Scene| scene.candidate.look(scene.now, scene.now, false);
    let first = scene.voter(0).lease_end().unwrap();
    assert_eq!(look(&scene), Look::Later(first), "no answer is late");
    scene.advance(TTL / 2);
    scene.send(0, EXTEND);
    (1..3).for_each(|node| scene.hear(node, EXTEND, EXTENDED));
    let last_look = first.before(NODE_TIMEOUT);
    assert_eq!(look(&scene), Look::Later(last_look));
    // The answer came some time before, and is processed now.
    scene.now = last_look;
    scene.answer(0, Ok(EXTENDED));
    let ends = [0, 1, 2].map(|node| scene.voter(node).lease_end());
    assert_eq!(ends, [scene.candidate.valid_until(); 3]);
    assert_eq!(look(&scene), Look::Later(ends[0].unwrap()));
}

/// Creates a token that has its permit at two nodes, and not at the third.
fn lacking_one() -> Scene {
    let mut scene = wanting(3, 0);
    enter(&mut scene, 0..2, &[]);
    scene.answer(2, Ok(Reply::NotOwner));
    assert_eq!(scene.candidate.entering(1, scene.now), Entering::Admitted);
    scene.candidate.hold(scene.now);
    scene
}

/// Asks for the missing votes, under the admission lock. Returns the nodes that are asked.
fn enter_again(scene: &mut Scene) -> Vec<usize> {
    let (now, mut asked) = (scene.now, Vec::new());
    scene.candidate.enter(numbered(9), now, |_| true, |out| asked.push(out.index));
    asked
}

const ENTERED_ALONE: fn() -> Reply = || Reply::Entered { others: Arc::default(), strangers: 0, left: None };

#[test]
fn permit_holder_returns_for_a_missing_vote() {
    let mut scene = lacking_one();
    assert!(scene.candidate.comes_back(scene.now));
    assert_eq!(enter_again(&mut scene), [2]);
    assert!(!scene.candidate.comes_back(scene.now), "an answer is still to come");
    // An outstanding answer of another node does not matter under the admission lock.
    scene.candidate.ask_voters(scene.now, |_| ());
    assert!(!scene.candidate.has_all_permit_replies());
    scene.answer(2, Ok(ENTERED_ALONE()));
    assert!(scene.candidate.has_all_permit_replies() && !scene.candidate.is_answered());
    assert_eq!(scene.vote(2), Vote::CLAIM);
    assert!(!scene.candidate.comes_back(scene.now), "nothing is lacking");
}

#[test]
fn quorum_confirms_a_permit_before_it_is_requested_elsewhere() {
    let mut scene = lacking_one();
    // This question was sent before, and its answer proves nothing about the time since.
    scene.hear(0, EXTEND, EXTENDED);
    scene.advance(TTL / 4);
    let (now, mut asked) = (scene.now, Vec::new());
    scene.candidate.ask_voters(now, |out| asked.push(out.index));
    assert_eq!(asked, [0, 1]);
    scene.answer(0, Ok(EXTENDED));
    assert!(!scene.candidate.is_confirmed_by_quorum());
    scene.answer(1, Err(disconnected()));
    assert!(scene.candidate.is_held(scene.now), "by the leases that it knows of");
    assert!(!scene.candidate.is_confirmed_by_quorum(), "a connection that breaks is no answer");
    scene.candidate.connected(1, scene.now);
    scene.hear(1, EXTEND, EXTENDED);
    assert!(scene.candidate.is_confirmed_by_quorum());
    scene.candidate.ask_voters(scene.now, |_| ());
    assert!(!scene.candidate.is_confirmed_by_quorum(), "it is asked anew");
}

#[test]
fn entry_made_by_a_late_command_does_not_confirm_a_permit() {
    // A call of the same process may have counted at that node before the entry was made.
    let mut scene = wanting(3, 0);
    enter(&mut scene, 0..2, &[]);
    scene.answer(2, Err(disconnected()));
    assert_eq!(scene.candidate.entering(1, scene.now), Entering::Admitted);
    scene.candidate.hold(scene.now);
    scene.candidate.connected(2, scene.now);
    scene.advance(TTL / 4);
    scene.candidate.ask_voters(scene.now, |_| ());
    scene.answer(0, Ok(EXTENDED));
    // A renewal asks this node as well, since the permit may be there.
    scene.hear(2, EXTEND, EXTENDED);
    assert!(!scene.candidate.is_confirmed_by_quorum());
    scene.answer(1, Ok(EXTENDED));
    assert!(scene.candidate.is_confirmed_by_quorum());
}

#[test]
fn permit_holder_does_not_return_for_an_absent_or_abstaining_node() {
    let mut scene = lacking_one();
    scene.fail(2, EXTEND, disconnected());
    assert!(!scene.candidate.comes_back(scene.now));
    scene.candidate.connected(2, scene.now);
    assert!(scene.candidate.comes_back(scene.now), "there is a connection again");
    scene.fail(2, EXTEND, NodeError::RecentlyRestarted(TTL / 4));
    assert!(!scene.candidate.comes_back(scene.now));
    scene.advance(TTL / 4);
    assert!(scene.candidate.comes_back(scene.now), "it gives its votes again");
}

#[test]
fn lost_permit_is_not_regained() {
    let mut scene = lacking_one();
    scene.advance(TTL / 2);
    scene.hear(0, EXTEND, EXTENDED);
    enter_again(&mut scene);
    scene.advance(TTL / 2);
    // The first node alone does not make a permit, and others may have counted so.
    assert!(!scene.candidate.is_held(scene.now));
    scene.answer(2, Ok(ENTERED_ALONE()));
    assert!(!scene.candidate.is_held(scene.now));
    assert!(!scene.candidate.comes_back(scene.now));
}

#[test]
fn permit_lease_survives_the_loss_of_the_admission_lock() {
    let mut scene = wanting(3, 0);
    enter(&mut scene, 0..2, &[]);
    let before = scene.voter(0).lease_end();
    let now = scene.now;
    scene.candidate.enter(numbered(0), now, |_| true, |_| ());
    (0..2).for_each(|node| scene.answer(node, Ok(Reply::NotOwner)));
    // This includes the answer to the earlier question.
    (0..2).for_each(|_| scene.answer(2, Ok(Reply::NotOwner)));
    assert!(before.is_some());
    assert_eq!(scene.voter(0).lease_end(), before);
    assert!(scene.voter(2).vote.is_taken());
    for node in 0..3 {
        assert_eq!(scene.voter(node).footprint, Footprint::Key, "its release is sent to node {node}");
    }
}

#[test]
fn silent_node_delays_a_permit_request_only_for_part_of_the_turn() {
    let slow = LeaseTerms { node_timeout: TTL, quorum: Quorum::of(3, 0), ..TERMS };
    let now = Instant::from_origin(Duration::from_secs(1));
    let mut scene = Scene { candidate: Candidate::new(std::iter::repeat_n(1, 3), slow, now).for_permit(), now };
    let other = numbered(1);
    enter(&mut scene, 0..2, &[other]);
    assert_eq!(scene.candidate.entering(1, scene.now), Entering::Open);
    scene.advance(turn(TTL) / QUESTIONS_PER_TURN);
    assert_eq!(scene.candidate.entering(1, scene.now), Entering::Full { first_end: None });
}

#[test]
fn waiter_ignores_the_end_of_an_expired_permit() {
    let (mut scene, other) = (wanting(3, 0), numbered(1));
    let now = scene.now;
    scene.candidate.enter(numbered(0), now, |_| true, |_| ());
    let [soon, later] = [1, 3].map(|seconds| Some(Duration::from_secs(seconds)));
    for (node, left) in [soon, later, None].into_iter().enumerate() {
        let others = [other].as_slice().into();
        scene.answer(node, Ok(Reply::Entered { others, strangers: 0, left }));
    }
    let end = |left: Option<Duration>| left.map(|left| now.after(left).after(EXPIRY_MARGIN));
    assert_eq!(scene.candidate.entering(1, scene.now), Entering::Full { first_end: end(soon) });
    scene.advance(Duration::from_secs(2));
    assert_eq!(scene.candidate.entering(1, scene.now), Entering::Full { first_end: end(later) });
    scene.advance(Duration::from_secs(2));
    assert_eq!(scene.candidate.entering(1, scene.now), Entering::Full { first_end: None });
}

#[test]
fn permit_with_too_little_lease_left_is_not_reported_as_full() {
    let short = LeaseTerms { ttl: Duration::from_secs(1), quorum: Quorum::of(3, 0), ..TERMS };
    let now = Instant::from_origin(Duration::from_secs(1));
    let mut scene = Scene { candidate: Candidate::new(std::iter::repeat_n(1, 3), short, now).for_permit(), now };
    enter(&mut scene, 0..3, &[]);
    scene.advance(Duration::from_millis(960));
    assert_eq!(scene.candidate.entering(1, scene.now), Entering::Unanswered);
}

#[test]
fn unknown_permit_holders_are_counted_at_their_possible_maximum() {
    let table = [(3, [1, 1, 1], 1), (3, [2, 1, 1], 2), (3, [1, 0, 0], 0), (3, [0, 1, 1], 1), (5, [3, 0, 0], 3)];
    for (nodes, strangers, expected) in table {
        let holder_lists = strangers.map(|strangers| HolderList { strangers, ..holder_list(&[]) });
        assert_eq!(wanting(nodes, 0).candidate.counted(&holder_lists), expected, "{nodes} {strangers:?}");
    }
}

#[test]
fn waiter_that_found_all_permits_taken_is_admitted_on_brief_leases() {
    let (mut scene, other) = (wanting(3, 0), numbered(1));
    enter(&mut scene, 0..3, &[other]);
    assert!(matches!(scene.candidate.entering(1, scene.now), Entering::Full { .. }));
    assert!(scene.candidate.enter_briefly() && !scene.candidate.enter_briefly(), "it is recorded once");
    assert!((0..3).all(|node| scene.voter(node).lease_end().is_none()), "the next question ends what was granted");
    let (now, mut asked) = (scene.now, Vec::new());
    scene.candidate.enter(numbered(0), now, |_| true, |out| asked.push(out.verb.ttl()));
    assert_eq!(asked, [Some(turn(TTL)); 3]);
    (0..3).for_each(|node| scene.answer(node, Ok(ENTERED_ALONE())));
    assert_eq!(scene.candidate.entering(1, scene.now), Entering::Admitted);
    scene.candidate.hold(scene.now);
    assert!(scene.candidate.depends_on_claims_until(scene.now).is_some_and(|end| end <= now.after(turn(TTL))));
    (0..2).for_each(|node| scene.hear(node, EXTEND, EXTENDED));
    assert_eq!(scene.candidate.depends_on_claims_until(scene.now), None, "a quorum has given whole leases");
}

#[test]
fn late_answer_proves_nothing_after_a_brief_lease_is_requested() {
    let (mut scene, other) = (wanting(3, 0), numbered(1));
    enter(&mut scene, 0..2, &[other]);
    scene.candidate.enter_briefly();
    let now = scene.now;
    scene.candidate.enter(numbered(0), now, |_| true, |_| ());
    scene.answer(2, Ok(ENTERED_ALONE()));
    assert_eq!(scene.voter(2).lease_end(), None, "the node has been asked to make it shorter since");
    scene.answer(2, Ok(ENTERED_ALONE()));
    assert!(scene.voter(2).lease_end().is_some_and(|end| end <= now.after(turn(TTL))));
}

#[test]
fn reader_share_of_a_waiting_call_is_not_counted_as_a_permit() {
    let (mut scene, share, other) = (wanting(3, 0), numbered(1), numbered(2));
    scene.candidate.set_share_beside(share);
    enter(&mut scene, 0..3, &[share, other]);
    assert!(matches!(scene.candidate.entering(1, scene.now), Entering::Full { .. }), "the other one is counted");
    assert_eq!(scene.candidate.entering(2, scene.now), Entering::Admitted);
}
