//! Checks that every rule is needed: without it, some schedule breaks a promise, and with it, none does.

use super::breaking::{breaks, broken_banks, heard_breaks, prompt_breaks};
use super::circumstances::{
    away_while_waiting, blinking, calm_delivery, clock_steps, cold_start, crashed_holder, crowd_with_crashes,
    cut_acquisitions, cut_extensions, cut_tries, cut_yields, cut_yields_and_others, cuts, dead_crowd, dead_readers,
    double_delivery, early_restarts, empty_disks, failed_over, failing_scripts, families_with_cuts, fenced_rolling,
    fenced_with_cuts, fenced_with_thefts, forged_messages, forgetful, forgetful_crowd, frozen_minority, frozen_servers,
    late_shutdowns, late_starts, late_starts_on_empty_disks, long_bodies, long_holds, lowered_rolling,
    numbers_of_the_gone, old_copies, one_forgets, one_freezes, poisoned_registers, promoted, replaced, rolling,
    shutdowns, slow_crowd, steps_while_waiting, taught_rolling, thefts, thefts_of_a_moment, troubled_minority,
    unrenewed, windows, wrong_clocks,
};
use super::claims::{late_announcements, steps_before_claims};
use super::faults::Faults;
use super::lingering::{lingering, lingering_deaf, lingering_shutdowns, lingering_tries, lingering_with_cancels};
use super::permits::{
    pool_among_writers, pool_and_alone, pool_of_families, pool_rolling, pool_with_cut_tries, pool_with_dead_waiters,
    pool_with_lost_entries, pool_with_pauses, pool_with_thefts,
};
use super::profile::Profile;
use super::records::Promise;
use super::run::run;
use super::sharing::{
    bank_with_crashes, joined_readers, joined_with_thefts, lowered_with_cuts, readers_and_writers, readers_crowd,
    readers_with_cancels, readers_with_crashes, readers_with_pauses, stream_of_readers,
};
use super::tree::{bank_among_tries, fenced_bank, tree, tree_with_cancels};
use super::{Failure, SCHEDULES, SEED, number, search};
use crate::protocol::rules::{Rule, Rules};
use crate::request::AfterRestart;

/// Environment variable that selects the cases of one rule.
const RULE: &str = "REDLOCK_SIMULATION_RULE";
/// Schedules within which a disabled rule must break its promise. Larger: a rule that hardly matters takes longer to
/// tell from a rule that does not matter at all.
const MOST: u64 = 20_000;
/// Schedules of each set of circumstances with all rules, in which nothing may break. The number is divided by the
/// calls of a task and by the length of their bodies. Smaller: circumstances that are harmful by themselves may look
/// like the loss of a rule.
const CONTROLS: u64 = 2500;

/// Length of a body, in milliseconds, that makes a schedule as long as one more call.
const LONG_BODY: u64 = 1500;

/// Rule, circumstances in which it matters, and promises that break without it.
type Case = (Rule, fn() -> Profile, &'static [Promise]);

const CASES: [Case; 111] = [
    (Rule::TokensFollowTheLatest, wrong_clocks, &[Promise::Fairness]),
    (Rule::ReleasedTokensAreDead, cut_yields, &[Promise::Exclusion, Promise::Owned, Promise::Clean]),
    (Rule::OwnTurnIsALease, crowd_with_crashes, &[Promise::Exclusion, Promise::Owned]),
    (Rule::QueuesExpire, crowd_with_crashes, &[Promise::Clean]),
    (Rule::HolderHearsOfEveryCall, families_with_cuts, &[Promise::Fairness]),
    (Rule::ExtensionNeverCreates, cut_extensions, &[Promise::Exclusion, Promise::Owned, Promise::Clean]),
    (Rule::AdopterReplaces, double_delivery, &[Promise::Exclusion, Promise::Owned]),
    (Rule::WaitersMarkTheHolder, Profile::calm, &[Promise::Progress]),
    (Rule::HandOverKeepsTheMark, Profile::calm, &[Promise::Progress]),
    (Rule::AdoptionKeepsTheMark, calm_delivery, &[Promise::Progress]),
    (Rule::ReleaseChecksTheOwner, cuts, &[Promise::Exclusion, Promise::Owned]),
    (Rule::ClaimIsNoLease, long_bodies, &[Promise::Exclusion, Promise::Owned]),
    (Rule::ProofNeedsATime, late_announcements, &[Promise::Exclusion, Promise::Owned]),
    (Rule::StepVoidsProof, steps_before_claims, &[Promise::Exclusion, Promise::Owned]),
    (Rule::AbstentionVoidsProof, forgetful_crowd, &[Promise::Exclusion]),
    (Rule::YieldVoids, slow_crowd, &[Promise::Exclusion, Promise::Owned]),
    (Rule::YieldAtOnce, frozen_minority, &[Promise::Progress]),
    (Rule::CutYieldTaints, cut_yields_and_others, &[Promise::Exclusion, Promise::Owned]),
    (Rule::ReleasesAreSeenThrough, cuts, &[Promise::Clean, Promise::Progress]),
    (Rule::UnknownTokensAreReleased, cut_acquisitions, &[Promise::Progress, Promise::Clean]),
    (Rule::ForeignTokensAreIgnored, forged_messages, &[Promise::Exclusion, Promise::Owned]),
    (Rule::WhoWasCutListens, cut_tries, &[Promise::Progress]),
    // A body that began with a provisional grant counts the lease from the answer, and runs for too long.
    (Rule::ValidityFromTheSend, long_bodies, &[Promise::Exclusion, Promise::Owned, Promise::BodyStops]),
    (Rule::TtlTimer, crashed_holder, &[Promise::Progress]),
    (Rule::PassesAreLimited, families_with_cuts, &[Promise::Fairness]),
    (Rule::BallotsOnlyRise, fenced_with_cuts, &[Promise::Fencing]),
    (Rule::FarNumbersNeedAQuorum, poisoned_registers, &[Promise::Progress]),
    (Rule::AcceptsAreOfOneRound, fenced_with_cuts, &[Promise::Fencing]),
    (Rule::RefusedIsNotIssued, fenced_with_cuts, &[Promise::Fencing]),
    (Rule::HoldsAreCapped, long_holds, &[Promise::BodyStops]),
    (Rule::WindowsAreKept, windows, &[Promise::MinHold]),
    (Rule::KeptTokensStay, windows, &[Promise::MinHold]),
    (Rule::BallotsOnlyRise, fenced_with_thefts, &[Promise::Fencing]),
    (Rule::LeasesAreRenewed, troubled_minority, &[Promise::Kept]),
    (Rule::VotesAreWonBack, rolling, &[Promise::Kept]),
    (Rule::WaitersYieldToTheHolder, one_freezes, &[Promise::Kept]),
    (Rule::VotersAreAskedFirst, thefts_of_a_moment, &[Promise::Continuous]),
    (Rule::LateClaimsAreConfirmed, thefts_of_a_moment, &[Promise::Continuous]),
    (Rule::WonVotesCarryTheNumber, fenced_rolling, &[Promise::Fencing]),
    (Rule::NodesLearnAgreedNumbers, numbers_of_the_gone, &[Promise::Fencing]),
    (Rule::ReturningNodesLearnNumbers, taught_rolling, &[Promise::Fencing]),
    (Rule::LoweredKeepTheirNumber, lowered_rolling, &[Promise::Fencing]),
    (Rule::UnrenewedLeasesEnd, unrenewed, &[Promise::BodyStops]),
    (Rule::ReconnectsAsk, blinking, &[Promise::Kept]),
    (Rule::OldLeasesAreConfirmed, steps_while_waiting, &[Promise::Owned, Promise::Exclusion]),
    (Rule::SilentVotesAreOpen, away_while_waiting, &[Promise::Progress]),
    (Rule::LossesAreLookedFor, thefts, &[Promise::LossKnown]),
    (Rule::ClosingEndsTheLines, shutdowns, &[Promise::Deadline]),
    (Rule::ShutdownWaitsForReleases, late_shutdowns, &[Promise::Clean]),
    (Rule::StepsShortenLeases, clock_steps, &[Promise::LossKnown]),
    (Rule::ProvenLeasesGoOn, failed_over, &[Promise::Kept]),
    (Rule::FindingProvesNothing, forgetful_crowd, &[Promise::Exclusion]),
    (Rule::ReplacedDataIsForgotten, replaced, &[Promise::Exclusion]),
    (Rule::PromotionsAreNoRestarts, promoted, &[Promise::Exclusion]),
    (Rule::YoungServersAbstain, late_starts, &[Promise::Exclusion]),
    (Rule::ColdStartsAreTrusted, cold_start, &[Promise::Progress]),
    (Rule::OlderServersOutvoteYoung, early_restarts, &[Promise::Exclusion]),
    (Rule::DurabilityIsProven, empty_disks, &[Promise::Exclusion]),
    (Rule::OlderDataIsForgotten, old_copies, &[Promise::Exclusion]),
    (Rule::NewcomersTrustNoSettings, late_starts_on_empty_disks, &[Promise::Exclusion]),
    (Rule::RecallAfterKnown, lingering, &[Promise::Progress]),
    (Rule::WantedIsNotKept, lingering, &[Promise::Progress]),
    (Rule::IdleEnds, lingering, &[Promise::Clean]),
    (Rule::HandlesReturnIdle, lingering_shutdowns, &[Promise::Clean]),
    (Rule::WhoDoesNotWaitAsks, lingering_tries, &[Promise::Given]),
    (Rule::OnlyUsedIsKept, lingering_with_cancels, &[Promise::Clean]),
    (Rule::BreakersTakeThePlace, breaks, &[Promise::Exclusion, Promise::Owned]),
    (Rule::BreakersNameTheHolder, prompt_breaks, &[Promise::Unbroken, Promise::Owned]),
    (Rule::BrokenLeasesKeepTheirEnd, breaks, &[Promise::Exclusion]),
    (Rule::BreakersWait, breaks, &[Promise::Exclusion]),
    (Rule::RevokedAskAll, prompt_breaks, &[Promise::LossKnown]),
    (Rule::RevokedGrantsAreVoid, prompt_breaks, &[Promise::LossKnown]),
    (Rule::NodesAreBelieved, prompt_breaks, &[Promise::Unbroken]),
    (Rule::StoppedIsSaidByTheEnd, breaks, &[Promise::Exclusion]),
    (Rule::DeadTokensSaySo, heard_breaks, &[Promise::Progress, Promise::Clean]),
    (Rule::SupersededMayWork, breaks, &[Promise::Exclusion]),
    (Rule::AllHoldersHear, readers_crowd, &[Promise::Progress]),
    (Rule::HoldersAreLeftAlone, readers_and_writers, &[Promise::Exclusion, Promise::Owned]),
    (Rule::LeavingUnblocks, readers_with_cancels, &[Promise::Progress]),
    (Rule::BlockersArePinged, readers_with_crashes, &[Promise::Progress]),
    (Rule::SilentWaitersLeave, readers_with_pauses, &[Promise::Progress]),
    (Rule::ReadersTogether, readers_and_writers, &[Promise::Progress, Promise::Order]),
    (Rule::DowngradeNeverRises, lowered_with_cuts, &[Promise::Exclusion, Promise::Owned]),
    (Rule::WaitersComeFirst, stream_of_readers, &[Promise::Fairness, Promise::Order]),
    (Rule::JoinsAreLimited, joined_readers, &[Promise::Fairness]),
    (Rule::HeldIsJoined, joined_with_thefts, &[Promise::Given]),
    (Rule::TheLastOneReleases, joined_with_thefts, &[Promise::Kept]),
    (Rule::ListsEndWithTheAdmissionLock, pool_with_pauses, &[Promise::Pool]),
    (Rule::ListsAreUnited, pool_with_lost_entries, &[Promise::Pool]),
    (Rule::PermitsGiveWay, pool_and_alone, &[Promise::Progress]),
    (Rule::PassedPermitsAreCounted, pool_of_families, &[Promise::Pool]),
    (Rule::AskedAheadEndsWithTheTry, pool_with_lost_entries, &[Promise::Pool]),
    (Rule::VotesAreWonBack, pool_rolling, &[Promise::Kept]),
    (Rule::VotersAreAskedFirst, pool_with_thefts, &[Promise::Pool]),
    (Rule::PermitsAreAskedAfter, pool_with_cut_tries, &[Promise::Progress]),
    (Rule::WaitersEnterBriefly, pool_with_dead_waiters, &[Promise::Progress]),
    (Rule::SharesAreKeptUntilAsked, pool_among_writers, &[Promise::Fairness]),
    (Rule::OwnSharesAreNotCounted, pool_among_writers, &[Promise::Fairness, Promise::Progress]),
    (Rule::IntentsKeepOut, tree, &[Promise::Exclusion, Promise::Owned]),
    (Rule::OnlyConcernedAreTold, tree, &[Promise::Quiet]),
    (Rule::ThoseLeftAreTold, tree, &[Promise::Progress]),
    (Rule::LeavingUnblocks, tree_with_cancels, &[Promise::Progress]),
    (Rule::EveryRegisterAccepts, fenced_bank, &[Promise::Fencing]),
    (Rule::PartsLeftAreReleased, broken_banks, &[Promise::Clean]),
    (Rule::UnfinishedReleasesAreRepeated, dead_crowd, &[Promise::Progress]),
    (Rule::UnfinishedReleasesAreRepeated, dead_readers, &[Promise::Progress]),
    (Rule::RepeatedReleasesGoOn, dead_crowd, &[Promise::Progress]),
    (Rule::RepeatedReleasesGoOn, dead_readers, &[Promise::Progress]),
    (Rule::FailedScriptsAreReleased, failing_scripts, &[Promise::Clean]),
    (Rule::NextAfterTheAbsentAsks, bank_with_crashes, &[Promise::Progress]),
    (Rule::FreeNamesAreReserved, bank_among_tries, &[Promise::Fairness, Promise::Order]),
];

#[test]
fn every_rule_is_needed() {
    let missed: Vec<_> = cases().filter(|case| !is_caught(case)).map(|(rule, ..)| rule).collect();
    assert!(missed.is_empty(), "nobody notices when these are missing: {missed:?}");
}

/// Returns `true` if some schedule without the rule breaks one of the expected promises.
fn is_caught((rule, profile, promises): &Case) -> bool {
    let without = Profile { rules: Rules { without: Some(*rule) }, ..profile() };
    let Some(Failure { seed, violation }) = search(0..MOST, |seed| run(&without, seed, false)) else {
        println!("{rule:?}: not noticed in {MOST} schedules");
        return false;
    };
    println!("{rule:?}: {:?} with seed {seed}: {}", violation.promise, violation.text);
    promises.contains(&violation.promise)
}

/// Name of a condition, circumstances in which it matters, the change that removes it, and the promise that breaks
/// then.
type Condition = (&'static str, fn() -> Profile, fn(Profile) -> Profile, Promise);

/// Conditions of the promises in addition to the rules.
const CONDITIONS: [Condition; 5] = [
    (
        "nodes abstain",
        forgetful,
        |profile| Profile { after_restart: AfterRestart::Trust, ..profile },
        Promise::Exclusion,
    ),
    ("more nodes agree", one_forgets, |profile| Profile { amnesia: 0, ..profile }, Promise::Exclusion),
    ("registers are kept", fenced_with_cuts, forgetting_registers, Promise::Fencing),
    (
        "frozen servers",
        frozen_servers,
        |profile| Profile { rules: Rules { without: Some(Rule::ValidityFromTheSend) }, ..profile },
        Promise::Owned,
    ),
    ("idle times are short", lingering_deaf, |profile| Profile { lingers: vec![8000], ..profile }, Promise::Progress),
];

/// Makes the server lose its register, but no lock that it must keep. A process that starts later knows no number.
fn forgetting_registers(profile: Profile) -> Profile {
    let faults = Faults { forgets: 6, until: 3000, ..profile.faults };
    let (after_restart, late) = (AfterRestart::Abstain, 5000);
    Profile { nodes: vec![1], ttls: vec![300], faults, after_restart, late, is_sure_of_counters: true, ..profile }
}

#[test]
fn every_condition_is_needed() {
    for (name, profile, without, promise) in CONDITIONS {
        let without = without(profile());
        let failure = search(0..MOST, |seed| run(&without, seed, false));
        let Some(Failure { seed, violation }) = failure else { panic!("without {name}, nothing breaks") };
        println!("{name}: {:?} with seed {seed}: {}", violation.promise, violation.text);
        assert_eq!(violation.promise, promise, "{}", violation.text);
    }
}

#[test]
fn mutation_profiles_find_no_violation_with_every_rule() {
    // One rule for each profile.
    let conditions = CONDITIONS.iter().map(|(name, profile, ..)| ((*name).to_owned(), *profile));
    let mut profiles: Vec<_> =
        cases().map(|(rule, profile, _)| (format!("{rule:?}"), *profile)).chain(conditions).collect();
    profiles.sort_by_key(|(_, profile)| *profile as usize);
    profiles.dedup_by_key(|(_, profile)| *profile as usize);
    let harmful = profiles.into_iter().filter_map(|(name, profile)| {
        let profile = profile();
        let length = u64::from(*profile.calls.end()) * (profile.bodies.end() / LONG_BODY).max(1);
        let schedules = number(SCHEDULES).unwrap_or(CONTROLS / length);
        let Failure { seed, violation } = search(0..schedules, |seed| run(&profile, seed, false))?;
        Some(format!("where {name} matters, seed {seed}: {violation:?}"))
    });
    let harmful: Vec<_> = harmful.collect();
    assert!(harmful.is_empty(), "{harmful:#?}");
}

/// Returns all cases, or those of the selected rule.
fn cases() -> impl Iterator<Item = &'static Case> {
    let only = std::env::var(RULE).ok();
    CASES.iter().filter(move |(rule, ..)| only.as_ref().is_none_or(|only| format!("{rule:?}") == *only))
}

/// Prints a run of each selected case, once without its rule and once with it.
#[test]
fn mutation_run_can_be_replayed() {
    let Some(seed) = number(SEED).filter(|_| std::env::var(RULE).is_ok()) else { return };
    for (rule, profile, _) in cases() {
        for without in [Some(*rule), None] {
            let outcome = run(&Profile { rules: Rules { without }, ..profile() }, seed, true);
            println!("without {without:?}:\n{}", outcome.trace);
        }
    }
}
