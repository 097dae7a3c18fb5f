//! The processes that take locks, and their faults.

use super::dice::Dice;
use super::history::History;
use super::pause;
use super::worker::{Told, names};
use redlock_tests::PATIENCE;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::process::Stdio;
use std::time::Duration;
use std::{env, fs};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

/// Environment variable with the settings of a worker.
pub(super) const TOLD: &str = "REDLOCK_SOAK_WORKER";
const WORKERS: usize = 3;

/// Time in which each process obtains each lock once all faults are over. Too short: a busy machine looks like a process that stays down.
/// Too long: a failed run takes longer.
pub(super) const ALL_LOCKS: Duration = PATIENCE.saturating_mul(9);
const LOOK_EVERY: Duration = Duration::from_millis(50);

struct Worker {
    number: usize,
    process: Child,
    /// Number of its list of servers.
    list: usize,
}

/// The running processes, and the files of all processes.
pub(super) struct Workers {
    running: Vec<Worker>,
    told: Told,
    variables: Vec<(&'static str, OsString)>,
    list: usize,
    test: &'static str,
    pub(super) started: usize,
    /// Processes that have failed, or that have not obtained a lock after all faults were over.
    pub(super) problems: Vec<String>,
    /// Longest time until a process has obtained a lock after all faults were healed.
    pub(super) slowest_first: Duration,
    /// Longest time until each process has obtained each lock after all faults were healed.
    pub(super) slowest: Duration,
}

/// Locks that a process obtains from some moment on.
struct Progress {
    process: usize,
    file: String,
    /// Length of the file at that moment.
    begin: u64,
    /// Time until the first lock.
    first: Option<Duration>,
}

impl Progress {
    /// Begins now.
    fn of(worker: &Worker, file: String) -> Self {
        let begin = fs::metadata(&file).map_or(0, |file| file.len());
        Self { process: worker.number, file, begin, first: None }
    }

    /// Returns the problem if the process has not obtained each lock after the time `elapsed`.
    fn look(&mut self, elapsed: Duration) -> Option<String> {
        let text = text_from(&self.file, self.begin);
        let obtained = History::names(&text);
        if !obtained.is_empty() {
            self.first.get_or_insert(elapsed);
        }
        let missing: BTreeSet<_> = names().filter(|name| !obtained.contains(*name)).collect();
        (!missing.is_empty()).then(|| format!("process {} does not obtain {missing:?}", self.process))
    }
}

impl Workers {
    /// Starts processes with these environment `variables`.
    pub(super) fn start(
        test: &'static str,
        seed: u64,
        urls: Vec<String>,
        variables: Vec<(&'static str, OsString)>,
        folder: &str,
    ) -> Self {
        let told = Told { seed, file: folder.to_owned(), urls };
        let (running, problems, slowest) = (Vec::new(), Vec::new(), Duration::ZERO);
        let mut workers =
            Self { running, told, variables, list: 0, test, started: 0, problems, slowest_first: slowest, slowest };
        (0..WORKERS).for_each(|_| workers.start_one());
        workers
    }

    fn start_one(&mut self) {
        self.started += 1;
        let number = self.started;
        let seed = self.told.seed.wrapping_add(number as u64);
        let told = Told { seed, file: self.file(number), ..self.told.clone() };
        let mut process = Command::new(env::current_exe().unwrap());
        process
            .args(["--exact", self.test, "--nocapture"])
            .env(TOLD, told.text())
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        let process = process.kill_on_drop(true).spawn().unwrap();
        self.running.push(Worker { number, process, list: self.list });
    }

    fn file(&self, number: usize) -> String {
        format!("{}/{number}", self.told.file)
    }

    /// Returns the lines of all processes so far. A process that has just started may have no file yet.
    pub(super) fn history(&self) -> History {
        let mut history = History::default();
        (1..=self.started).filter_map(|number| fs::read_to_string(self.file(number)).ok()).for_each(|text| {
            history.add(&text);
        });
        history
    }

    /// Kills a process, and starts another one.
    pub(super) async fn replace(&mut self, dice: &mut Dice) -> &'static str {
        let mut killed = self.running.swap_remove(dice.below(self.running.len()));
        if let Some(status) = killed.process.try_wait().unwrap() {
            self.problems.push(format!("process {} has failed: {status}", killed.number));
        }
        killed.process.kill().await.unwrap();
        self.start_one();
        "process killed"
    }

    /// Stops a process for a while that is shorter or longer than its leases.
    pub(super) async fn suspend(&self, dice: &mut Dice) -> &'static str {
        let process = &self.running[dice.below(self.running.len())].process;
        // A process that has failed is found by `replace` or by `check_progress`.
        let signal = |signal| process.id().map(|id| kill_process(Pid::from_raw(id.cast_signed()).unwrap(), signal));
        let _ = signal(Signal::STOP);
        sleep(pause(dice)).await;
        let _ = signal(Signal::CONT);
        "process suspended"
    }

    /// Sets the list of servers for all processes that start from now on.
    pub(super) fn set_list(&mut self, urls: Vec<String>) {
        self.told.urls = urls;
        self.list += 1;
    }

    /// Replaces a process with an outdated list of servers, as a deploy does. Returns `false` if there is none.
    pub(super) async fn replace_outdated(&mut self) -> bool {
        let Some(index) = self.running.iter().position(|worker| worker.list != self.list) else { return false };
        self.start_one();
        let outdated = self.running.swap_remove(index);
        self.end_one(outdated).await;
        true
    }

    /// Waits until each process has obtained each lock. Processes that lack a lock when the time `within` is over are problems.
    pub(super) async fn check_progress(&mut self, within: Duration) {
        let mut files: Vec<_> =
            self.running.iter().map(|worker| Progress::of(worker, self.file(worker.number))).collect();
        let start = Instant::now();
        loop {
            let elapsed = start.elapsed();
            let problems: Vec<_> = files.iter_mut().filter_map(|file| file.look(elapsed)).collect();
            if problems.is_empty() || elapsed >= within {
                self.problems.extend(problems);
                break;
            }
            sleep(LOOK_EVERY).await;
        }
        let firsts = files.iter().map(|file| file.first.unwrap_or(within));
        self.slowest_first = firsts.chain([self.slowest_first]).max().unwrap_or_default();
        self.slowest = self.slowest.max(start.elapsed());
    }

    /// Ends all processes gracefully.
    pub(super) async fn end(&mut self) {
        for worker in std::mem::take(&mut self.running) {
            self.end_one(worker).await;
        }
    }

    async fn end_one(&mut self, mut worker: Worker) {
        drop(worker.process.stdin.take());
        match timeout(ALL_LOCKS, worker.process.wait()).await {
            Ok(Ok(status)) if status.success() => {}
            other => self.problems.push(format!("process {} has failed: {other:?}", worker.number)),
        }
    }
}

/// Returns the text of `file` from this byte on.
fn text_from(file: &str, begin: u64) -> String {
    let mut text = String::new();
    if let Ok(mut file) = File::open(file) {
        file.seek(SeekFrom::Start(begin)).unwrap();
        file.read_to_string(&mut text).unwrap();
    }
    text
}
