//! Tests of a holder that lacks votes.

use super::*;
use crate::lock::OwnerToken;
use crate::protocol::candidate::fencing_number::{Fence, FencingDecision};
use crate::protocol::hold_options::HoldOptions;
use crate::protocol::timing::CONFIRM_AFTER;

const UNRENEWED: HoldOptions = HoldOptions { renew: false, max_hold: None, min_hold: None, window_rest: None };

/// Creates a lock at two of three nodes; the third has given this answer to a plain try.
fn lacking(answer: Answer) -> Scene {
    let mut scene = Scene::new(3);
    (0..2).for_each(|node| scene.hear(node, SET, GRANTED));
    scene.send(2, SET);
    scene.answer(2, answer);
    let now = scene.now();
    scene.candidate.hold(now);
    scene
}

/// Creates such a lock that is renewed.
fn begun(answer: Answer) -> Scene {
    let mut scene = lacking(answer);
    let now = scene.now();
    scene.candidate.begin(HoldOptions { renew: true, ..UNRENEWED }, now);
    scene
}

#[test]
fn missing_vote_is_requested_with_the_renewals() {
    for answer in [Err(unreachable()), Err(disconnected()), Ok(Reply::Taken), Err(NodeError::Refused("OOM".into()))] {
        let mut scene = begun(answer.clone());
        assert_eq!(scene.wants(), [None, None, None], "{answer:?}: not before");
        assert_eq!(scene.renewal(), [Some(EXTEND), Some(EXTEND), Some(WIN_BACK)], "{answer:?}");
        scene.send(2, WIN_BACK);
        assert_eq!(scene.renewal(), [Some(EXTEND), Some(EXTEND), None], "one at a time");
        scene.answer(2, Ok(GRANTED));
        assert_eq!(scene.renewal(), [Some(EXTEND); 3], "{answer:?}");
    }
}

#[test]
fn missing_vote_is_not_requested_from_a_tainted_or_pending_node() {
    let mut scene = begun(Ok(Reply::Taken));
    scene.candidate.voters[2].is_tainted = true;
    assert_eq!(scene.renewal()[2], None);
    let mut scene = Scene::new(3);
    (0..2).for_each(|node| scene.hear(node, SET, GRANTED));
    scene.send(2, SET);
    let now = scene.now();
    scene.candidate.hold(now);
    assert_eq!(scene.renewal()[2], None, "its answer may still be a vote");
}

impl Scene {
    /// Renews the lock. Returns the commands of the holder.
    fn renew(&mut self) -> Vec<(usize, Verb)> {
        let (now, mut sent) = (self.now(), Vec::new());
        assert!(self.candidate.renew(now, now, |out| sent.push((out.index, extending(out.verb)))));
        sent
    }
}

#[test]
fn only_renewals_of_uncontended_locks_are_batched() {
    let mut scene = begun(Err(unreachable()));
    let asked = |scene: &Scene| scene.candidate.holder_command(0, Round::All, scene.now(), scene.now());
    assert_eq!(asked(&scene), Some(RENEW));
    scene.candidate.contended(0, false, scene.now());
    assert_eq!(asked(&scene), Some(EXTEND), "its answer says who waits");
}

#[test]
fn holder_is_served_again_once_per_new_connection_of_its_key() {
    let mut scene = begun(Ok(Reply::Taken));
    let served_anew = [1, 2, 2, 3].map(|epoch| scene.candidate.note_connection_epoch(0, epoch));
    assert_eq!(served_anew, [false, true, false, true]);
    let mut trying = Scene::new(3);
    assert!(trying.candidate.note_connection_epoch(0, 1), "who looks at the connections itself is told of all");
}

#[test]
fn new_connection_makes_a_holder_ask_its_node_at_once() {
    let mut scene = begun(Ok(Reply::Taken));
    let now = scene.now();
    scene.candidate.connected(0, now);
    assert_eq!(scene.candidate.look(now, now, false), Look::Due);
    assert!(!scene.candidate.is_round_due(now), "only that node is asked, whatever the age of the leases");
    assert_eq!(scene.renew(), [(0, EXTEND)], "and no other");
    scene.answer(0, Ok(EXTENDED));
    scene.advance(MILLISECOND);
    let now = scene.now();
    scene.candidate.connected(2, now);
    assert_eq!(scene.candidate.look(now, now, false), Look::Due);
    assert_eq!(scene.renew(), [(0, EXTEND), (1, EXTEND)], "first those that have voted");
    assert_eq!(scene.renew(), [], "and until they have answered no other");
    assert_eq!(scene.candidate.look(now, now, false), Look::Due);
    (0..2).for_each(|node| scene.answer(node, Ok(EXTENDED)));
    assert_eq!(scene.renew(), [(2, WIN_BACK)]);
    scene.answer(2, Ok(GRANTED));
    assert_eq!(scene.renew(), []);
    assert!(!scene.candidate.lacks_votes());
}

/// Creates a lock with the votes of all nodes, of which two have let the key expire.
fn robbed(without: Option<Rule>) -> Scene {
    let mut scene = begun(Ok(GRANTED));
    Arc::make_mut(&mut scene.candidate.terms).rules = Rules { without };
    let (now, soon) = (scene.now(), scene.now().after(TTL / 2));
    assert!(scene.candidate.renew(now, soon, |_| {}));
    scene.advance(MILLISECOND);
    scene.answer(0, Ok(Reply::NotOwner));
    scene
}

#[test]
fn lock_lost_at_two_nodes_is_not_regained_one_by_one() {
    for (without, is_known) in [(None, true), (Some(Rule::VotersAreAskedFirst), false)] {
        let mut scene = robbed(without);
        if scene.renew().contains(&(0, WIN_BACK)) {
            scene.answer(0, Ok(GRANTED));
        }
        // The other answer arrives only now. In between, another token could have had both nodes.
        scene.answer(1, Ok(Reply::NotOwner));
        assert_eq!(!scene.is_won(), is_known, "without {without:?}");
    }
}

#[test]
fn late_claim_counts_only_after_the_voters_have_confirmed_the_lock() {
    for (without, is_known) in [(None, true), (Some(Rule::LateClaimsAreConfirmed), false)] {
        let mut scene = begun(Ok(Reply::Taken));
        Arc::make_mut(&mut scene.candidate.terms).rules = Rules { without };
        scene.prove(2);
        scene.advance(CONFIRM_AFTER);
        let expected: &[_] = if is_known { &[(0, EXTEND), (1, EXTEND)] } else { &[(2, EXTEND)] };
        assert_eq!(scene.renew(), expected, "without {without:?}");
        if is_known {
            scene.answer(0, Ok(EXTENDED));
            scene.answer(1, Ok(Reply::NotOwner));
        } else {
            scene.answer(2, Ok(EXTENDED));
            scene.hear(1, EXTEND, Reply::NotOwner);
        }
        // The token that hands node 2 over may have had node 1 as well.
        assert_eq!(!scene.is_won(), is_known, "without {without:?}");
    }
}

#[test]
fn late_claim_is_extended_before_it_ends_if_a_voter_is_silent() {
    let mut scene = begun(Ok(Reply::Taken));
    scene.prove(2);
    assert_eq!(scene.renew(), [], "not for a short body");
    scene.advance(CONFIRM_AFTER);
    assert_eq!(scene.renew(), [(0, EXTEND), (1, EXTEND)]);
    scene.answer(0, Ok(EXTENDED));
    assert_eq!(scene.renew(), []);
    scene.advance(CLAIM / 2);
    assert_eq!(scene.renew(), [(2, EXTEND)]);
    scene.answer(2, Ok(EXTENDED));
    assert!(!scene.candidate.lacks_votes());
}

#[test]
fn silent_or_absent_node_does_not_prevent_regaining_a_vote() {
    let mut scene = robbed(None);
    assert_eq!(scene.renew(), [], "both owe an answer");
    scene.answer(1, Ok(EXTENDED));
    assert_eq!(scene.renew(), [(1, EXTEND)], "that was sent before the loss was known");
    scene.answer(1, Ok(EXTENDED));
    assert_eq!(scene.renew(), []);
    scene.advance(NODE_TIMEOUT);
    assert_eq!(scene.renew(), [], "a node that is slow may have something to say");
    scene.advance(TTL / 8);
    // The next renewal of the other node may already be due: the times of renewals vary.
    let asked: Vec<_> = scene.renew().into_iter().filter(|asked| *asked != (1, EXTEND)).collect();
    assert_eq!(asked, [(0, WIN_BACK)], "silent");
    let mut scene = robbed(None);
    scene.answer(1, Ok(EXTENDED));
    scene.answer(2, Err(disconnected()));
    assert_eq!(scene.renew(), [(1, EXTEND), (2, EXTEND)]);
    scene.answer(1, Ok(EXTENDED));
    scene.answer(2, Err(unreachable()));
    assert_eq!(scene.renew(), [(0, WIN_BACK)], "gone");
}

#[test]
fn connection_event_for_holders_is_ignored_by_a_waiter() {
    let mut scene = Scene::waiting(3);
    scene.hear(0, ACQUIRE, QUEUED);
    let now = scene.now();
    scene.candidate.connected(0, now);
    assert_eq!(scene.wants()[0], None);
}

#[test]
fn missing_vote_is_requested_when_an_abstention_ends() {
    let left = Duration::from_secs(2);
    let mut scene = begun(Err(NodeError::RecentlyRestarted(left)));
    let now = scene.now();
    assert_eq!(scene.candidate.look(now, now, false), Look::DueAt(now.after(left)));
    scene.advance(left);
    assert_eq!(scene.renew(), [(0, EXTEND), (1, EXTEND)]);
    (0..2).for_each(|node| scene.answer(node, Ok(EXTENDED)));
    assert_eq!(scene.renew(), [(2, WIN_BACK)]);
}

#[test]
fn lapsed_holder_requests_nothing_and_regains_nothing() {
    let mut scene = begun(Ok(Reply::Taken));
    scene.send(2, WIN_BACK);
    scene.hear(0, EXTEND, Reply::NotOwner);
    assert!(!scene.is_won());
    let now = scene.now();
    scene.candidate.connected(0, now);
    assert_eq!(scene.wants(), [None, None, None]);
    scene.answer(2, Ok(GRANTED));
    assert!(!scene.is_won(), "somebody else may have had it in between");
    for node in [0, 2] {
        scene.prove(node);
        assert!(!scene.is_won(), "nor does a claim count that came after the loss, proven or not");
    }
    scene.hear(0, EXTEND, EXTENDED);
    assert!(!scene.is_won(), "nor what it was extended by");
    assert!(scene.voter(2).may_know(), "and both are given back");
}

/// A simulation needs five nodes, several of which pause at the right times; here, four answers suffice.
#[test]
fn lapsed_lock_is_regained_only_without_the_rule() {
    for (without, comes_back) in [(None, false), (Some(Rule::LapsedLocksStayLost), true)] {
        let mut scene = begun(Ok(Reply::Taken));
        Arc::make_mut(&mut scene.candidate.terms).rules = Rules { without };
        scene.send(2, WIN_BACK);
        scene.hear(0, EXTEND, Reply::NotOwner);
        assert!(!scene.is_won());
        let mut by_claim = scene.clone();
        scene.answer(2, Ok(GRANTED));
        assert_eq!(scene.is_won(), comes_back, "without {without:?}");
        // Another token that has had the lock since hands the node over. A renewed lock would not count on it at all.
        let now = by_claim.now();
        by_claim.candidate.begin(UNRENEWED, now);
        by_claim.prove(0);
        assert_eq!(by_claim.is_won(), comes_back, "without {without:?}");
    }
}

#[test]
fn late_extension_answer_counts_if_the_lease_never_ended() {
    let mut scene = begun(Ok(Reply::Taken));
    (0..2).for_each(|node| scene.send(node, EXTEND));
    scene.hear(2, WIN_BACK, QUEUED);
    scene.advance(TTL);
    assert!(!scene.is_won());
    // The questions were sent while the lock was held, and the nodes confirm it.
    scene.now = scene.now().before(TTL / 10);
    (0..2).for_each(|node| scene.answer(node, Ok(EXTENDED)));
    assert!(scene.candidate.valid_until().is_some());
}

#[test]
fn lock_without_renewal_requests_only_its_remaining_lease() {
    let mut scene = lacking(Ok(Reply::Taken));
    let begin = scene.now();
    scene.candidate.begin(UNRENEWED, begin);
    let end = scene.candidate.valid_until().unwrap();
    let Look::DueAt(due) = scene.candidate.look(begin, begin, true) else { panic!() };
    assert!(due < end, "it lacks a vote");
    scene.advance(due.since(begin));
    let (now, mut sent) = (scene.now(), Vec::new());
    assert!(scene.candidate.renew(now, now, |out| sent.push((out.index, out.verb.ttl().unwrap()))));
    let [(2, ttl)] = sent[..] else { panic!("{sent:?}") };
    assert!(ttl + due.since(begin) < TTL + Duration::from_millis(2), "{ttl:?}");
    scene.answer(2, Ok(GRANTED));
    scene.candidate.connected(0, now);
    let mut sent = Vec::new();
    assert!(scene.candidate.renew(now, now, |out| sent.push((out.index, out.verb.ttl().unwrap()))));
    assert_eq!(sent, [(0, ttl)], "whether its lease still stands, and no longer than before");
    scene.answer(0, Ok(EXTENDED));
    assert!(scene.candidate.valid_until().unwrap() <= end.after(MILLISECOND), "and end when it would");
    let now = scene.now();
    assert_eq!(
        scene.candidate.look(now, now, true),
        Look::Later(scene.candidate.valid_until().unwrap()),
        "all are here"
    );
}

#[test]
fn claims_do_not_lengthen_a_lock_without_renewal() {
    for renew in [false, true] {
        let mut scene = lacking(Ok(Reply::Taken));
        Arc::make_mut(&mut scene.candidate.terms).rules = Rules { without: Some(Rule::LateClaimsAreConfirmed) };
        let begin = scene.now();
        scene.candidate.begin(HoldOptions { renew, ..UNRENEWED }, begin);
        let end = scene.candidate.valid_until().unwrap();
        scene.advance(end.before(CLAIM / 2).since(begin));
        scene.prove(2);
        scene.hear(0, EXTEND, Reply::NotOwner);
        scene.prove(0);
        let until = scene.candidate.valid_until().unwrap();
        assert_eq!(until > end, renew, "a claim is counted for {:?}", until.since(end));
    }
}

#[test]
fn vote_request_carries_the_fencing_number_and_a_renewal_does_not() {
    let mut scene = begun(Ok(Reply::Taken));
    let now = scene.now();
    scene.candidate.set_fencing_wanted(true);
    scene.candidate.issue(FencingDecision::Agreed(7), now).unwrap();
    scene.candidate.connected(2, now);
    let mut sent = Vec::new();
    scene.candidate.renew(now, now, |out| sent.push((out.index, out.fence)));
    (0..2).for_each(|node| scene.answer(node, Ok(EXTENDED)));
    scene.candidate.renew(now, now, |out| sent.push((out.index, out.fence)));
    assert_eq!(sent, [(0, None), (1, None), (2, Some(Fence::Known(7)))]);
}

#[test]
fn unanswered_command_of_an_old_connection_does_not_block_the_node() {
    let mut scene = begun(Ok(Reply::Taken));
    (0..3).for_each(|node| scene.send(node, if node < 2 { EXTEND } else { WIN_BACK }));
    scene.answer(1, Ok(EXTENDED));
    let now = scene.now();
    for (node, verb) in [(0, EXTEND), (2, WIN_BACK)] {
        scene.candidate.connected(node, now);
        scene.answer(node, Err(disconnected()));
        assert_eq!(scene.candidate.look(now, now, false), Look::Due);
        assert_eq!(scene.renew(), [(node, verb)]);
        scene.answer(node, Ok(if verb == EXTEND { EXTENDED } else { GRANTED }));
    }
}

#[test]
fn kept_vote_is_yielded_again_to_a_holder_that_wants_it() {
    let by = OwnerToken::parse("00000000-0002-7000-8000-000000000000@00000000000000000000002").unwrap();
    let mut scene = Scene::waiting(3);
    scene.hear(0, ACQUIRE, BEATEN);
    scene.send(0, YIELD);
    // The message was published after the yield was executed, and published messages are processed before replies.
    let now = scene.now();
    scene.candidate.wanted(0, by, now);
    scene.answer(0, Ok(Reply::Kept));
    assert_eq!(scene.wants()[0], Some(YIELD));
    let mut named = None;
    scene.candidate.next_commands(now, |_| true, |out| named = named.or(out.other));
    assert_eq!(named, Some(by));
}

#[test]
fn extension_does_not_end_the_key_before_one_still_in_flight() {
    // A question for a whole ttl is unanswered when renewal is switched off.
    let mut scene = lacking(Ok(Reply::Taken));
    let now = scene.now();
    scene.candidate.begin(UNRENEWED, now);
    scene.advance(TTL / 2);
    scene.claim(2);
    scene.send(2, EXTEND);
    scene.advance(NODE_TIMEOUT);
    let Some(Verb::Extend { ttl }) = scene.wants()[2] else { panic!("{:?}", scene.wants()) };
    assert!(ttl + NODE_TIMEOUT >= TTL, "{ttl:?} would end the key before the lease of the first one");
}
