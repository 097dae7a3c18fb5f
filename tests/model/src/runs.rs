//! Searches of the tests and of the long run.

use crate::fencing::{Fencing, Variant};
use crate::lock::{Scenario, UNBOUNDED};
use crate::permits::{Permits, Variant as PermitsVariant};
use crate::restarts::{Fault, Restarts};
use crate::rule::Rule;
use crate::search::{Limits, Model, Outcome, search};
use crate::sets::{Class, Sets, Wish};

/// A scenario of the lock with its name.
#[derive(Debug, Clone)]
pub struct Run {
    /// Name of the scenario.
    pub name: &'static str,
    /// Bounds and faults of the scenario.
    pub scenario: Scenario,
}

/// Limits of the tests: far more states than any of their searches has.
const TEST_LIMITS: Limits = Limits { states: 20_000_000, progress: false };

/// Limits of the long run, which takes up to 9 GB.
const LONG_LIMITS: Limits = Limits { states: 200_000_000, progress: true };

/// Returns the searches of `cargo test`: two tokens on three nodes with every kind of fault, and any node by itself.
#[must_use]
pub fn of_the_tests() -> Vec<Run> {
    let pair = || Scenario::new(3, 2);
    let timers = || Scenario { expiries: 1, polls: 1, ..pair() };
    vec![
        run("no faults", Scenario { fast: true, give_up: true, ..pair() }),
        run("no faults, three tokens", Scenario { give_up: true, ..Scenario::new(3, 3) }),
        run("a node that never answers", Scenario { frozen: true, give_up: true, ..pair() }),
        run("any expiries", Scenario { expiries: UNBOUNDED, give_up: true, ..pair() }),
        run("a crash", Scenario { fast: true, crashes: 1, ..timers() }),
        run("a cut, without timers", Scenario { fast: true, cuts: 1, ..pair() }),
        run("a cut", Scenario { cuts: 1, ..timers() }),
        run("two cuts, and a fresh token after them", Scenario { cuts: 2, successor: true, ..pair() }),
        run(
            "one node, any expiries, a cut",
            Scenario { expiries: UNBOUNDED, polls: UNBOUNDED, cuts: 1, ..Scenario::new(1, 3) },
        ),
        run(
            "one node, some try at once, any expiries, a cut",
            Scenario { fast: true, expiries: UNBOUNDED, polls: 1, cuts: 1, ..Scenario::new(1, 3) },
        ),
        run("a detached lock, two adopters and a waiter", Scenario { give_up: true, ..detached(3, 4) }),
        run("a detached lock, two adopters, a cut", Scenario { cuts: 1, ..detached(3, 3) }),
        run("a detached lock, two adopters, any expiries", Scenario { expiries: UNBOUNDED, ..detached(3, 3) }),
        run("claims that are proven", Scenario { proves: ALL, fast: true, give_up: true, ..pair() }),
        run("claims that are proven, any expiries", Scenario { proves: ALL, expiries: UNBOUNDED, ..pair() }),
        run("claims that are proven, an expiry and a poll", Scenario { proves: ALL, ..timers() }),
        run("claims of two nodes are proven, any expiries", Scenario { proves: 2, expiries: UNBOUNDED, ..pair() }),
        run("claims that are proven, a cut", Scenario { proves: ALL, cuts: 1, ..pair() }),
        run("one node, claims that are proven, any expiries", Scenario { polls: 1, ..proven(&Scenario::new(1, 3)) }),
        run("any node, claims that are proven", proven(&Scenario::lone_node(2, 2))),
        run("readers and a writer", Scenario { give_up: true, ..shared(3, 3, 0b101) }),
        run("a writer and readers", Scenario { give_up: true, ..shared(3, 3, 0b110) }),
        run(
            "readers and a writer, one node, a cut",
            Scenario { cuts: 1, polls: 1, expiries: 1, ..shared(1, 3, 0b101) },
        ),
        run("a reader and a writer, a crash", Scenario { crashes: 1, expiries: 1, polls: 1, ..shared(3, 2, 0b01) }),
        run("a writer and a reader, a cut", Scenario { cuts: 1, fast: true, ..shared(3, 2, 0b10) }),
        run("scripts that fail", Scenario { failures: 2, polls: 1, give_up: true, ..pair() }),
        run("scripts that fail, one node, a cut", Scenario { failures: 1, polls: 1, cuts: 1, ..Scenario::new(1, 2) }),
        run("forged messages", Scenario { forgeries: 1, fast: true, give_up: true, ..pair() }),
        run("two forged messages", Scenario { forgeries: 2, ..pair() }),
        run("forged messages, one node, three tokens", Scenario { forgeries: 2, give_up: true, ..Scenario::new(1, 3) }),
        run("forged messages, a cut", Scenario { forgeries: 1, cuts: 1, ..Scenario::new(1, 2) }),
        run("any node, a detached lock", Scenario { adopters: 2, ..Scenario::lone_node(3, 2) }),
        run("any node, a cut", Scenario { cuts: 1, ..Scenario::lone_node(2, 2) }),
    ]
}

/// Value of `proves` for proofs from every node.
const ALL: usize = usize::MAX;

/// Returns the scenario with proven claims whose proofs end at any time.
fn proven(scenario: &Scenario) -> Scenario {
    Scenario { proves: ALL, expiries: UNBOUNDED, ..scenario.clone() }
}

/// Returns a scenario in which the tokens with a bit in `sharing` are readers.
fn shared(nodes: usize, tokens: usize, sharing: u8) -> Scenario {
    Scenario { sharing, ..Scenario::new(nodes, tokens) }
}

/// Returns a scenario with a detached lock, and two tokens that adopt it at the same time.
fn detached(nodes: usize, tokens: usize) -> Scenario {
    Scenario { adopters: 2, ..Scenario::new(nodes, tokens) }
}

/// Returns the additional searches of `tests/run.sh --long`: three tokens with `YIELD` and `EXTEND`.
#[must_use]
pub fn of_the_long_run() -> Vec<Run> {
    let three = || Scenario::new(3, 3);
    vec![
        run("any node, three tokens", Scenario::lone_node(3, 2)),
        run("any node, a crash and a cut", Scenario { crashes: 1, cuts: 1, ..Scenario::lone_node(2, 2) }),
        run("three tokens, an expiry and a poll", Scenario { expiries: 1, polls: 1, ..three() }),
        run("three tokens, two expiries", Scenario { expiries: 2, ..three() }),
        run("three tokens, an expiry and a crash", Scenario { expiries: 1, crashes: 1, ..three() }),
        run("three tokens, a cut", Scenario { cuts: 1, ..three() }),
    ]
}

/// Returns each optional rule with a scenario that needs it, and a part of the resulting error.
#[must_use]
pub fn without_a_rule() -> Vec<(Rule, Scenario, &'static str)> {
    let pair = || Scenario::new(3, 2);
    let one_node = || Scenario { cuts: 1, ..Scenario::new(1, 2) };
    let timers = |scenario| Scenario { expiries: UNBOUNDED, polls: 1, ..scenario };
    let crash = |scenario| Scenario { crashes: 1, ..scenario };
    vec![
        (Rule::YieldVoids, pair(), "hold the lock at once"),
        (Rule::ClaimIsNoLease, timers(pair()), "hold the lock at once"),
        (Rule::ProofNeedsATime, Scenario { polls: 1, ..proven(&pair()) }, "hold the lock at once"),
        (Rule::YieldVoidsProof, proven(&Scenario::lone_node(2, 2)), "does not own"),
        (Rule::CutYieldTaints, Scenario { cuts: 1, ..pair() }, "hold the lock at once"),
        (Rule::ReleaseChecksTheOwner, Scenario { give_up: true, ..Scenario::new(3, 3) }, "hold the lock at once"),
        (Rule::ReleasedTokensAreDead, Scenario { cuts: 1, ..pair() }, "hold the lock at once"),
        (Rule::AdopterReplaces, detached(3, 3), "hold the lock at once"),
        (Rule::ValidityFromTheSend, timers(pair()), "hold the lock at once"),
        (Rule::OwnTurnIsALease, crash(Scenario::lone_node(2, 1)), "does not own"),
        (Rule::ReleasesAreSeenThrough, one_node(), "nothing is on its way"),
        (Rule::UnknownTokensAreReleased, one_node(), "nothing is on its way"),
        (Rule::WaitersMarkTheHolder, pair(), "nothing is on its way"),
        (Rule::HandOverKeepsTheMark, Scenario::new(1, 3), "nothing is on its way"),
        (Rule::AdoptionKeepsTheMark, Scenario { give_up: true, ..detached(3, 4) }, "nothing is on its way"),
        (Rule::VotesAreWonBack, Scenario { cuts: 1, ..pair() }, "stays without it"),
        (Rule::WaitersYieldToTheHolder, pair(), "stays without it"),
        (Rule::YieldAtOnce, Scenario { frozen: true, ..pair() }, "nothing is on its way"),
        // The late release of the first of two tokens hands the lock over.
        (Rule::HolderHearsOfEveryCall, timers(Scenario { tokens: 3, ..one_node() }), "polling does not help"),
        // After one crash, the release of the other token removes the absent waiter.
        (Rule::QueuesExpire, Scenario { crashes: 2, ..timers(pair()) }, "still has a key or a queue"),
        (Rule::AllHoldersHear, shared(2, 3, 0b110), "nothing is on its way"),
        (Rule::LeavingUnblocks, Scenario { give_up: true, ..shared(1, 3, 0b101) }, "nothing is on its way"),
        (Rule::BlockersArePinged, crash(timers(shared(1, 3, 0b101))), "polling does not help"),
        (Rule::ReadersTogether, shared(1, 3, 0b110), "nothing is on its way"),
        (Rule::ForeignTokensAreIgnored, Scenario { forgeries: 1, ..pair() }, "hold the lock at once"),
        (
            Rule::FailedScriptsAreReleased,
            Scenario { failures: 1, polls: 1, give_up: true, ..pair() },
            "still has a key or a queue",
        ),
    ]
}

/// Returns the requests for several names of the test run, each with its name.
#[must_use]
pub fn sets() -> Vec<(&'static str, Sets)> {
    vec![
        ("both names, twice", several(3, &[AB, AB])),
        ("both names, twice, and one gives up", Sets { give_up: true, ..several(3, &[AB, AB]) }),
        ("a name, both, and the other", Sets { give_up: true, ..several(2, &[A, AB, B]) }),
        ("both names, and each", Sets { give_up: true, ..several(2, &[AB, A, B]) }),
        ("a ring of three names", Sets { give_up: true, ..several(2, &[AB, BC, CA]) }),
        ("a ring of three names, three nodes", several(3, &[AB, BC, CA])),
        ("a folder and two places in it", Sets { give_up: true, ..several(2, &[FOLDER, BELOW, BESIDE]) }),
        ("two places in a folder, and the folder", Sets { give_up: true, ..several(2, &[BELOW, BESIDE, FOLDER]) }),
        ("a place, the folder, and another place, three nodes", several(3, &[BELOW, FOLDER, BESIDE])),
        ("a shared folder and places in it", Sets { give_up: true, ..several(2, &[SHARED_FOLDER, BELOW, READ_BELOW]) }),
        ("both names, of which one is taken away, and each", Sets { taken_away: 2, ..several(2, &[AB, A, B]) }),
        ("both names, twice, one is taken away, three nodes", Sets { taken_away: 2, ..several(3, &[AB, AB]) }),
        (
            "a place that is taken away, and its folder",
            Sets { taken_away: 2, ..several(2, &[BELOW, FOLDER, READ_BELOW]) },
        ),
        ("a writer that goes on as a reader, three nodes", Sets { lower: true, ..several(3, &[A, READ_A]) }),
        ("a writer that goes on as a reader, and both others", Sets { lower: true, ..several(2, &[A, READ_A, A]) }),
        (
            "both names by one that goes on as a reader, and readers",
            Sets { lower: true, ..several(2, &[AB, READ_A, READ_AB]) },
        ),
        (
            "a folder by one that goes on as a reader, and below it",
            Sets { lower: true, ..several(2, &[FOLDER, READ_BELOW, BELOW]) },
        ),
        ("two writers that go on as readers, a cut", Sets { lower: true, cuts: 1, ..several(2, &[A, AB, READ_A]) }),
        ("both names, twice, two cuts, three nodes", Sets { cuts: 2, ..several(3, &[AB, AB]) }),
        ("both names, and each, a cut", Sets { cuts: 1, ..several(2, &[AB, A, B]) }),
        ("a ring of three names, a cut", Sets { cuts: 1, ..several(2, &[AB, BC, CA]) }),
        ("a folder and two places in it, a cut", Sets { cuts: 1, ..several(2, &[FOLDER, BELOW, BESIDE]) }),
        (
            "both names, twice, a process that ends, a cut, three nodes",
            Sets { cuts: 1, deaths: 1, ..several(3, &[AB, AB]) },
        ),
        ("a ring of three names, a process that ends", Sets { deaths: 1, ..several(2, &[AB, BC, CA]) }),
        (
            "a place, the folder, and another place, a process that ends",
            Sets { deaths: 1, ..several(2, &[BELOW, FOLDER, BESIDE]) },
        ),
    ]
}

/// Returns each optional rule with requests that need it, and a part of the resulting error.
#[must_use]
pub fn sets_without_a_rule() -> Vec<(Rule, Sets, &'static str)> {
    vec![
        (Rule::YieldVoids, several(3, &[AB, AB]), "hold the lock at once"),
        (Rule::AllHoldersHear, several(2, &[FOLDER, BELOW, BESIDE]), "nothing is on its way"),
        (
            Rule::LeavingUnblocks,
            Sets { give_up: true, ..several(1, &[BELOW, FOLDER, BESIDE]) },
            "nothing is on its way",
        ),
        (Rule::IntentsKeepOut, several(2, &[FOLDER, BELOW]), "hold the lock at once"),
        (Rule::DowngradeNeverRises, Sets { lower: true, cuts: 1, ..several(1, &[A, READ_A]) }, "waits for nobody"),
        (Rule::CutYieldTaints, Sets { cuts: 1, ..several(3, &[AB, AB]) }, "hold the lock at once"),
        (Rule::PartsLeftAreReleased, Sets { taken_away: 1, ..several(3, &[AB, A]) }, "a node is not empty"),
    ]
}

const X: Option<Class> = Some(Class::Exclusive);
const S: Option<Class> = Some(Class::Shared);
const IX: Option<Class> = Some(Class::IntentExclusive);
const IS: Option<Class> = Some(Class::IntentShared);

const A: Wish = [X, None, None];
const READ_A: Wish = [S, None, None];
const READ_AB: Wish = [S, S, None];
const B: Wish = [None, X, None];
const AB: Wish = [X, X, None];
const BC: Wish = [None, X, X];
const CA: Wish = [X, None, X];
const FOLDER: Wish = [X, None, None];
const SHARED_FOLDER: Wish = [S, None, None];
const BELOW: Wish = [IX, X, None];
const BESIDE: Wish = [IX, None, X];
const READ_BELOW: Wish = [IS, S, None];

fn several(nodes: usize, wanted: &[Wish]) -> Sets {
    let mut wishes = [A; 3];
    wishes[..wanted.len()].copy_from_slice(wanted);
    Sets {
        nodes,
        tokens: wanted.len(),
        wishes,
        give_up: false,
        taken_away: 0,
        lower: false,
        cuts: 0,
        deaths: 0,
        without: None,
    }
}

/// Returns the fencing scenarios of the test run, each with its name.
#[must_use]
pub fn fencing() -> Vec<(&'static str, Fencing)> {
    let calm = Fencing { changes: 0, ..FENCING_PAIR };
    let learning = Fencing { learns: true, ..calm };
    vec![
        ("two tokens, two rounds, a change", FENCING_PAIR),
        ("two tokens, nodes that lose their data", Fencing { rounds: 1, wipes: 2, ..calm }),
        ("two tokens, a node that loses its data when all know it", Fencing { wipes: 1, ..learning }),
        ("two tokens, nodes that lose their data and are taught", Fencing { wipes: 2, ..learning }),
        ("two tokens, a damaged register", Fencing { poisons: 1, ..calm }),
        ("two tokens, two damaged registers", Fencing { poisons: 2, ..calm }),
        ("three tokens", Fencing { tokens: 3, rounds: 1, ..calm }),
        ("a name, and it and another with one number", Fencing { wants: [1, 3, 0], ..FENCING_PAIR }),
    ]
}

/// Returns each rule of fencing numbers with a scenario that needs it, and a part of the resulting error.
#[must_use]
pub fn fencing_without_a_rule() -> Vec<(Rule, Fencing, &'static str)> {
    let late = "a number that does not rise";
    let calm = Fencing { changes: 0, ..FENCING_PAIR };
    let learning = Fencing { learns: true, ..calm };
    vec![
        (Rule::BallotsOnlyRise, FENCING_PAIR, late),
        (Rule::EveryRegisterAccepts, Fencing { wants: [1, 3, 0], ..FENCING_PAIR }, late),
        (Rule::AcceptsAreOfOneRound, FENCING_PAIR, late),
        (Rule::RefusedIsNotIssued, FENCING_PAIR, late),
        (Rule::AcceptsEndWithTheVote, FENCING_PAIR, late),
        (Rule::WonVotesCarryTheNumber, Fencing { rounds: 1, wipes: 2, ..calm }, late),
        (Rule::NodesLearnAgreedNumbers, Fencing { wipes: 1, ..learning }, late),
        (Rule::ReturningNodesLearnNumbers, Fencing { wipes: 2, ..learning }, late),
        (Rule::FarNumbersNeedAQuorum, Fencing { poisons: 1, ..calm }, "a damaged register has raised another node"),
    ]
}

/// Returns simpler ways to make numbers, each with a scenario that refutes it, and a part of the resulting error.
#[must_use]
pub fn simpler_fencing() -> Vec<(Fencing, &'static str)> {
    let varied = |variant, model| Fencing { variant, ..model };
    let calm = Fencing { changes: 0, ..FENCING_PAIR };
    vec![
        (varied(Variant::Overwrites, FENCING_PAIR), "a number that does not rise"),
        (varied(Variant::OneNodeIsEnough, FENCING_PAIR), "a number that does not rise"),
        (varied(Variant::TellsCount, Fencing { wipes: 1, learns: true, ..calm }), "a number that does not rise"),
        (varied(Variant::FarNumbersAreIgnored, Fencing { poisons: 2, ..calm }), "gets no number"),
    ]
}

/// Returns the fencing scenarios of the long run, each with its name. The last may have more states than the memory allows.
#[must_use]
pub fn fencing_of_the_long_run() -> Vec<(&'static str, Fencing)> {
    vec![
        ("three tokens, a change", Fencing { tokens: 3, rounds: 1, ..FENCING_PAIR }),
        ("two names, and both with one number", Fencing { tokens: 3, wants: [1, 2, 3], rounds: 1, ..FENCING_PAIR }),
        ("three fencing numbers", Fencing { tokens: 3, ballots: 3, changes: 2, ..FENCING_PAIR }),
    ]
}

const FENCING_PAIR: Fencing = Fencing {
    tokens: 2,
    wants: [1; 3],
    rounds: 2,
    ballots: 2,
    changes: 1,
    wipes: 0,
    learns: false,
    poisons: 0,
    variant: Variant::Protocol,
};

/// Returns the restart scenarios of the test run, each with its name.
#[must_use]
pub fn restarts() -> Vec<(&'static str, Restarts)> {
    let newcomer = |servers| Restarts { is_newcomer: true, ..restarting(servers) };
    let cold = |servers| Restarts { is_cold: true, ..newcomer(servers) };
    let durable = |model| Restarts { are_durable: true, ..model };
    vec![
        ("three servers, one restarts empty", Restarts { asks: 2, ..restarting(3) }),
        ("three servers, two restart empty", Restarts { faults: 2, asks: 2, ..restarting(3) }),
        ("four servers, two restart empty", Restarts { faults: 2, ..restarting(4) }),
        ("three servers, a promoted replica", promoting(3)),
        ("three servers, replaced data, no markers", Restarts { asks: 2, ..replacing(3) }),
        ("three durable servers, a restart with any data", Restarts { kinds: ANY_RESTART, ..durable(restarting(3)) }),
        (
            "three durable servers, two restarts with all data or none",
            Restarts { kinds: &[Fault::Restart, Fault::RestartEmpty], faults: 2, ..durable(restarting(3)) },
        ),
        ("three servers, a newcomer", newcomer(3)),
        ("four servers, a newcomer", newcomer(4)),
        ("five servers, a newcomer", newcomer(5)),
        ("three durable servers, a newcomer", durable(newcomer(3))),
        ("three servers, a cold start", cold(3)),
        ("four servers, a cold start", cold(4)),
        ("five servers, a cold start", cold(5)),
        ("three durable servers, a cold start", durable(cold(3))),
        ("three servers, a cold start of all processes", Restarts { is_newcomer: false, ..cold(3) }),
    ]
}

/// Returns each rule about restarts with a scenario that needs it, and a part of the resulting error.
#[must_use]
pub fn restarts_without_a_rule() -> Vec<(Rule, Restarts, &'static str)> {
    let both = "hold the lock at once";
    let newcomer = Restarts { is_newcomer: true, ..restarting(3) };
    let cold = Restarts { is_cold: true, ..newcomer };
    let durable = Restarts { are_durable: true, ..restarting(3) };
    vec![
        (Rule::FindingProvesNothing, Restarts { asks: 2, ..restarting(3) }, both),
        (Rule::PromotionsAreNoRestarts, promoting(3), both),
        (Rule::ReplacedDataIsForgotten, replacing(3), both),
        (Rule::YoungServersAbstain, newcomer, both),
        (Rule::ColdStartsAreTrusted, cold, "no server has forgotten a lock"),
        (Rule::OlderServersOutvoteYoung, cold, both),
        (Rule::DurabilityIsProven, durable, both),
        (Rule::OlderDataIsForgotten, Restarts { kinds: &[Fault::RestartOnCopy], ..durable }, both),
        (Rule::NewcomersTrustNoSettings, Restarts { are_durable: true, ..newcomer }, both),
    ]
}

const ANY_RESTART: &[Fault] = &[Fault::Restart, Fault::RestartEmpty, Fault::RestartOnCopy];

/// Returns a scenario in which one server restarts empty, and both clients know the servers.
fn restarting(servers: usize) -> Restarts {
    Restarts {
        servers,
        is_cold: false,
        are_durable: false,
        has_markers: true,
        is_newcomer: false,
        kinds: &[Fault::RestartEmpty],
        faults: 1,
        cuts: 0,
        asks: 1,
        without: None,
    }
}

fn promoting(servers: usize) -> Restarts {
    Restarts { kinds: &[Fault::Promote], cuts: 1, ..restarting(servers) }
}

fn replacing(servers: usize) -> Restarts {
    Restarts { kinds: &[Fault::Replace], has_markers: false, ..restarting(servers) }
}

/// Returns the permit scenarios of the test run, each with its name.
#[must_use]
pub fn permits() -> Vec<(&'static str, Permits)> {
    let pair = permits_of_two();
    vec![
        ("two tokens, votes that are won back", Permits { returns: 2, expiries: 2, ..pair }),
        ("two tokens, one wins votes back, a cut", Permits { returns: 1, expiries: 1, cuts: 1, ..pair }),
        ("two tokens of a process, one wins votes back", Permits { returns: 1, expiries: 2, ..in_one_process(pair) }),
        ("two tokens, permits that are taken away", Permits { returns: 2, thefts: 2, expiries: 1, ..pair }),
        ("two tokens, one is taken away, a cut", Permits { returns: 1, thefts: 1, cuts: 1, ..pair }),
        (
            "two tokens of a process, one is taken away, a cut",
            Permits { thefts: 1, returns: 1, expiries: 0, ..in_one_process(pair) },
        ),
        ("three tokens, one permit, one wins votes back", Permits { tokens: 3, returns: 1, ..pair }),
        ("two tokens, one permit, an expiry and a cut", Permits { expiries: 1, cuts: 1, ..pair }),
        ("three tokens, two permits", Permits { tokens: 3, permits: 2, ..pair }),
        ("two tokens of a process", Permits { processes: [0, 0, 1, 2], expiries: 2, cuts: 1, ..pair }),
        ("two tokens of a process and one more", Permits { tokens: 3, processes: [0, 0, 1, 2], ..pair }),
        ("two tokens, of which some are dropped", Permits { drops: true, expiries: 1, cuts: 1, ..pair }),
        ("two of a process, dropped and passed on", Permits { drops: true, ..in_one_process(pair) }),
        ("two tokens, an admission lock that is yielded", Permits { yields: 1, cuts: 1, ..pair }),
        ("three tokens, one permit, an expiry", Permits { tokens: 3, expiries: 1, ..pair }),
        ("two tokens, a node that forgets", Permits { quorum: 3, wipes: 1, cuts: 1, ..pair }),
    ]
}

/// Returns each optional rule of permits, with a scenario that needs it.
#[must_use]
pub fn permits_without_a_rule() -> Vec<(&'static str, Permits)> {
    let pair = permits_of_two();
    let three = Permits { tokens: 3, permits: 2, ..pair };
    let without = |rule, model| Permits { variant: PermitsVariant::Without(rule), ..model };
    let varied = |variant, model| Permits { variant, ..model };
    vec![
        ("no admission lock", varied(PermitsVariant::NoAdmissionLock, three)),
        (
            "an admission lock that has expired",
            without(Rule::ListsEndWithTheAdmissionLock, Permits { expiries: 3, cuts: 1, ..pair }),
        ),
        ("each node for itself", without(Rule::ListsAreUnited, three)),
        ("an extension finds one", varied(PermitsVariant::ExtensionsCount, in_one_process(pair))),
        ("a late question", varied(PermitsVariant::LateEntersCreate, in_one_process(pair))),
        ("an extension after the lease", varied(PermitsVariant::LapsedExtensionsCount, in_one_process(pair))),
        ("a node that forgets", varied(PermitsVariant::NobodyForgets, Permits { quorum: 3, wipes: 1, ..pair })),
        (
            "outside of the admission lock",
            varied(PermitsVariant::VotesReturnOutside, Permits { returns: 1, expiries: 2, ..pair }),
        ),
        ("one that was taken away", without(Rule::VotersAreAskedFirst, Permits { returns: 1, thefts: 2, ..pair })),
        ("an extension makes one", varied(PermitsVariant::ExtensionsCreate, Permits { expiries: 3, cuts: 1, ..pair })),
    ]
}

const fn permits_of_two() -> Permits {
    let variant = PermitsVariant::Protocol;
    let (yields, wipes, thefts, returns, quorum, drops) = (0, 0, 0, 0, 2, false);
    Permits {
        tokens: 2,
        permits: 1,
        processes: [0, 1, 2, 3],
        expiries: 0,
        cuts: 0,
        yields,
        wipes,
        thefts,
        returns,
        quorum,
        drops,
        variant,
    }
}

/// Returns the scenario with all calls in one process, which hand the admission lock to each other.
const fn in_one_process(model: Permits) -> Permits {
    Permits { processes: [0, 0, 1, 2], expiries: 2, cuts: 1, ..model }
}

/// Searches up to the limits of a test.
pub fn search_in_test<M: Model>(model: &M) -> Outcome {
    search(model, TEST_LIMITS)
}

/// Searches up to the limits of the long run.
pub fn search_long<M: Model>(model: &M) -> Outcome {
    search(model, LONG_LIMITS)
}

fn run(name: &'static str, scenario: Scenario) -> Run {
    Run { name, scenario }
}
