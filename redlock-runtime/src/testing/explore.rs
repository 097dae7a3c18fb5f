//! One test in many schedules, each of which a seed decides and repeats.
//!
//! What chance decides in a run comes from the seed, on one thread: the trouble and the delays of the servers, the pauses of the
//! test, the random numbers of the library; the ids of managers, the order in which lines are looked at and the time at which a
//! run begins are the same or follow from it.

use super::servers::TestServers;
use super::trouble;
use crate::time::clock::{Clock, ClockError, virtual_origin};
use fastrand::Rng;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::time::timeout;

/// Runs one seed alone.
const SEED: &str = "REDLOCK_SEED";
/// How many servers there are: the fewest of which one may forget its locks and nothing happens.
const SERVERS: usize = 3;
/// When runs begin, in milliseconds since 1970, give or take a day: any fixed time does.
const BEGINNING: u64 = 1_700_000_000_000;
const DAY: u64 = 86_400_000;
/// No run takes longer than this, in virtual time.
const LIMIT: Duration = Duration::from_secs(86_400);

/// Runs `test` once for each seed, over three servers that get into all kinds of trouble: they are cut off, alone and together,
/// or from one of the managers, hang, are slow, refuse commands, and restart without their data. Time is virtual, so that a run
/// takes about a millisecond.
///
/// A right program keeps its promises in all of them: two bodies with one lock never run at the same time. A wrong one breaks them
/// in some. `test` says what they are: it runs the program, in several managers if need be, and asserts what must be true. Calls may
/// fail by [`NoQuorum`](crate::LockError::NoQuorum), [`TimedOut`](crate::LockError::TimedOut) or [`Lost`](crate::LockError::Lost), as in
/// a bad night; that is no failure of the test.
///
/// A seed decides everything, and a seed that fails is printed with the log of its run. `REDLOCK_SEED=41`, with the name of one
/// test, runs that one alone: `REDLOCK_SEED=41 cargo test no_deposit_is_lost`. Without a name, it replaces the seeds of all tests.
///
/// What the seed cannot decide is to be kept out of `test`: other threads, sockets, the real time, random numbers of the program,
/// the order of a `HashMap`, and `tokio::select!` without `biased`. [`random_pause`](TestServers::random_pause) is chance that the
/// seed decides. Of a task that is spawned, the handle is to be awaited and unwrapped, or its panics are lost.
///
/// Somebody else takes a lock by [`hold`](TestServers::hold) here as soon as it can be had, and has it until the trouble or the test
/// takes it away. [`expire`](TestServers::expire) and [`lose`](TestServers::lose) do nothing to a lock whose lease is over already.
///
/// To see that the program gets on again when the trouble is over, call [`calm`](TestServers::calm).
///
/// # Panics
/// When `test` does, when a run does not end within a day of virtual time, and inside of a tokio runtime: call it in a plain `#[test]`.
///
/// # Examples
/// ```
/// # #[cfg(feature = "macros")]
/// # mod bank {
/// use redlock_runtime::testing::{TestServers, explore};
/// use redlock_runtime::{LockError, distributed_lock};
/// use std::cell::Cell;
/// use std::time::Duration;
///
/// /// Reads, computes, writes: right under the lock alone.
/// #[distributed_lock(key = "account:{id}", ttl = 2)]
/// async fn deposit(id: u64, balance: &Cell<u64>, servers: &TestServers) -> Result<(), LockError> {
///     let before = balance.get();
///     servers.random_pause(Duration::from_secs(4)).await;
///     balance.set(before + 1);
///     Ok(())
/// }
///
/// // #[test]
/// # pub
/// fn no_deposit_is_lost() {
///     explore(0..50, async |servers, _seed| {
///         let (ours, theirs, balance) = (servers.manager(), servers.manager(), Cell::new(0));
///         let (first, second) = tokio::join!(
///             ours.scope(deposit(7, &balance, &servers)),
///             theirs.scope(deposit(7, &balance, &servers)),
///         );
///         let deposits = [first, second].iter().filter(|outcome| outcome.is_ok()).count();
///         assert_eq!(balance.get(), u64::try_from(deposits).unwrap());
///         assert!(servers.log().max_together("account:{id}") <= 1);
///     });
/// }
/// # }
/// # #[cfg(feature = "macros")] fn main() { bank::no_deposit_is_lost() }
/// # #[cfg(not(feature = "macros"))] fn main() {}
/// ```
///
/// With `renew = false, on_lost = continue`, the body goes on when its lease is over, and a seed shows what comes of it:
///
/// ```should_panic
/// # #[cfg(feature = "macros")]
/// # mod bank {
/// # use redlock_runtime::testing::{TestServers, explore};
/// # use redlock_runtime::{LockError, distributed_lock};
/// # use std::cell::Cell;
/// # use std::time::Duration;
/// #[distributed_lock(key = "account:{id}", ttl = 2, renew = false, on_lost = continue)]
/// async fn deposit(id: u64, balance: &Cell<u64>, servers: &TestServers) -> Result<(), LockError> {
///     let before = balance.get();
///     servers.random_pause(Duration::from_secs(4)).await;
///     balance.set(before + 1);
///     Ok(())
/// }
/// # pub
/// # fn no_deposit_is_lost() {
/// #     explore(0..50, async |servers, _seed| {
/// #         let (ours, theirs, balance) = (servers.manager(), servers.manager(), Cell::new(0));
/// #         let (first, second) = tokio::join!(
/// #             ours.scope(deposit(7, &balance, &servers)),
/// #             theirs.scope(deposit(7, &balance, &servers)),
/// #         );
/// #         let deposits = [first, second].iter().filter(|outcome| outcome.is_ok()).count();
/// #         assert_eq!(balance.get(), u64::try_from(deposits).unwrap());
/// #     });
/// # }
/// # }
/// # #[cfg(feature = "macros")] fn main() { bank::no_deposit_is_lost() }
/// # #[cfg(not(feature = "macros"))] fn main() { panic!() }
/// ```
pub fn explore(seeds: impl IntoIterator<Item = u64>, test: impl AsyncFn(TestServers, u64)) {
    // What follows on this thread is by chance again, also when a seed fails.
    let _by_chance = ByChance(fastrand::u64(..));
    let alone = std::env::var(SEED).ok().map(|text| match text.parse::<u64>() {
        Ok(seed) => seed,
        Err(error) => panic!("{SEED}={text} is no seed: {error}"),
    });
    match alone {
        Some(seed) => run(seed, &test),
        None => seeds.into_iter().for_each(|seed| run(seed, &test)),
    }
}

/// What the random numbers of this thread begin with again.
struct ByChance(u64);

impl Drop for ByChance {
    fn drop(&mut self) {
        fastrand::seed(self.0);
    }
}

fn run(seed: u64, test: &impl AsyncFn(TestServers, u64)) {
    // The pauses of the library, and the tails of the tokens.
    fastrand::seed(seed);
    let runtime = match Builder::new_current_thread().enable_all().start_paused(true).build() {
        Ok(runtime) => runtime,
        Err(error) => panic!("no runtime for the test: {error}"),
    };
    let mut log = None;
    let ended = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async {
            let servers = prepare(seed);
            log = Some(servers.log());
            begin(&servers);
            // The trouble ends with the runtime.
            let is_over = timeout(LIMIT, test(servers, seed)).await.is_ok();
            assert!(is_over, "the run does not end: nothing more has happened within a day of virtual time");
        });
    }));
    if let Err(panic) = ended {
        let log = log.map(|log| log.to_string()).unwrap_or_default();
        eprintln!("seed {seed} fails, and {SEED}={seed} with the name of this test runs it alone; its log:\n{log}");
        resume_unwind(panic);
    }
}

fn prepare(seed: u64) -> TestServers {
    let mut random = Rng::with_seed(!seed);
    let origin = u64::try_from(virtual_origin().as_millis()).unwrap_or(u64::MAX);
    let skew_ms = (BEGINNING + random.u64(0..DAY)).wrapping_sub(origin).cast_signed();
    let clock = Clock::Tokio { origin: tokio::time::Instant::now(), error: ClockError { skew_ms, drift_ppm: 0 } };
    let servers = TestServers::with(SERVERS, clock, (true, random.u64(..)));
    servers.servers().iter().for_each(|server| server.jitter(Some(random.fork())));
    servers
}

/// Starts the trouble.
fn begin(servers: &TestServers) {
    let mut random = servers.random().fork();
    let one = |server: &Arc<_>| tokio::spawn(trouble::stir(Arc::clone(server), random.fork())).abort_handle();
    let mut all: Vec<_> = servers.servers().iter().map(one).collect();
    all.push(tokio::spawn(trouble::cut_off(servers.servers().to_vec(), random.fork())).abort_handle());
    all.push(tokio::spawn(trouble::cut_manager_off(servers.servers().to_vec(), random.fork())).abort_handle());
    servers.get_into(all);
}
