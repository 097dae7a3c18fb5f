//! Conformance of this node with the node of the exhaustive model, in every small state.
//!
//! The model (`tests/model`) explores the consequences of its own node. The test in `node/differential.rs` compares
//! this node with the scripts. So the results of the model hold for the scripts, as far as random commands show. The
//! tests compare the reply, the notifications, and the state afterwards, with every rule and without each rule of a
//! node.

use super::registers::Registers;
use super::*;
use crate::lock::Mode;
use crate::lock::owner_token::ManagerId;
use redlock_model::fencing;
use redlock_model::lock::node as model;
use std::collections::{BTreeSet, HashSet};

const KEY: &str = "order:7";
/// Smaller numbers are earlier tokens.
const TOKENS: u8 = 4;
/// Durations in the commands.
const TTL: Duration = Duration::from_secs(10);
const CLAIM: Duration = Duration::from_secs(1);
/// Rests of earlier leases and claims.
const TTL_LEFT: Duration = Duration::from_secs(5);
const CLAIM_LEFT: Duration = Duration::from_millis(400);

/// Maps a rule of the model to the rule of the same name in the code. The compiler reports a missing name.
macro_rules! same_names {
    ($($name:ident)*) => {
        pub(super) fn to_code_rule(rule: redlock_model::Rule) -> Rule {
            match rule {
                $(redlock_model::Rule::$name => Rule::$name,)*
            }
        }
    };
}

same_names! {
    ReleasedTokensAreDead OwnTurnIsALease QueuesExpire HolderHearsOfEveryCall ExtensionNeverCreates AdopterReplaces
    WaitersMarkTheHolder HandOverKeepsTheMark AdoptionKeepsTheMark ReleaseChecksTheOwner ClaimIsNoLease YieldVoids
    ProofNeedsATime YieldVoidsProof
    AllHoldersHear LeavingUnblocks BlockersArePinged ReadersTogether IntentsKeepOut PartsLeftAreReleased DowngradeNeverRises
    VotesAreWonBack WaitersYieldToTheHolder YieldAtOnce CutYieldTaints ReleasesAreSeenThrough UnknownTokensAreReleased ValidityFromTheSend
    BallotsOnlyRise EveryRegisterAccepts AcceptsAreOfOneRound RefusedIsNotIssued AcceptsEndWithTheVote WonVotesCarryTheNumber
    NodesLearnAgreedNumbers ReturningNodesLearnNumbers FarNumbersNeedAQuorum ForeignTokensAreIgnored FailedScriptsAreReleased
    FindingProvesNothing ReplacedDataIsForgotten PromotionsAreNoRestarts YoungServersAbstain ColdStartsAreTrusted
    OlderServersOutvoteYoung DurabilityIsProven OlderDataIsForgotten NewcomersTrustNoSettings
    ListsEndWithTheAdmissionLock ListsAreUnited VotersAreAskedFirst
}

/// Rules that a node follows within one command.
const RULES: [redlock_model::Rule; 12] = [
    redlock_model::Rule::OwnTurnIsALease,
    redlock_model::Rule::HolderHearsOfEveryCall,
    redlock_model::Rule::ExtensionNeverCreates,
    redlock_model::Rule::AdopterReplaces,
    redlock_model::Rule::WaitersMarkTheHolder,
    redlock_model::Rule::HandOverKeepsTheMark,
    redlock_model::Rule::AdoptionKeepsTheMark,
    redlock_model::Rule::ReleaseChecksTheOwner,
    redlock_model::Rule::AllHoldersHear,
    redlock_model::Rule::LeavingUnblocks,
    redlock_model::Rule::BlockersArePinged,
    redlock_model::Rule::ReadersTogether,
];

/// Tokens that share the lock, in states with readers.
const SHARING: u8 = 0b0101;

/// State of a node, and a command.
#[derive(Clone, Copy, Debug)]
struct Case {
    node: model::Node,
    /// One bit for each token whose process is present.
    listening: u8,
    token: u8,
    verb: model::Verb,
    /// One bit for each token that shares the lock.
    sharing: u8,
}

/// Effect of a command, in terms of the model.
#[derive(Debug, PartialEq)]
struct Outcome {
    reply: model::Reply,
    published: Vec<(u8, model::Notice)>,
    node: model::Node,
    /// Set if this command gave the owner its time. Not compared for a `YIELD` that keeps the lock.
    is_new: Option<bool>,
}

fn cases() -> impl Iterator<Item = Case> {
    exclusive_cases().chain(shared_cases())
}

/// Returns the cases with readers. No reader owns the lock exclusively, and none is adopted.
fn shared_cases() -> impl Iterator<Item = Case> {
    let readers = || (1..=SHARING).filter(|readers| readers & !SHARING == 0);
    let shares = readers().flat_map(|readers| [0, readers & 1, readers & 4, readers].map(|claims| (readers, claims)));
    let queues = |node: model::Node| (0..1 << TOKENS).map(move |queue| model::Node { queue, ..node });
    let had = shares.map(|(readers, claims)| model::Node { readers, claims, ..model::Node::default() });
    let is_writer = |node: &model::Node| node.owner.is_none_or(|owner| SHARING >> owner & 1 == 0);
    let all = had.flat_map(queues).chain(nodes().filter(is_writer));
    all.flat_map(|node| {
        let commands = || commands().filter(|(_, verb)| !matches!(verb, model::Verb::Adopt { .. }));
        let listening = [0, 0b0011, 0b0110, 0b1001, 0b1100, 0b1111];
        listening.into_iter().flat_map(move |listening| {
            commands().map(move |(token, verb)| Case { node, listening, token, verb, sharing: SHARING })
        })
    })
}

fn exclusive_cases() -> impl Iterator<Item = Case> {
    let sets = || 0..1 << TOKENS;
    nodes().flat_map(move |node| {
        let commands =
            move |listening| commands().map(move |(token, verb)| Case { node, listening, token, verb, sharing: 0 });
        sets().flat_map(commands)
    })
}

fn nodes() -> impl Iterator<Item = model::Node> {
    let flags = || [(false, false), (false, true), (true, false), (true, true)].into_iter();
    let held = (0..TOKENS).flat_map(move |owner| {
        flags().map(move |(is_claim, is_marked)| model::Node {
            owner: Some(owner),
            is_claim,
            is_marked,
            ..model::Node::default()
        })
    });
    let owned = held.chain([model::Node::default()]);
    owned.flat_map(|node| (0..1 << TOKENS).map(move |queue| model::Node { queue, ..node }))
}

fn commands() -> impl Iterator<Item = (u8, model::Verb)> {
    use model::Verb::{Acquire, Adopt, Extend, Release, SetNx, Yield};
    let adopt = (0..TOKENS).map(|from| Adopt { from });
    let yields = (0..TOKENS).map(|to| Yield { to: Some(to) });
    let others = [SetNx, Acquire { holds: false }, Acquire { holds: true }, Extend, Yield { to: None }, Release];
    let verbs: Vec<_> = others.into_iter().chain(adopt).chain(yields).collect();
    (0..TOKENS).flat_map(move |token| verbs.clone().into_iter().map(move |verb| (token, verb)))
}

fn by_the_model(case: Case, without: Option<redlock_model::Rule>) -> Outcome {
    let (mut node, mut published) = (case.node, Vec::new());
    let reply = node.execute(case.token, case.verb, case.sharing, without, &mut |token, notice| {
        published.push((token, notice));
        case.listening >> token & 1 == 1
    });
    let is_new = match reply {
        model::Reply::Kept => None,
        model::Reply::Granted { .. } | model::Reply::Extended { .. } => Some(true),
        model::Reply::Released | model::Reply::Yielded => Some(node.owner.is_some()),
        _ => Some(node.owner != case.node.owner),
    };
    in_order(case, Outcome { reply, published, node, is_new })
}

/// Sorts the notifications of readers. The node notifies them in the order of their lease ends, which the model does
/// not know; nor does the model know the start of their leases.
fn in_order(case: Case, mut outcome: Outcome) -> Outcome {
    if case.sharing != 0 {
        outcome.is_new = None;
        outcome.published.sort_unstable_by_key(|(token, notice)| (*token, format!("{notice:?}")));
    }
    outcome
}

/// Tokens, with the channel of each: every token belongs to another process.
struct Code {
    tokens: Vec<OwnerToken>,
    channels: Vec<String>,
    now: Instant,
}

impl Code {
    fn new() -> Self {
        let token = |number: u8| OwnerToken::new(ManagerId::numbered(number.into()), TokenTime::new(1, number.into()));
        let tokens: Vec<_> = (0..TOKENS).map(token).collect();
        let channels = tokens.iter().map(|token| channel(token.manager())).collect();
        Self { tokens, channels, now: Instant::from_origin(Duration::from_secs(3600)) }
    }

    fn token(&self, number: u8) -> OwnerToken {
        self.tokens[usize::from(number)]
    }

    fn number(&self, token: OwnerToken) -> u8 {
        let number = self.tokens.iter().position(|known| *known == token).expect("nobody makes tokens up");
        u8::try_from(number).unwrap()
    }

    fn run(&self, case: Case, without: Option<Rule>) -> Outcome {
        let mut state = self.state(case, Rules { without });
        let mut published = Vec::new();
        let (reply, _) = state.execute(self.now, &self.command(case), &mut |channel, wakeup| {
            let (token, notice) = self.told(channel, &wakeup);
            published.push((token, notice));
            (case.listening >> token & 1).into()
        });
        let left = state.holder(KEY).map(|holder| holder.expires.since(self.now));
        // The reply to a waiter contains the rest of the holder's lease.
        if let (Reply::Queued { left: told, .. } | Reply::Yielded { left: told }, 0) = (&reply, case.sharing) {
            assert_eq!(*told, left, "{case:?}");
        }
        let is_new = left.is_some_and(|left| left == TTL || left == CLAIM);
        let is_new = (reply != Reply::Kept).then_some(is_new);
        in_order(case, Outcome { reply: in_the_model(&reply), published, node: self.node(&state), is_new })
    }

    fn state(&self, Case { node, sharing, .. }: Case, rules: Rules) -> NodeState {
        let left = if node.is_claim { CLAIM_LEFT } else { TTL_LEFT };
        let holder = node.owner.map(|owner| Holder {
            token: self.token(owner),
            expires: self.now.after(left),
            is_marked: node.is_marked,
        });
        let (waiting, sharing): (Vec<_>, Vec<_>) =
            (0..TOKENS).filter(|token| node.is_queued(*token)).partition(|token| sharing >> token & 1 == 0);
        let [waiting, sharing] =
            [waiting, sharing].map(|tokens| tokens.into_iter().map(|token| self.token(token)).collect::<Vec<_>>());
        let mut state = NodeState::at(rules, KEY, holder, &waiting, self.now);
        state.share_at(KEY, &sharing, self.now);
        for token in (0..TOKENS).filter(|token| node.readers >> token & 1 == 1) {
            let left = if node.claims >> token & 1 == 1 { CLAIM_LEFT } else { TTL_LEFT };
            state.put_at(KEY, self.token(token), self.now.after(left), self.now);
        }
        state
    }

    fn node(&self, state: &NodeState) -> model::Node {
        let queue = state.queue(KEY, self.now).into_iter().fold(0, |queue, token| queue | 1 << self.number(token));
        let mut shared = model::Node { queue, ..model::Node::default() };
        for token in state.readers(KEY, self.now) {
            let (bit, left) = (1 << self.number(token), state.lease_left(KEY, token, self.now));
            shared.readers |= bit;
            shared.claims |= if left == Some(CLAIM) || left == Some(CLAIM_LEFT) { bit } else { 0 };
        }
        let Some(holder) = state.holder(KEY) else { return shared };
        let is_claim = match holder.expires.since(self.now) {
            CLAIM | CLAIM_LEFT => true,
            TTL | TTL_LEFT => false,
            other => panic!("nobody has asked for {other:?}"),
        };
        model::Node { owner: Some(self.number(holder.token)), is_claim, is_marked: holder.is_marked, ..shared }
    }

    fn command(&self, Case { token, verb, sharing, .. }: Case) -> Command {
        let (ttl, claim) = (TTL, CLAIM);
        let (verb, other) = match verb {
            model::Verb::SetNx => (Verb::SetNx { ttl }, None),
            model::Verb::Acquire { holds } => (Verb::Acquire { ttl, claim, holds }, None),
            model::Verb::Extend => (Verb::Extend { ttl }, None),
            model::Verb::Adopt { from } => (Verb::Adopt { ttl }, Some(Box::new(self.token(from)))),
            model::Verb::Yield { to } => (Verb::Yield { claim }, to.map(|to| Box::new(self.token(to)))),
            model::Verb::Release => (Verb::Release { claim }, None),
        };
        let mode = if sharing >> token & 1 == 1 { Mode::Shared } else { Mode::Exclusive };
        let subject = Subject { other, ..Subject::new(KEY.into(), self.token(token)) }.of_mode(mode);
        Command { verb, fence: None, subject: Arc::new(subject) }
    }

    fn told(&self, channel: &str, wakeup: &Wakeup) -> (u8, model::Notice) {
        let token = self.number(wakeup.subject.token);
        assert_eq!((wakeup.subject.key.name(), channel), (KEY, &*self.channels[usize::from(token)]));
        let notice = match wakeup.notice {
            Notice::Claimed(Claim { length, begun }) => {
                assert_eq!((length, begun), (CLAIM, self.now.since_origin()));
                model::Notice::Granted
            }
            Notice::Contended { by } => model::Notice::Contended { by: self.number(by) },
            Notice::Wanted { by } => model::Notice::Wanted { by: self.number(by) },
            Notice::Granted
            | Notice::Proven(_)
            | Notice::Free
            | Notice::Freed
            | Notice::Busy
            | Notice::Revoked { .. }
            | Notice::Stopped => {
                panic!("no node says so to these managers")
            }
        };
        (token, notice)
    }
}

/// Converts a reply to the terms of the model, which has neither remaining times nor numbers.
fn in_the_model(reply: &Reply) -> model::Reply {
    match *reply {
        Reply::Granted { smaller, number: None } => model::Reply::Granted { smaller },
        Reply::Taken => model::Reply::Taken,
        Reply::Queued { rank, .. } => model::Reply::Queued { rank },
        Reply::Extended { waiters, number: None } => model::Reply::Extended { waiters },
        Reply::Kept => model::Reply::Kept,
        Reply::Yielded { .. } => model::Reply::Yielded,
        Reply::Released => model::Reply::Released,
        Reply::NotOwner => model::Reply::NotOwner,
        Reply::Granted { .. } | Reply::Extended { .. } => panic!("nobody has asked for a number"),
        Reply::Found { .. } => panic!("no node says of itself that it abstains"),
        Reply::Revoked { .. } => panic!("nobody breaks a lock"),
        Reply::Entered { .. } => panic!("nobody wants a permit"),
        Reply::Unfinished { .. } => panic!("not so many are gone"),
        Reply::Raised => panic!("no register is raised"),
    }
}

#[test]
fn node_agrees_with_the_model_in_every_small_state() {
    let code = Code::new();
    for case in cases() {
        assert_eq!(code.run(case, None), by_the_model(case, None), "code left, model right: {case:?}");
    }
}

#[test]
fn node_agrees_with_the_model_without_each_rule() {
    let code = Code::new();
    for rule in RULES {
        let mut differing = 0;
        for case in cases() {
            let by_the_model = by_the_model(case, Some(rule));
            let by_the_code = code.run(case, Some(to_code_rule(rule)));
            assert_eq!(by_the_code, by_the_model, "without {rule:?}, code left, model right: {case:?}");
            differing += u32::from(by_the_code != code.run(case, None));
        }
        println!("without {rule:?}, {differing} of {} steps are others", cases().count());
        assert!(differing > 0, "{rule:?} is not a rule of the node");
    }
}

/// Largest register and ballot.
const MOST: u8 = 4;

/// Returns each pair of a register and a ballot.
fn proposals() -> impl Iterator<Item = (u8, u8)> {
    (0..=MOST).flat_map(|register| (1..=MOST + 1).map(move |ballot| (register, ballot)))
}

fn proposed_in_the_model((register, ballot): (u8, u8), without: Option<redlock_model::Rule>) -> (bool, u8) {
    let mut register = fencing::Register(register);
    let is_accepted = register.propose(ballot, without.map_or(fencing::Variant::Protocol, fencing::Variant::Without));
    (is_accepted, register.0)
}

fn proposed_in_the_code((register, ballot): (u8, u8), without: Option<Rule>) -> (bool, u8) {
    let mut registers = Registers::at(7, register.into());
    let number = registers.propose(7, ballot.into(), Rules { without }).unwrap();
    let largest = registers.look(7);
    let expected = Number::Refused { largest };
    assert!(number == Number::Accepted(ballot.into()) || number == expected, "{number:?}");
    (number != expected, u8::try_from(largest).unwrap())
}

#[test]
fn registers_accept_ballots_like_the_model() {
    for without in [None, Some(redlock_model::Rule::BallotsOnlyRise)] {
        for proposal in proposals() {
            let by_the_code = proposed_in_the_code(proposal, without.map(to_code_rule));
            assert_eq!(by_the_code, proposed_in_the_model(proposal, without), "without {without:?}: {proposal:?}");
        }
    }
}

#[test]
fn registers_are_raised_like_the_model() {
    for (register, number) in proposals() {
        let (mut registers, mut in_the_model) = (Registers::at(7, register.into()), fencing::Register(register));
        registers.raise(7, number.into());
        in_the_model.raise(number);
        assert_eq!(registers.look(7), u64::from(in_the_model.0), "{register}, {number}");
    }
}

/// Checks the number of compared cases, so that none is lost unnoticed.
#[test]
fn every_small_state_is_compared() {
    let kinds = cases().map(|case| std::mem::discriminant(&by_the_model(case, None).reply));
    let (states, replies): (BTreeSet<_>, HashSet<_>) = (nodes().collect(), kinds.collect());
    assert_eq!((states.len(), exclusive_cases().count(), replies.len()), (272, 272 * 16 * 56, 8));
    // Readers with their claims, and writers or no owner; six sets of listeners; and no adoption.
    assert_eq!(shared_cases().count(), (3 * 4 * 16 + 9 * 16) * 6 * 4 * 10);
    assert_eq!(proposals().count(), 5 * 5);
}
