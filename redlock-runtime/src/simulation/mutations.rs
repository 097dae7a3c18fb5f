//! Every rule is needed: without it, a promise is broken in some schedule, and with it in none.

use super::faults::Faults;
use super::network::Delays;
use super::profile::Profile;
use super::records::Promise;
use super::run::run;
use super::{Failure, SCHEDULES, SEED, number, search};
use crate::node::Verb;
use crate::options::Wait;
use crate::rules::{Rule, Rules};
use std::time::Duration;

/// Looks at the case of one rule only.
const RULE: &str = "REDLOCK_SIMULATION_RULE";
/// Below this number of schedules, the loss of a rule must be noticed.
const MOST: u64 = 20_000;
/// With all rules, so many calls of each task pass, in schedules of each profile.
const CONTROLS: u64 = 4000;

/// A rule, the circumstances in which it matters, and what breaks without it.
type Case = (Rule, fn() -> Profile, &'static [Promise]);

const CASES: [Case; 17] = [
    (Rule::TokensFollowTheLatest, wrong_clocks, &[Promise::Fairness]),
    (Rule::ReleasedTokensAreDead, cut_yields, &[Promise::Exclusion, Promise::Clean]),
    (Rule::OwnTurnIsALease, crowd_with_crashes, &[Promise::Exclusion]),
    (Rule::QueuesExpire, crowd_with_crashes, &[Promise::Clean]),
    (Rule::HolderHearsOfEveryCall, families_with_cuts, &[Promise::Fairness]),
    (Rule::ExtensionNeverCreates, cut_extensions, &[Promise::Exclusion, Promise::Clean]),
    (Rule::AdopterReplaces, double_delivery, &[Promise::Exclusion]),
    (Rule::ReleaseChecksTheOwner, cuts, &[Promise::Exclusion]),
    (Rule::ClaimIsNoLease, long_bodies, &[Promise::Exclusion]),
    (Rule::YieldVoids, slow_crowd, &[Promise::Exclusion]),
    (Rule::YieldAtOnce, frozen_minority, &[Promise::Progress]),
    (Rule::CutYieldTaints, cut_yields_and_others, &[Promise::Exclusion]),
    (Rule::ReleasesAreSeenThrough, cuts, &[Promise::Clean, Promise::Progress]),
    (Rule::UnknownTokensAreReleased, cut_acquisitions, &[Promise::Progress, Promise::Clean]),
    (Rule::ValidityFromTheSend, long_bodies, &[Promise::Exclusion]),
    (Rule::TtlTimer, crashed_holder, &[Promise::Progress]),
    (Rule::PassesAreLimited, families_with_cuts, &[Promise::Fairness]),
];

/// Everybody comes at once, so that votes split.
fn crowd() -> Profile {
    let second = Duration::from_secs(1);
    Profile {
        nodes: vec![3, 5],
        clients: 3..=5,
        tasks: 1..=1,
        calls: 2..=3,
        ttls: vec![3000, 20_000],
        waits: vec![Wait::Forever, Wait::For(second * 30)],
        pauses: 0..=8,
        bodies: 0..=30,
        bound: 5000,
        ..Profile::calm()
    }
}

fn cuts() -> Profile {
    let faults = Faults { cuts: 24, until: 600, ..Faults::NONE };
    Profile { faults, cancels: 20, extends: 60, delays: Delays { latency: 6, jitter: 10, spike: 60 }, ..crowd() }
}

/// Two nodes split often, and need each other.
fn cut_yields() -> Profile {
    let faults = Faults { targets: Some(|verb| matches!(verb, Verb::Yield { .. })), ..Faults::NONE };
    Profile { nodes: vec![2, 3], faults, ..slow_crowd() }
}

/// Smaller tokens come later, and do not reach every node.
fn cut_yields_and_others() -> Profile {
    let Profile { faults, .. } = cut_yields();
    let faults = Faults { cuts: 16, until: 500, ..faults };
    Profile { nodes: vec![3], clients: 4..=6, faults, skew: 1000, pauses: 0..=60, bodies: 20..=200, ..cut_yields() }
}

fn cut_extensions() -> Profile {
    let faults = Faults { targets: Some(|verb| matches!(verb, Verb::Extend { .. })), ..Faults::NONE };
    Profile { nodes: vec![1, 3], faults, extends: 100, ..slow_crowd() }
}

fn cut_acquisitions() -> Profile {
    let faults = Faults { targets: Some(|verb| matches!(verb, Verb::Acquire { .. })), ..Faults::NONE };
    Profile { nodes: vec![1, 3], faults, cancels: 50, ttls: vec![20_000], ..slow_crowd() }
}

/// Locks are left to others, and some of them to several.
fn double_delivery() -> Profile {
    let faults = Faults { cuts: 8, until: 600, ..Faults::NONE };
    Profile { nodes: vec![1, 3, 5], faults, detaches: 60, ..crowd() }
}

fn slow_crowd() -> Profile {
    Profile { delays: Delays { latency: 10, jitter: 30, spike: 150 }, calls: 3..=5, ..crowd() }
}

fn crowd_with_crashes() -> Profile {
    let faults = Faults { crashes: 3, until: 900, ..Faults::NONE };
    Profile { nodes: vec![1, 3], faults, bodies: 500..=2500, ttls: vec![3000], ..crowd() }
}

fn long_bodies() -> Profile {
    let delays = Delays { latency: 30, jitter: 40, spike: 100 };
    Profile { nodes: vec![1, 3], delays, bodies: 200..=1800, ttls: vec![500, 1500, 3000], extends: 50, ..crowd() }
}

fn frozen_minority() -> Profile {
    let faults = Faults { freezes: 1, until: 40, longest: 8000, ..Faults::NONE };
    Profile { faults, bound: 2000, ttls: vec![20_000], ..crowd() }
}

fn crashed_holder() -> Profile {
    let faults = Faults { crashes: 1, until: 300, ..Faults::NONE };
    Profile { faults, ttls: vec![2000], bodies: 0..=150, bound: 600, ..crowd() }
}

/// Short turns for a long time, and wall clocks that differ by seconds.
fn wrong_clocks() -> Profile {
    Profile {
        nodes: vec![1, 3],
        clients: 3..=3,
        calls: 40..=60,
        pauses: 0..=2,
        bodies: 1..=5,
        waits: vec![Wait::Forever],
        skew: 10_000,
        fair_within: Some(700),
        ..crowd()
    }
}

/// Many calls in each process, which could go on among themselves; notices to the holder are lost.
fn families_with_cuts() -> Profile {
    let faults = Faults { cuts: 12, until: 400, ..Faults::NONE };
    Profile {
        nodes: vec![1, 3],
        clients: 2..=2,
        tasks: 3..=4,
        calls: 200..=200,
        pauses: 0..=0,
        bodies: 5..=20,
        ttls: vec![20_000],
        waits: vec![Wait::Forever],
        fair_within: Some(4000),
        faults,
        ..crowd()
    }
}

#[test]
fn every_rule_is_needed() {
    let missed: Vec<_> = cases().filter(|case| !is_caught(case)).map(|(rule, ..)| rule).collect();
    assert!(missed.is_empty(), "nobody notices when these are missing: {missed:?}");
}

fn is_caught((rule, profile, promises): &Case) -> bool {
    let without = Profile { rules: Rules { without: Some(*rule) }, ..profile() };
    let Some(Failure { seed, violation }) = search(MOST, |seed| run(&without, seed, false)) else {
        println!("{rule:?}: not noticed in {MOST} schedules");
        return false;
    };
    println!("{rule:?}: {:?} with seed {seed}: {}", violation.promise, violation.text);
    promises.contains(&violation.promise)
}

#[test]
fn the_same_circumstances_are_harmless_with_every_rule() {
    // One rule for each profile.
    let mut profiles: Vec<_> = cases().collect();
    profiles.sort_by_key(|(_, profile, _)| *profile as usize);
    profiles.dedup_by_key(|(_, profile, _)| *profile as usize);
    let harmful = profiles.into_iter().filter_map(|(rule, profile, _)| {
        let profile = profile();
        let schedules = number(SCHEDULES).unwrap_or(CONTROLS / u64::from(*profile.calls.end()));
        let Failure { seed, violation } = search(schedules, |seed| run(&profile, seed, false))?;
        Some(format!("where {rule:?} matters, seed {seed}: {violation:?}"))
    });
    let harmful: Vec<_> = harmful.collect();
    assert!(harmful.is_empty(), "{harmful:#?}");
}

/// All of them, or the one that is asked for.
fn cases() -> impl Iterator<Item = &'static Case> {
    let only = std::env::var(RULE).ok();
    CASES.iter().filter(move |(rule, ..)| only.as_ref().is_none_or(|only| format!("{rule:?}") == *only))
}

/// Shows one run of a case, once without its rule and once with it.
#[test]
fn a_run_can_be_replayed() {
    let Some(seed) = number(SEED).filter(|_| std::env::var(RULE).is_ok()) else { return };
    for (rule, profile, _) in cases() {
        for without in [Some(*rule), None] {
            let outcome = run(&Profile { rules: Rules { without }, ..profile() }, seed, true);
            println!("without {without:?}:\n{}", outcome.trace);
        }
    }
}
