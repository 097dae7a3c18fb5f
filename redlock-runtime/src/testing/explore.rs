//! Runs one test with many random schedules, each determined by a seed.
//!
//! A run has one thread. The seed determines the faults and delays of the servers, the pauses of the test and the random numbers of the
//! library. The ids of managers, the order of background checks and the start time are fixed or follow from the seed.

mod seeds;

use self::seeds::VARIABLE;
use super::servers::TestServers;
use super::trouble;
use crate::time::clock::{Clock, ClockError, virtual_origin};
use fastrand::Rng;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::time::timeout;

/// Default number of servers. It is the smallest number of which one server can lose its data without a second holder.
const SERVERS: usize = 3;
/// Approximate start time of runs, in milliseconds since 1970. Any fixed time is possible.
const BEGINNING: u64 = 1_700_000_000_000;
const DAY: u64 = 86_400_000;
/// Default limit of a run, in virtual time. Too small: tests of several hours must raise it. Too large: a run that never ends fails
/// later.
const MAX_TIME: Duration = Duration::from_secs(86_400);

/// Runs `test` once for each seed, with three servers and random faults. Time is virtual, so a run takes about a millisecond.
///
/// The faults: servers are cut off (one, all, or from one manager), hang, are slow, refuse commands, and restart without their data.
///
/// `test` runs the program, with several managers if necessary, and asserts what must be true, for example that two bodies with one lock
/// never run at the same time. A correct program passes with every seed; a wrong program fails with some seeds. Calls can fail with
/// [`NoQuorum`](crate::LockError::NoQuorum), [`TimedOut`](crate::LockError::TimedOut) or [`Lost`](crate::LockError::Lost), so `test` must
/// tolerate these errors.
///
/// A failing seed is printed with the log of its run. To repeat it, set `REDLOCK_SEED` and name the test:
/// `REDLOCK_SEED=41 cargo test no_deposit_is_lost`. Without a name, the variable replaces the seeds of all tests. It can be a range, such
/// as `REDLOCK_SEED=0..100000`.
///
/// A run can only be repeated if the seed determines everything. Do not use these in `test`: other threads, sockets, the real time, random
/// numbers of the program, the order of a `HashMap`, and `tokio::select!` without `biased`. Use
/// [`random_pause`](TestServers::random_pause) for random delays. Await and unwrap the handle of each spawned task, or its panics are lost.
///
/// [`hold`](TestServers::hold) waits until the lock is free, and holds it until a fault or the test ends it.
/// [`expire`](TestServers::expire) and [`lose`](TestServers::lose) do nothing if the lease has already ended.
///
/// Call [`calm`](TestServers::calm) to test that the program recovers after the faults. [`Explore`] sets the number of servers, the faults
/// and the time limit.
///
/// # Panics
/// If `test` panics, or if a run does not end within one day of virtual time. The remaining seeds are not run. It also panics
/// inside a tokio runtime: call it in a plain `#[test]`.
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
/// /// Reads, computes and writes. Correct only under the lock.
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
/// With `renew = false, on_lost = continue`, the body continues after its lease has ended. One of the seeds finds the lost update:
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
#[track_caller]
pub fn explore(seeds: impl IntoIterator<Item = u64>, test: impl AsyncFn(TestServers, u64)) {
    Explore::new(seeds).run(test);
}

/// Builder of [`explore`] with other settings: number of servers, faults, and time limit of a run.
///
/// A seed repeats a run only with the same settings.
///
/// # Examples
/// Without faults, no call of a correct program fails, and the order of its calls still differs in each run:
///
/// ```
/// use redlock_runtime::testing::Explore;
/// use redlock_runtime::{LockManager, LockRequest};
/// use std::time::Duration;
///
/// // #[test]
/// fn two_processes_take_turns() {
///     Explore::new(0..50).servers(5).faults(false).run(async |servers, _seed| {
///         let (ours, theirs) = (servers.manager(), servers.manager());
///         let capture = async |manager: &LockManager| {
///             servers.random_pause(Duration::from_secs(1)).await;
///             let guard = manager.acquire(LockRequest::new("order:7").wait(Duration::from_secs(5))).await.unwrap();
///             servers.random_pause(Duration::from_secs(2)).await;
///             guard.release().await.unwrap();
///         };
///         tokio::join!(capture(&ours), capture(&theirs));
///         assert_eq!(servers.log().acquired().len(), 2);
///         assert_eq!(servers.log().max_together("order:7"), 1);
///     });
/// }
/// # fn main() { two_processes_take_turns() }
/// ```
#[derive(Clone, Debug)]
#[must_use = "no seed is run before `run`"]
pub struct Explore<S> {
    seeds: S,
    only: Option<u64>,
    circumstances: Circumstances,
}

/// Settings of a run.
#[derive(Clone, Copy, Debug)]
struct Circumstances {
    servers: usize,
    has_faults: bool,
    max_time: Duration,
}

impl<S: IntoIterator<Item = u64>> Explore<S> {
    /// Creates one run for each of `seeds`, such as `0..1000`. Use `[41].into_iter().chain(0..1000)` to start with a seed that has failed
    /// before.
    pub fn new(seeds: S) -> Self {
        let circumstances = Circumstances { servers: SERVERS, has_faults: true, max_time: MAX_TIME };
        Self { seeds, only: None, circumstances }
    }

    /// Sets the number of servers. Default: 3.
    ///
    /// A single server never restarts without its data, because it votes at once after a restart and no program would pass.
    ///
    /// # Panics
    /// If the number is 0.
    #[track_caller]
    pub fn servers(mut self, servers: usize) -> Self {
        assert!(servers > 0, "locks need a server: write `servers(1)`, or more");
        self.circumstances.servers = servers;
        self
    }

    /// Sets whether random faults happen. Default: `true`.
    ///
    /// Without faults, messages still take random times, and [`hold`](TestServers::hold) still waits for the lock. The test can cause
    /// faults itself.
    pub fn faults(mut self, faults: bool) -> Self {
        self.circumstances.has_faults = faults;
        self
    }

    /// Sets the time limit of a run, in virtual time. A run that takes longer fails. Default: one day.
    pub fn max_time(mut self, max_time: Duration) -> Self {
        self.circumstances.max_time = max_time;
        self
    }

    /// Runs only this seed, while you debug a failure. The variable `REDLOCK_SEED` does the same, and takes precedence.
    ///
    /// # Examples
    /// ```
    /// use redlock_runtime::testing::Explore;
    ///
    /// Explore::new(0..1000).only(41).run(async |_servers, seed| assert_eq!(seed, 41));
    /// ```
    pub fn only(mut self, seed: u64) -> Self {
        self.only = Some(seed);
        self
    }

    /// Runs `test` once for each seed, like [`explore`].
    ///
    /// # Panics
    /// In the cases of [`explore`].
    #[track_caller]
    pub fn run(self, test: impl AsyncFn(TestServers, u64)) {
        // Random numbers of this thread are unpredictable again after the run, even if a seed fails.
        let _by_chance = ByChance(fastrand::u64(..));
        // Loops instead of closures: a panic in a closure would be reported at a line of this file.
        match (seeds::from_environment(), self.only) {
            (Some(seeds), _) => {
                for seed in seeds {
                    run(seed, self.circumstances, &test);
                }
            }
            (None, Some(seed)) => run(seed, self.circumstances, &test),
            (None, None) => {
                for seed in self.seeds {
                    run(seed, self.circumstances, &test);
                }
            }
        }
    }
}

/// Seed of the random numbers of this thread after the run.
struct ByChance(u64);

impl Drop for ByChance {
    fn drop(&mut self) {
        fastrand::seed(self.0);
    }
}

#[track_caller]
fn run(seed: u64, circumstances: Circumstances, test: &impl AsyncFn(TestServers, u64)) {
    let Circumstances { servers, has_faults, max_time } = circumstances;
    // The seed determines the pauses of the library and the ends of the tokens.
    fastrand::seed(seed);
    let runtime = match Builder::new_current_thread().enable_all().start_paused(true).build() {
        Ok(runtime) => runtime,
        Err(error) => panic!("no runtime for the test: {error}"),
    };
    let mut log = None;
    let ended = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async {
            let servers = prepare(seed, servers);
            log = Some(servers.log());
            if has_faults {
                begin(&servers);
            }
            // The faults end with the runtime.
            timeout(max_time, test(servers, seed)).await.is_ok()
        })
    }));
    if !matches!(ended, Ok(true)) {
        let log = log.map(|log| log.to_string()).unwrap_or_default();
        eprintln!("seed {seed} fails, and {VARIABLE}={seed} with the name of this test runs it alone; its log:\n{log}");
    }
    match ended {
        Ok(is_over) => {
            assert!(is_over, "the run does not end: it is not over after {max_time:?} of virtual time");
        }
        Err(panic) => resume_unwind(panic),
    }
}

fn prepare(seed: u64, servers: usize) -> TestServers {
    let mut random = Rng::with_seed(!seed);
    let origin = u64::try_from(virtual_origin().as_millis()).unwrap_or(u64::MAX);
    let skew_ms = (BEGINNING + random.u64(0..DAY)).wrapping_sub(origin).cast_signed();
    let clock = Clock::Tokio { origin: tokio::time::Instant::now(), error: ClockError { skew_ms, drift_ppm: 0 } };
    let servers = TestServers::with(servers, clock, (true, random.u64(..)));
    servers.servers().iter().for_each(|server| server.jitter(Some(random.fork())));
    servers
}

/// Starts the faults.
fn begin(servers: &TestServers) {
    let mut random = servers.random().fork();
    let forgets = servers.servers().len() > 1;
    let one = |server: &Arc<_>| {
        tokio::spawn(trouble::inject_faults(Arc::clone(server), forgets, random.fork())).abort_handle()
    };
    let mut all: Vec<_> = servers.servers().iter().map(one).collect();
    all.push(tokio::spawn(trouble::cut_off(servers.servers().to_vec(), random.fork())).abort_handle());
    all.push(tokio::spawn(trouble::cut_manager_off(servers.servers().to_vec(), random.fork())).abort_handle());
    servers.set_fault_tasks(all);
}
