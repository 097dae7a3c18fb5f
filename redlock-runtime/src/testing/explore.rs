//! One test in many schedules, each of which a seed decides and repeats.
//!
//! What chance decides in a run comes from the seed, on one thread: the trouble and the delays of the servers, the pauses of the
//! test, the random numbers of the library; the ids of managers, the order in which lines are looked at and the time at which a
//! run begins are the same or follow from it.

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

/// How many servers there are, if nobody says it: the fewest of which one may forget its locks and nothing happens.
const SERVERS: usize = 3;
/// When runs begin, in milliseconds since 1970, give or take a day: any fixed time does.
const BEGINNING: u64 = 1_700_000_000_000;
const DAY: u64 = 86_400_000;
/// No run takes longer than this, in virtual time, if nobody says it. Smaller, what takes hours is to say so; larger, a run that
/// does not end takes longer to fail.
const MAX_TIME: Duration = Duration::from_secs(86_400);

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
/// `REDLOCK_SEED=0..100000` is for a night.
///
/// What the seed cannot decide is to be kept out of `test`: other threads, sockets, the real time, random numbers of the program,
/// the order of a `HashMap`, and `tokio::select!` without `biased`. [`random_pause`](TestServers::random_pause) is chance that the
/// seed decides. Of a task that is spawned, the handle is to be awaited and unwrapped, or its panics are lost.
///
/// Somebody else takes a lock by [`hold`](TestServers::hold) here as soon as it can be had, and has it until the trouble or the test
/// takes it away. [`expire`](TestServers::expire) and [`lose`](TestServers::lose) do nothing to a lock whose lease is over already.
///
/// To see that the program gets on again when the trouble is over, call [`calm`](TestServers::calm). How many servers there are,
/// whether they get into trouble and for how long a run may take is said by [`Explore`], of which this is the short form.
///
/// # Panics
/// When `test` does, when a run does not end within a day of virtual time, and inside of a tokio runtime: call it in a plain `#[test]`.
/// Then no other seed is run.
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
#[track_caller]
pub fn explore(seeds: impl IntoIterator<Item = u64>, test: impl AsyncFn(TestServers, u64)) {
    Explore::new(seeds).run(test);
}

/// [`explore`] with other settings: how many servers, whether they get into trouble, and for how long a run may take.
///
/// A seed decides everything together with these: with other settings, it is another run.
///
/// # Examples
/// Without trouble, no call of a right program fails, and still its calls meet in another way in each run:
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

/// What a run is like, beside its seed.
#[derive(Clone, Copy, Debug)]
struct Circumstances {
    servers: usize,
    has_faults: bool,
    max_time: Duration,
}

impl<S: IntoIterator<Item = u64>> Explore<S> {
    /// One run for each of `seeds`, such as `0..1000`; `[41].into_iter().chain(0..1000)` begins with one that has failed before.
    pub fn new(seeds: S) -> Self {
        let circumstances = Circumstances { servers: SERVERS, has_faults: true, max_time: MAX_TIME };
        Self { seeds, only: None, circumstances }
    }

    /// How many servers there are. Default: 3.
    ///
    /// A single one, which is trusted after a restart, does not forget its locks by chance: no program would be right then.
    ///
    /// # Panics
    /// For none.
    #[track_caller]
    pub fn servers(mut self, servers: usize) -> Self {
        assert!(servers > 0, "locks need a server: write `servers(1)`, or more");
        self.circumstances.servers = servers;
        self
    }

    /// Whether servers get into trouble and managers are cut off from them. Default: `true`.
    ///
    /// Without, the servers are well unless the test does something to them; messages take different times, and whoever holds locks
    /// by [`hold`](TestServers::hold) waits for them, as in any run.
    pub fn faults(mut self, faults: bool) -> Self {
        self.circumstances.has_faults = faults;
        self
    }

    /// The longest that a run may take, in virtual time; one that takes longer fails. Default: a day.
    pub fn max_time(mut self, max_time: Duration) -> Self {
        self.circumstances.max_time = max_time;
        self
    }

    /// Runs this seed alone, in the place of all others, for as long as somebody looks at why it fails. `REDLOCK_SEED` does the same
    /// from outside, and goes before it.
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

    /// Runs `test` once for each seed, as [`explore`] says.
    ///
    /// # Panics
    /// As [`explore`].
    #[track_caller]
    pub fn run(self, test: impl AsyncFn(TestServers, u64)) {
        // What follows on this thread is by chance again, also when a seed fails.
        let _by_chance = ByChance(fastrand::u64(..));
        // Loops and not closures, in which a panic would be at a line of this file.
        match (seeds::of_the_environment(), self.only) {
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

/// What the random numbers of this thread begin with again.
struct ByChance(u64);

impl Drop for ByChance {
    fn drop(&mut self) {
        fastrand::seed(self.0);
    }
}

#[track_caller]
fn run(seed: u64, circumstances: Circumstances, test: &impl AsyncFn(TestServers, u64)) {
    let Circumstances { servers, has_faults, max_time } = circumstances;
    // The pauses of the library, and the tails of the tokens.
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
            // The trouble ends with the runtime.
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

/// Starts the trouble.
fn begin(servers: &TestServers) {
    let mut random = servers.random().fork();
    let forgets = servers.servers().len() > 1;
    let one = |server: &Arc<_>| tokio::spawn(trouble::stir(Arc::clone(server), forgets, random.fork())).abort_handle();
    let mut all: Vec<_> = servers.servers().iter().map(one).collect();
    all.push(tokio::spawn(trouble::cut_off(servers.servers().to_vec(), random.fork())).abort_handle());
    all.push(tokio::spawn(trouble::cut_manager_off(servers.servers().to_vec(), random.fork())).abort_handle());
    servers.get_into(all);
}
