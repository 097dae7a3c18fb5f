//! The real lock managers, over simulated servers in virtual time.
//!
//! A seed decides everything: the calls, the delays of messages, and the faults. An observer, which sees all servers at
//! once, checks the promises at every step. A failing seed is printed with the command that replays it.

mod actor;
mod agenda;
mod breaking;
mod circumstances;
mod claims;
mod client_side;
mod faults;
mod jobs;
mod lingering;
mod link;
mod mutations;
mod network;
mod observer;
mod permits;
mod plan;
mod profile;
mod records;
mod run;
mod server;
mod sharing;
mod simulated_node;
mod telling;
mod theft;
mod trace;
mod tree;
mod view;
mod wire;
mod workload;

use self::profile::Profile;
use self::records::Violation;
use self::run::{Outcome, run};
use fastrand::Rng;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Environment variable with a seed, which is replayed with a trace.
const SEED: &str = "REDLOCK_SIMULATION_SEED";
/// Environment variable with the first seed. Every test run uses the seeds from zero on.
const FROM: &str = "REDLOCK_SIMULATION_FROM";
/// Environment variable with the number of seeds.
const SCHEDULES: &str = "REDLOCK_SIMULATION_SCHEDULES";
/// Number of seeds if the variable is not set. `tests/long.sh simulation` runs more of them.
const DEFAULT_SCHEDULES: u64 = 30_000;
/// Seeds that once failed, beyond the default ones.
const PINNED: [u64; 2] = [1_201_277_038, 1_301_710_616];
/// Like [`PINNED`], from before the simulation had other kinds of locks.
const PINNED_WITHOUT_OTHER_KINDS: [u64; 6] = [238_722, 289_841, 620_461, 649_711, 667_132, 883_748];

/// Returns the number in an environment variable, if it is set.
fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().unwrap())
}

/// Returns the profile of a seed. One in five is calm.
fn profile(seed: u64) -> Profile {
    let mut random = Rng::with_seed(!seed);
    if random.u8(0..5) > 0 {
        return Profile::any(&mut random);
    }
    let sharing = if random.u8(0..3) == 0 { random.u8(20..=90) } else { 0 };
    Profile { sharing, ..Profile::calm() }
}

/// Calls for both keys and for places in a tree: without faults, and with the faults that matter most for them.
#[test]
fn the_promises_hold_for_several_keys() {
    let banks = [sharing::bank, sharing::bank_crowd, sharing::bank_with_cancels, sharing::bank_with_cuts];
    let trees = [tree::tree, tree::tree_crowd, tree::tree_with_cancels, tree::tree_with_cuts, tree::tree_among_others];
    for (number_of_profile, profile) in
        banks.into_iter().chain(trees).chain([tree::fenced_bank, tree::fenced_tree]).enumerate()
    {
        let profile = profile();
        if let Some(seed) = number(SEED) {
            let outcome = run(&profile, seed, true);
            println!("{number_of_profile}: {:?}\n{}", outcome.violation, outcome.trace);
            continue;
        }
        let schedules = number(SCHEDULES).unwrap_or(DEFAULT_SCHEDULES / 60);
        let failed = search(0..schedules, |seed| run(&profile, seed, false));
        assert!(failed.is_none(), "{failed:?}: {profile:?}");
    }
}

/// Calls for permits: without faults, and with the faults that matter most for them.
#[test]
fn the_promises_hold_for_permits() {
    use permits::{
        families_with_faults, families_with_thefts, pool, pool_among_others, pool_among_writers, pool_and_alone,
        pool_crowd, pool_of_families, pool_rolling, pool_with_amnesia, pool_with_crashes, pool_with_cut_tries,
        pool_with_cut_yields, pool_with_cuts, pool_with_dead_waiters, pool_with_freezes, pool_with_lost_entries,
        pool_with_pauses, pool_with_thefts, stream_of_families,
    };
    let profiles = [
        pool,
        pool_crowd,
        pool_and_alone,
        pool_with_cuts,
        pool_with_lost_entries,
        pool_with_cut_yields,
        pool_with_pauses,
        pool_with_crashes,
        pool_with_amnesia,
        pool_among_others,
        pool_of_families,
        stream_of_families,
        families_with_thefts,
        families_with_faults,
        pool_with_cut_tries,
        pool_rolling,
        pool_with_freezes,
        pool_with_thefts,
        pool_with_dead_waiters,
        pool_among_writers,
    ];
    let failed: Vec<_> = profiles
        .into_iter()
        .enumerate()
        .filter_map(|(number_of_profile, profile)| {
            let profile = profile();
            if let Some(seed) = number(SEED) {
                let outcome = run(&profile, seed, true);
                println!("{number_of_profile}: {:?}\n{}", outcome.violation, outcome.trace);
                return None;
            }
            let schedules = number(SCHEDULES).unwrap_or(DEFAULT_SCHEDULES / 100);
            Some((number_of_profile, search(0..schedules, |seed| run(&profile, seed, false))?))
        })
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Run that broke a promise.
#[derive(Debug)]
struct Failure {
    seed: u64,
    violation: Violation,
}

/// Runs the seeds in order on two threads. Returns the smallest failing seed that was met.
fn search(seeds: Range<u64>, run: impl Fn(u64) -> Outcome + Sync) -> Option<Failure> {
    let (next, is_over) = (AtomicU64::new(seeds.start), AtomicBool::new(false));
    let work = || {
        while !is_over.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return None;
            }
            if let Some(violation) = run(seed).violation {
                is_over.store(true, Ordering::Relaxed);
                return Some(Failure { seed, violation });
            }
        }
        None
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).min_by_key(|failure| failure.seed)
    })
}

#[test]
fn the_promises_hold_in_every_schedule() {
    if let Some(seed) = number(SEED) {
        let outcome = run(&profile(seed), seed, true);
        println!("{}", outcome.trace);
        assert_eq!(outcome.violation, None);
        return;
    }
    let idle = [const { AtomicU64::new(0) }; 2];
    let (first, schedules) = (number(FROM).unwrap_or(0), number(SCHEDULES).unwrap_or(DEFAULT_SCHEDULES));
    let failed = search(first..first + schedules, |seed| {
        let profile = profile(seed);
        let outcome = run(&profile, seed, false);
        let millis = u64::try_from(outcome.longest_idle.as_millis()).unwrap();
        idle[usize::from(profile.is_calm())].fetch_max(millis, Ordering::Relaxed);
        outcome
    });
    println!("the longest times in ms that a free lock was waited for, with faults and without: {idle:?}");
    if let Some(Failure { seed, violation }) = failed {
        let Violation { promise, text } = violation;
        let replay =
            format!("{SEED}={seed} cargo test -p redlock-runtime --lib simulation::the_promises -- --nocapture");
        panic!("{promise:?}: {text}; replay: {replay}");
    }
}

#[test]
fn the_promises_hold_in_pinned_schedules() {
    let without_other_kinds = |seed| Profile { sharing: 0, sets: 0, tree: 0, permits: Vec::new(), ..profile(seed) };
    let old = PINNED_WITHOUT_OTHER_KINDS.map(|seed| (seed, without_other_kinds(seed)));
    for (seed, profile) in PINNED.map(|seed| (seed, profile(seed))).into_iter().chain(old) {
        assert_eq!(run(&profile, seed, false).violation, None, "seed {seed}");
    }
}

#[test]
fn equal_seeds_give_equal_runs() {
    for seed in 0..200 {
        let traces = [(); 2].map(|()| run(&profile(seed), seed, true).trace);
        let differing = traces[0].lines().zip(traces[1].lines()).find(|(one, other)| one != other);
        assert!(traces[0] == traces[1], "seed {seed} does not decide everything: {differing:?}");
    }
}
