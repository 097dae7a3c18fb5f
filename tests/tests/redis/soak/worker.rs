//! One of the processes: its tasks take locks of all kinds, and log when their bodies could prove them.

use super::dice::Dice;
use super::history::Mode;
use super::servers::CONFIRMED;
use redlock_runtime::{LockError, LockGuard, LockManager, LockManagerBuilder, LockRequest};
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Locks that are taken one at a time or together. They have one slot in a cluster.
pub(super) const KEYS: [&str; 3] = ["{order}:0", "{order}:1", "{order}:2"];
/// Locks with fencing numbers.
pub(super) const NUMBERED: [&str; 2] = ["fenced:0", "fenced:1"];
/// Paths of a tree, each with all names below it.
pub(super) const PLACES: [(&str, &str); 3] =
    [("/tree", "/tree,/tree/0,/tree/1"), ("/tree/0", "/tree/0"), ("/tree/1", "/tree/1")];
/// A key with permits, and their number.
pub(super) const POOL: (&str, u32) = ("pool", 2);
/// Longest ttl of a lock, and so the longest abstention of a restarted node.
pub(super) const MAX_TTL: Duration = Duration::from_secs(2);
/// Timeout of an answer if a replica confirms each lease. Too short: on a busy machine, the replica confirms few leases.
/// Too long: it must be below the shortest lease.
const CONFIRMING: Duration = Duration::from_millis(225);
const TASKS: u64 = 5;
/// Interval at which a body checks its lock.
const LOOK: Duration = Duration::from_millis(1);

/// Configuration of a process.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) seed: u64,
    /// Log file.
    pub(super) file: String,
    /// URLs of the nodes. If empty, the process uses a private lock that excludes no other process.
    pub(super) urls: Vec<String>,
}

impl Told {
    pub(super) fn text(&self) -> String {
        format!("{} {} {}", self.seed, self.file, self.urls.join(","))
    }

    fn read(text: &str) -> Self {
        let [seed, file, urls] = text.split(' ').collect::<Vec<_>>()[..] else { panic!("{text}") };
        let urls = urls.split(',').filter(|url| !url.is_empty()).map(ToOwned::to_owned).collect();
        Self { seed: seed.parse().unwrap(), file: file.to_owned(), urls }
    }
}

/// State that all tasks share.
struct Worker {
    manager: LockManager,
    file: Mutex<File>,
    bodies: AtomicU64,
    is_over: Arc<AtomicBool>,
}

/// Returns the names of all locks.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let places = PLACES.map(|(place, _)| place);
    KEYS.into_iter().chain(NUMBERED).chain(places).chain([POOL.0])
}

/// Returns a manager with the settings of all processes.
pub(super) fn manager(urls: &[String]) -> LockManager {
    let is_confirmed = urls.iter().any(|url| url.contains(CONFIRMED));
    if is_confirmed { builder(urls).node_timeout(CONFIRMING) } else { builder(urls) }.build().unwrap()
}

/// Returns a manager with a long timeout, to check if servers count.
pub(super) fn observer(urls: &[String]) -> LockManager {
    builder(urls).node_timeout(MAX_TTL * 7 / 8).build().unwrap()
}

fn builder(urls: &[String]) -> LockManagerBuilder {
    LockManager::builder().nodes(urls).default_ttl(MAX_TTL).tuning(|tuning| tuning.max_ttl(MAX_TTL))
}

/// Works until its input ends.
pub(super) async fn work(told: &str) {
    let told = Told::read(told);
    let manager = if told.urls.is_empty() { LockManager::in_memory() } else { manager(&told.urls) };
    let (file, bodies) = (Mutex::new(File::create(&told.file).unwrap()), AtomicU64::new(0));
    let worker = Arc::new(Worker { manager, file, bodies, is_over: when_input_ends() });
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (worker, dice) = (Arc::clone(&worker), Dice::new(told.seed ^ (task << 32)));
        tasks.spawn(async move { worker.take_locks(dice).await });
    }
    tasks.join_all().await;
    worker.manager.shutdown().await;
}

fn when_input_ends() -> Arc<AtomicBool> {
    let is_over = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&is_over);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        ended.store(true, Ordering::Relaxed);
    });
    is_over
}

impl Worker {
    async fn take_locks(&self, mut dice: Dice) {
        while !self.is_over.load(Ordering::Relaxed) {
            let wait = Duration::from_millis([0, 20, 3000][dice.below(3)]);
            let ttl = [MAX_TTL / 8, MAX_TTL / 2, MAX_TTL][dice.below(3)];
            // A long body keeps its lock while servers fail.
            let longest = if dice.below(12) == 0 { 4000 } else { 8 };
            let body = Duration::from_millis(dice.below(longest) as u64);
            if let Err(error) = self.take_one(&mut dice, wait, ttl, body).await {
                self.write(&format!("! {}\n", name(&error)));
                // Without a quorum, an immediate retry is useless.
                sleep(LOOK * 5).await;
            }
        }
    }

    async fn take_one(&self, dice: &mut Dice, wait: Duration, ttl: Duration, body: Duration) -> Result<(), LockError> {
        if dice.below(3) == 0 {
            let key = NUMBERED[dice.below(NUMBERED.len())];
            let guard = self.manager.acquire(LockRequest::new(key).wait(wait).ttl(ttl).fencing()).await?;
            let number = guard.fencing_token().to_string();
            return self.body(&guard, (key, Mode::Alone), &number, body).await;
        }
        let (request, names, mode) = any_request(dice);
        let guard = self.manager.acquire(request.wait(wait).ttl(ttl)).await?;
        self.body(&guard, (&names, mode), "-", body).await
    }

    /// Runs a body, and logs the interval that it can prove: it takes a time, and then checks that the guard is held.
    async fn body(
        &self,
        guard: &LockGuard,
        (names, mode): (&str, Mode),
        number: &str,
        length: Duration,
    ) -> Result<(), LockError> {
        let from = now();
        guard.ensure_held()?;
        let id = self.bodies.fetch_add(1, Ordering::Relaxed);
        self.write(&format!("+ {id} {names} {mode} {number} {from}\n"));
        let end = from + u64::try_from(length.as_nanos()).unwrap();
        let mut until = from;
        let outcome = loop {
            let moment = now();
            if let Err(error) = guard.ensure_held() {
                break Err(error);
            }
            until = moment;
            if moment >= end {
                break Ok(());
            }
            sleep(LOOK).await;
        };
        self.write(&format!("- {id} {until}\n"));
        outcome
    }

    /// Writes a line at once and in one piece, because the process may be killed at any moment.
    fn write(&self, line: &str) {
        self.file.lock().unwrap().write_all(line.as_bytes()).unwrap();
    }
}

/// Returns a request of any kind, with all names that it locks.
fn any_request(dice: &mut Dice) -> (LockRequest, String, Mode) {
    let mode = if dice.below(2) == 0 { Mode::Shared } else { Mode::Alone };
    let one = dice.below(KEYS.len());
    let (request, names) = match dice.below(5) {
        0 | 1 => (LockRequest::new(KEYS[one]), KEYS[one].to_owned()),
        2 => {
            let several = [KEYS[one], KEYS[(one + 1 + dice.below(KEYS.len() - 1)) % KEYS.len()]];
            (LockRequest::all(several), several.join(","))
        }
        3 => {
            let (place, names) = PLACES[dice.below(PLACES.len())];
            (LockRequest::path(place), names.to_owned())
        }
        _ => {
            let (key, permits) = POOL;
            return (LockRequest::new(key).permits(permits), key.to_owned(), Mode::Permit(permits as usize));
        }
    };
    let shared = if mode == Mode::Shared { redlock_runtime::Mode::Shared } else { redlock_runtime::Mode::Exclusive };
    (request.mode(shared), names, mode)
}

fn name(error: &LockError) -> &'static str {
    match error {
        LockError::Contended { .. } => "contended",
        LockError::TimedOut { .. } => "timed_out",
        LockError::NoQuorum { .. } => "no_quorum",
        LockError::Lost { .. } => "lost",
        LockError::Refused { .. } => "refused",
        other => panic!("{other}"),
    }
}

/// Returns the time in nanoseconds of the clock that all processes of the machine share.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap()
}
