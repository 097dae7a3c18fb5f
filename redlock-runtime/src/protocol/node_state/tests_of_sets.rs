//! Tests of one node with requests for several names, command by command.

use super::*;
use crate::lock::owner_token::ManagerId;
use crate::lock::part::Part;
use crate::lock::parts::Parts;
use Class::{Exclusive, IntentExclusive, IntentShared, Shared};

const TTL: Duration = Duration::from_secs(60);
const BRIEF: Duration = Duration::from_secs(1);
const ACQUIRE: Verb = Verb::Acquire { ttl: TTL, claim: BRIEF, holds: false };
const WIN_BACK: Verb = Verb::Acquire { ttl: TTL, claim: BRIEF, holds: true };
const TRY: Verb = Verb::SetNx { ttl: TTL };
const EXTEND: Verb = Verb::Extend { ttl: TTL };
const YIELD: Verb = Verb::Yield { claim: BRIEF };
const RELEASE: Verb = Verb::Release { claim: BRIEF };
const GRANTED: Reply = Reply::Granted { smaller: false, number: None };

/// Names and classes of a request.
type Wish<'w> = &'w [(&'w str, Class)];

const A: Wish<'_> = &[("a", Exclusive)];
const B: Wish<'_> = &[("b", Exclusive)];
const AB: Wish<'_> = &[("a", Exclusive), ("b", Exclusive)];
const FOLDER: Wish<'_> = &[("/A", IntentExclusive), ("/A/C", Exclusive)];
const SIBLING: Wish<'_> = &[("/A", IntentExclusive), ("/A/D", Exclusive)];
const READ_BELOW: Wish<'_> = &[("/A", IntentShared), ("/A/E", Shared)];
const TREE: Wish<'_> = &[("/A", Exclusive)];
const READ_TREE: Wish<'_> = &[("/A", Shared)];

/// Node, tokens of absent processes, and notifications.
#[derive(Default)]
struct Scene {
    state: NodeState,
    seconds: u64,
    gone: Vec<OwnerToken>,
    said: Vec<(OwnerToken, String, Notice)>,
}

fn tokens<const N: usize>() -> [OwnerToken; N] {
    std::array::from_fn(|at| OwnerToken::new(ManagerId::random(), TokenTime::new(1, u16::try_from(at).unwrap())))
}

impl Scene {
    fn now(&self) -> Instant {
        Instant::from_origin(Duration::from_secs(self.seconds))
    }

    fn ask(&mut self, verb: Verb, wish: Wish<'_>, token: OwnerToken) -> Reply {
        self.ask_naming(verb, wish, token, None)
    }

    fn ask_naming(&mut self, verb: Verb, wish: Wish<'_>, token: OwnerToken, other: Option<OwnerToken>) -> Reply {
        self.ask_fenced(verb, wish, token, other, None)
    }

    fn ask_fenced(
        &mut self,
        verb: Verb,
        wish: Wish<'_>,
        token: OwnerToken,
        other: Option<OwnerToken>,
        fence: Option<u64>,
    ) -> Reply {
        let parts = Parts::of(wish.iter().map(|(name, class)| Part::new((*name).into(), *class))).unwrap();
        let subject = Subject { other: other.map(Box::new), ..Subject::of(&parts, token) };
        let command = Command { verb, fence: fence.map(Ballot::known), subject: Arc::new(subject) };
        let (now, gone) = (self.now(), self.gone.clone());
        let said = &mut self.said;
        let (reply, _) = self.state.execute(now, &command, &mut |_, wakeup| {
            let Subject { key, token, .. } = wakeup.subject;
            let is_there = !gone.contains(&token);
            said.extend(is_there.then(|| (token, key.name().to_owned(), wakeup.notice)));
            usize::from(is_there)
        });
        reply
    }

    fn holders(&self, name: &str) -> Vec<OwnerToken> {
        self.state.holders(name, self.now())
    }

    /// Returns the tokens that were notified of a free name, with the name.
    fn nudged(&mut self) -> Vec<(OwnerToken, String)> {
        let said = std::mem::take(&mut self.said);
        let free = said.into_iter().filter(|(.., notice)| *notice == Notice::Free);
        free.map(|(token, name, _)| (token, name)).collect()
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it comes from a call")]
fn is_granted(reply: Reply) -> bool {
    matches!(reply, Reply::Granted { .. })
}

#[expect(clippy::needless_pass_by_value, reason = "it comes from a call")]
fn is_queued(reply: Reply) -> bool {
    matches!(reply, Reply::Queued { .. })
}

#[test]
fn all_keys_are_granted_or_none() {
    let [one, other] = tokens();
    let mut scene = Scene::default();
    assert!(is_granted(scene.ask(TRY, B, one)));
    assert_eq!(scene.ask(TRY, AB, other), Reply::Taken);
    assert!(is_queued(scene.ask(ACQUIRE, AB, other)));
    assert!(scene.holders("a").is_empty());
    assert_eq!(scene.ask(RELEASE, B, one), Reply::Released);
    assert_eq!(scene.nudged(), [(other, "b".to_owned())]);
    assert!(scene.holders("b").is_empty(), "nobody has a part of what it wants");
    assert!(is_granted(scene.ask(ACQUIRE, AB, other)));
    assert_eq!([scene.holders("a"), scene.holders("b")], [[other], [other]]);
    assert_eq!(scene.ask(EXTEND, AB, other), Reply::Extended { waiters: 0, number: None });
    assert_eq!(scene.ask(RELEASE, AB, other), Reply::Released);
    assert!(scene.state.is_empty(scene.now()));
}

#[test]
fn holder_of_only_some_keys_does_not_hold_the_lock() {
    let [one, other] = tokens();
    let mut scene = Scene::default();
    scene.ask(ACQUIRE, AB, one);
    scene.state.delete("b", one, scene.now());
    assert_eq!(scene.ask(EXTEND, AB, one), Reply::NotOwner);
    assert!(is_granted(scene.ask(ACQUIRE, AB, one)), "nobody else has come in between");
    scene.state.delete("b", one, scene.now());
    assert!(is_granted(scene.ask(TRY, B, other)));
    assert!(is_queued(scene.ask(WIN_BACK, AB, one)));
    assert_eq!(scene.ask(RELEASE, AB, one), Reply::NotOwner);
    assert!(scene.holders("a").is_empty());
}

#[test]
fn token_that_lost_a_key_releases_the_others_while_it_waits() {
    let [single, several, one, other] = tokens();
    for (waiting, wish) in [(single, A), (several, &[("a", Exclusive), ("c", Exclusive)] as Wish<'_>)] {
        let mut scene = Scene::default();
        scene.ask(ACQUIRE, AB, one);
        assert!(is_queued(scene.ask(ACQUIRE, wish, waiting)));
        scene.state.delete("b", one, scene.now());
        assert!(is_granted(scene.ask(TRY, B, other)));
        scene.said.clear();
        assert!(is_queued(scene.ask(ACQUIRE, AB, one)));
        if waiting == single {
            assert_eq!(scene.holders("a"), [single]);
        } else {
            assert!(scene.holders("a").is_empty());
            assert_eq!(scene.nudged(), [(several, "a".to_owned())]);
        }
        assert!(is_granted(scene.ask(ACQUIRE, wish, waiting)));
    }
}

#[test]
fn waiter_learns_how_long_its_keys_stay_taken() {
    let [reader, brief, one, writer] = tokens();
    let wish: Wish<'_> = &[("a", Shared), ("b", Exclusive)];
    let mut scene = Scene::default();
    scene.ask(ACQUIRE, &[("a", Shared)], reader);
    scene.ask(Verb::SetNx { ttl: BRIEF }, B, brief);
    assert!(matches!(scene.ask(ACQUIRE, wish, one), Reply::Queued { left: Some(BRIEF), .. }), "not what goes with it");
    for _ in 0..2 {
        let reply = scene.ask(ACQUIRE, AB, writer);
        assert!(matches!(reply, Reply::Queued { left: Some(TTL), .. }), "{reply:?}");
    }
}

#[test]
fn waiters_for_the_same_keys_are_served_one_at_a_time() {
    let [holder, one, other] = tokens();
    let mut scene = Scene::default();
    scene.ask(ACQUIRE, AB, holder);
    for token in [other, one] {
        assert!(is_queued(scene.ask(ACQUIRE, AB, token)));
    }
    scene.ask(RELEASE, AB, holder);
    assert_eq!(scene.nudged(), [(one, "a".to_owned()), (one, "b".to_owned())], "and the later one is not");
    assert!(is_queued(scene.ask(ACQUIRE, AB, other)), "it does not overtake");
    assert!(is_granted(scene.ask(ACQUIRE, AB, one)));
}

#[test]
fn waiter_for_several_keys_is_not_overtaken_at_any_key() {
    let [holder, several, single] = tokens();
    let mut scene = Scene::default();
    scene.ask(ACQUIRE, B, holder);
    assert!(is_queued(scene.ask(ACQUIRE, AB, several)));
    assert!(is_queued(scene.ask(ACQUIRE, A, single)));
    assert_eq!(scene.ask(TRY, A, single), Reply::Taken, "a plain SET takes nothing that is reserved");
    scene.ask(RELEASE, AB, several);
    assert_eq!(scene.holders("a"), [single], "who leaves unblocks those behind");
}

#[test]
fn free_key_is_reserved_briefly_for_a_waiter_for_several_keys() {
    let [holder, several, foreign] = tokens();
    let mut scene = Scene::default();
    scene.ask(TRY, B, holder);
    scene.ask(ACQUIRE, AB, several);
    scene.seconds = 1;
    assert_eq!(scene.ask(TRY, A, foreign), Reply::Taken);
    scene.seconds = 3;
    assert!(is_granted(scene.ask(TRY, A, foreign)), "it was heard of three seconds ago");
}

#[test]
fn silent_or_dead_waiter_for_several_keys_does_not_block_for_long() {
    let [holder, several, single] = tokens();
    let mut scene = Scene::default();
    scene.ask(TRY, B, holder);
    scene.ask(ACQUIRE, AB, several);
    scene.seconds = 3;
    assert!(is_queued(scene.ask(ACQUIRE, A, single)));
    scene.seconds = 4;
    assert!(is_granted(scene.ask(ACQUIRE, A, single)));
    let mut scene = Scene { gone: vec![several], ..Scene::default() };
    scene.ask(TRY, B, holder);
    scene.ask(ACQUIRE, AB, several);
    assert!(is_granted(scene.ask(ACQUIRE, A, single)));
}

#[test]
fn absent_waiters_for_several_keys_are_removed_by_repeated_commands() {
    let all: [_; 202] = tokens();
    let [holder, gone @ .., single] = &all;
    let mut scene = Scene { gone: gone.to_vec(), ..Scene::default() };
    scene.ask(TRY, B, *holder);
    scene.ask(TRY, A, *single);
    for token in gone {
        assert!(is_queued(scene.ask(ACQUIRE, AB, *token)));
    }
    scene.state.delete("a", *single, scene.now());
    assert_eq!(scene.ask(ACQUIRE, A, *single), Reply::Queued { left: Some(Duration::ZERO), rank: 0 });
    assert!(is_granted(scene.ask(ACQUIRE, A, *single)));
}

#[test]
fn path_excludes_its_descendants_and_siblings_are_compatible() {
    let [one, sibling, reader, tree, late] = tokens();
    let mut scene = Scene::default();
    assert!(is_granted(scene.ask(ACQUIRE, FOLDER, one)));
    assert!(is_granted(scene.ask(ACQUIRE, SIBLING, sibling)));
    assert!(is_granted(scene.ask(TRY, READ_BELOW, reader)));
    assert!(is_queued(scene.ask(ACQUIRE, TREE, tree)));
    assert!(is_queued(scene.ask(ACQUIRE, READ_BELOW, late)), "it does not overtake");
    for (wish, token) in [(FOLDER, one), (SIBLING, sibling), (READ_BELOW, reader)] {
        assert_eq!(scene.ask(EXTEND, wish, token), Reply::Extended { waiters: 1, number: None });
        assert!(!scene.holders("/A").contains(&tree));
        assert_eq!(scene.ask(RELEASE, wish, token), Reply::Released);
    }
    assert_eq!(scene.holders("/A"), [tree]);
    assert!(scene.nudged().is_empty());
    scene.ask(RELEASE, TREE, tree);
    assert_eq!(scene.nudged(), [(late, "/A".to_owned())]);
}

#[test]
fn release_notifies_only_the_waiters_that_it_blocked() {
    let [one, reader, below, writer] = tokens();
    let mut scene = Scene::default();
    scene.ask(ACQUIRE, FOLDER, one);
    scene.ask(ACQUIRE, READ_TREE, reader);
    scene.ask(ACQUIRE, SIBLING, below);
    scene.ask(ACQUIRE, &[("/A", IntentShared), ("/A/C", Shared)], writer);
    assert!(scene.nudged().is_empty());
    scene.ask(RELEASE, FOLDER, one);
    assert_eq!(scene.holders("/A"), [reader]);
    assert_eq!(scene.nudged(), [(writer, "/A/C".to_owned())], "the other one is in the way of the reader");
    scene.ask(RELEASE, READ_TREE, reader);
    assert_eq!(scene.nudged(), [(below, "/A".to_owned())]);
}

/// Counts the notifications of a crowd below a folder when the folder is released.
#[test]
fn notified_waiters_notify_the_remaining_ones() {
    let all: [_; 301] = tokens();
    let [folder, below @ ..] = &all;
    // The first hundred want one common name, so that most of the first notified waiters have to wait.
    let name = |at: usize| if at < 100 { "/A/all".to_owned() } else { format!("/A/{at}") };
    for is_left in [false, true] {
        let mut scene = Scene::default();
        let ask = |scene: &mut Scene, verb, at: usize| {
            let name = name(at);
            scene.ask(verb, &[("/A", IntentExclusive), (&name, Exclusive)], below[at])
        };
        scene.ask(TRY, TREE, *folder);
        for at in 0..below.len() {
            assert!(is_queued(ask(&mut scene, ACQUIRE, at)));
        }
        scene.said.clear();
        scene.ask(RELEASE, TREE, *folder);
        let mut told = scene.nudged();
        assert_eq!(told.len(), MOST_STEPS);
        let mut came = 0;
        while let Some((token, name)) = told.get(came).cloned() {
            came += 1;
            let at = below.iter().position(|other| *other == token).unwrap();
            let is_first = at == 0 || at >= 100;
            // A waiter that gives up notifies the others as well.
            let verb = if is_left && at == 1 { RELEASE } else { ACQUIRE };
            assert_eq!(is_granted(ask(&mut scene, verb, at)), is_first && verb == ACQUIRE, "{name} {at}");
            told.extend(scene.nudged().into_iter().filter(|(_, name)| name == "/A"));
        }
        told.sort_unstable();
        assert!(told.iter().map(|(token, _)| token).eq(below), "everybody is told once: {} were", told.len());
    }
}

#[test]
fn clock_set_back_does_not_prolong_a_silent_waiter() {
    let [holder, several, single] = tokens();
    let mut scene = Scene { seconds: 3600, ..Scene::default() };
    scene.ask(TRY, B, holder);
    scene.ask(ACQUIRE, AB, several);
    scene.seconds = 0;
    assert!(is_queued(scene.ask(ACQUIRE, A, single)));
    scene.seconds = 4;
    assert!(is_granted(scene.ask(ACQUIRE, A, single)));
}

#[test]
fn exclusive_path_is_downgraded_everywhere_and_never_upgraded() {
    let [one, reader] = tokens();
    let below: Wish<'_> = &[("/A", IntentShared), ("/A/C", Shared)];
    let mut scene = Scene::default();
    scene.ask(ACQUIRE, FOLDER, one);
    assert!(is_queued(scene.ask(ACQUIRE, below, reader)));
    assert!(matches!(scene.ask(EXTEND, below, one), Reply::Extended { .. }));
    assert_eq!(scene.nudged(), [(reader, "/A/C".to_owned())]);
    assert!(is_granted(scene.ask(ACQUIRE, below, reader)));
    assert_eq!(scene.ask(EXTEND, FOLDER, one), Reply::NotOwner);
    assert!(is_granted(scene.ask(ACQUIRE, FOLDER, one)), "a late question finds what it has");
    assert_eq!(scene.ask(EXTEND, below, reader), Reply::Extended { waiters: 0, number: None });
}

#[test]
fn yield_gives_all_keys_to_the_first_waiter() {
    let [first, second, holder] = tokens();
    let mut scene = Scene::default();
    assert_eq!(scene.ask(YIELD, AB, holder), Reply::NotOwner);
    scene.ask(ACQUIRE, AB, holder);
    assert_eq!(scene.ask(YIELD, AB, holder), Reply::Kept);
    scene.ask(ACQUIRE, A, second);
    assert!(is_queued(scene.ask(ACQUIRE, AB, first)));
    scene.said.clear();
    assert!(matches!(scene.ask(YIELD, AB, holder), Reply::Yielded { .. }));
    assert_eq!(scene.nudged(), [(first, "a".to_owned()), (first, "b".to_owned())]);
    assert!(is_granted(scene.ask(ACQUIRE, AB, first)));
    assert!(is_queued(scene.ask(ACQUIRE, AB, holder)));
    scene.ask(RELEASE, AB, first);
    assert_eq!(scene.holders("a"), [second]);
}

#[test]
fn yield_to_a_holder_of_several_keys_leaves_them_free_for_it() {
    let [waiter, holder] = tokens();
    let mut scene = Scene::default();
    scene.ask(ACQUIRE, A, waiter);
    assert!(is_queued(scene.ask(WIN_BACK, AB, holder)));
    assert!(matches!(scene.ask_naming(YIELD, A, waiter, Some(holder)), Reply::Yielded { .. }));
    assert_eq!(scene.nudged(), [(holder, "a".to_owned())]);
    assert!(is_granted(scene.ask(WIN_BACK, AB, holder)), "it comes before all who wait");
}

#[test]
fn path_is_granted_to_the_named_holder_after_the_last_yield() {
    for tree in [READ_TREE, TREE] {
        let [one, other, named] = tokens();
        let mut scene = Scene::default();
        assert!(is_granted(scene.ask(ACQUIRE, FOLDER, one)));
        assert!(is_granted(scene.ask(ACQUIRE, SIBLING, other)));
        assert!(is_queued(scene.ask(WIN_BACK, tree, named)));
        assert!(matches!(scene.ask_naming(YIELD, FOLDER, one, Some(named)), Reply::Yielded { .. }));
        assert_eq!(scene.holders("/A"), [other], "neither the one named, beside the other, nor the one that yields");
        assert!(scene.holders("/A/C").is_empty());
        assert!(matches!(scene.ask_naming(YIELD, SIBLING, other, Some(named)), Reply::Yielded { .. }));
        assert_eq!(scene.holders("/A"), [named]);
        assert_eq!(scene.ask(RELEASE, tree, named), Reply::Released);
        assert!(is_granted(scene.ask(ACQUIRE, FOLDER, one)));
    }
}

#[test]
fn adoption_replaces_the_holder_at_every_key() {
    let [left, adopter, other] = tokens();
    let mut scene = Scene::default();
    scene.ask(ACQUIRE, FOLDER, left);
    let adopt = Verb::Adopt { ttl: TTL };
    assert_eq!(scene.ask_naming(adopt, FOLDER, other, Some(adopter)), Reply::NotOwner);
    for _ in 0..2 {
        assert!(matches!(scene.ask_naming(adopt, FOLDER, adopter, Some(left)), Reply::Extended { .. }), "once more");
        assert_eq!([scene.holders("/A"), scene.holders("/A/C")], [[adopter], [adopter]]);
    }
    assert_eq!(scene.ask(EXTEND, FOLDER, left), Reply::NotOwner);
}

/// Returns the notifications when a folder is released that two waiters below it need, one of which blocks the folder
/// of the other.
fn wakeups_after_folder_release(without: Option<Rule>) -> Vec<(OwnerToken, String)> {
    let [one, folder, sibling] = tokens();
    let mut scene = Scene::default();
    scene.state.rules = Rules { without };
    assert!(is_granted(scene.ask(ACQUIRE, FOLDER, one)));
    assert!(is_queued(scene.ask(ACQUIRE, FOLDER, folder)));
    assert!(is_granted(scene.ask(ACQUIRE, SIBLING, sibling)), "siblings go with each other");
    scene.said.clear();
    assert_eq!(scene.ask(RELEASE, SIBLING, sibling), Reply::Released);
    scene.nudged()
}

#[test]
fn release_does_not_notify_waiters_that_it_did_not_block() {
    assert_eq!(wakeups_after_folder_release(None), []);
    let told = wakeups_after_folder_release(Some(Rule::OnlyConcernedAreTold));
    assert!(!told.is_empty(), "without the rule, all are told who wait there");
}

#[test]
fn key_reserved_for_a_waiter_for_several_keys_refuses_a_plain_set() {
    for (without, expected) in [(None, Reply::Taken), (Some(Rule::FreeNamesAreReserved), GRANTED)] {
        let [holder, several, plain] = tokens();
        let mut scene = Scene::default();
        scene.state.rules = Rules { without };
        assert!(is_granted(scene.ask(ACQUIRE, B, holder)));
        assert!(is_queued(scene.ask(ACQUIRE, AB, several)));
        assert_eq!(scene.ask(TRY, A, plain), expected, "a plain SET, {without:?}");
    }
}

/// Returns the replies of a node to consecutive ballots for names, each by another token.
fn said_to(ballots: &[(Wish<'_>, u64)], without: Option<Rule>) -> Vec<Option<Number>> {
    let mut scene = Scene::default();
    scene.state.rules = Rules { without };
    let all: [_; 8] = tokens();
    let mut answers = Vec::new();
    for ((wish, ballot), token) in ballots.iter().zip(all) {
        let reply = scene.ask_fenced(ACQUIRE, wish, token, None, Some(*ballot));
        let Reply::Granted { number, .. } = reply else { panic!("{reply:?}") };
        answers.push(number);
        scene.ask(RELEASE, wish, token);
    }
    answers
}

#[test]
fn number_for_several_keys_needs_the_registers_of_all_exclusive_keys() {
    let accepted = |ballot| Some(Number::Accepted(ballot));
    let refused = |largest| Some(Number::Refused { largest });
    let read_a: Wish<'_> = &[("a", Shared), ("b", Exclusive)];
    let ballots = [(A, 5), (B, 7), (AB, 6), (A, 6), (AB, 8), (read_a, 9), (A, 9), (B, 9)];
    let said = [accepted(5), accepted(7), refused(7), refused(6), accepted(8), accepted(9), accepted(9), refused(9)];
    assert_eq!(said_to(&ballots, None), said);
    assert_eq!(said_to(&ballots[..3], Some(Rule::EveryRegisterAccepts))[2], accepted(6));
    // A path has one register, shared with its whole tree.
    let ballots = [(FOLDER, 5), (TREE, 5), (TREE, 6), (SIBLING, 6), (SIBLING, 7), (READ_BELOW, 7)];
    assert_eq!(said_to(&ballots, None), [accepted(5), refused(5), accepted(6), refused(6), accepted(7), None]);
}

#[test]
fn waiter_for_several_keys_proposes_no_number() {
    let [holder, one, other] = tokens();
    let mut scene = Scene::default();
    scene.ask(TRY, B, holder);
    for verb in [TRY, ACQUIRE] {
        let reply = scene.ask_fenced(verb, AB, one, None, Some(9));
        assert!(!matches!(reply, Reply::Granted { .. }), "{reply:?}");
    }
    scene.ask(RELEASE, AB, one);
    assert_eq!(
        scene.ask_fenced(ACQUIRE, A, other, None, Some(1)),
        Reply::Granted { smaller: false, number: Some(Number::Accepted(1)) }
    );
}

/// Waiters that stay blocked take neither a notification nor a position from the remaining waiters.
#[test]
fn blocked_waiters_do_not_end_the_notification_chain() {
    let all: [_; 202] = tokens();
    let [folder, first, rest @ ..] = &all;
    let (readers, below) = rest.split_at(70);
    let mut scene = Scene::default();
    scene.ask(TRY, TREE, *folder);
    scene.ask(ACQUIRE, FOLDER, *first);
    for reader in readers {
        scene.ask(ACQUIRE, &[("/A", Shared), ("z", Exclusive)], *reader);
    }
    let names: Vec<_> = (0..below.len()).map(|at| format!("/A/r{at}")).collect();
    for (token, name) in below.iter().zip(&names) {
        scene.ask(ACQUIRE, &[("/A", IntentShared), (name, Shared)], *token);
    }
    scene.said.clear();
    scene.ask(RELEASE, TREE, *folder);
    let told = scene.nudged();
    assert_eq!(told.len(), MOST_STEPS, "the readers of the folder wait for the first one");
    scene.ask(ACQUIRE, FOLDER, *first);
    let mut told: Vec<_> = told.into_iter().chain(scene.nudged()).map(|(token, _)| token).collect();
    let mut came = 0;
    while let Some(token) = told.get(came).copied() {
        came += 1;
        if let Some(at) = below.iter().position(|other| *other == token) {
            assert!(is_granted(scene.ask(ACQUIRE, &[("/A", IntentShared), (&names[at], Shared)], token)));
            told.extend(scene.nudged().into_iter().map(|(token, _)| token));
        }
    }
    assert!(below.iter().all(|token| told.contains(token)), "{} were told", told.len());
}
