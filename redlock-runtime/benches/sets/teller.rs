//! Process that transfers money: this benchmark, executed again with `--child`.
//!
//! The child prints `ready`, and then answers each line of its input with one line. The child exits at the end of its
//! input.
//!
//! - Input: the way of locking, the number of tellers, the length of a body, and the duration of the run. Times are in
//!   milliseconds.
//! - Answer: the number of transfers, the duration of the longest one, and the CPU time of the process. Times are in
//!   nanoseconds.

use crate::accounts::{ACCOUNTS, Accounts};
use crate::cpu_time::cpu_time;
use redlock_runtime::{LockManager, LockRequest};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::{JoinSet, block_in_place};

const CHILD: &str = "--child";

/// Time limit of an acquisition, after which a deadlock is assumed.
const LIMIT: Duration = Duration::from_secs(20);

/// Way of locking the two accounts of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// One lock of both keys.
    Together,
    /// Two nested locks, with the smaller account first.
    Nested,
}

/// Load of one process.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    /// Number of concurrent tellers, each of which runs one transfer after another.
    pub(crate) tellers: u64,
    /// Length of a body.
    pub(crate) body: Duration,
}

/// Results of all tellers of one process.
#[derive(Clone, Copy, Default)]
pub(crate) struct Work {
    pub(crate) transfers: usize,
    pub(crate) longest: Duration,
    pub(crate) cpu: Duration,
}

/// Handle of the parent. Dropping it kills the child.
pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    pub(crate) fn start(accounts: &Path, urls: &[String]) -> Self {
        let own_program = std::env::current_exe().expect("a path to this program");
        let mut command = Command::new(own_program);
        command.arg(CHILD).arg(accounts).args(urls).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the child starts");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, input, output }
    }

    /// Waits until the child is connected.
    pub(crate) fn ready(&mut self) {
        assert_eq!(self.answer(), "ready");
    }

    /// Starts a run in the child.
    pub(crate) fn begin(&mut self, way: Way, Load { tellers, body }: Load, time: Duration) {
        let [body, time] = [body, time].map(|time| time.as_millis());
        writeln!(self.input, "{way:?} {tellers} {body} {time}").expect("the child listens");
    }

    /// Waits for the end of the run and returns its results.
    pub(crate) fn done(&mut self) -> Work {
        let [transfers, longest, cpu] = numbers_of(&self.answer());
        let [longest, cpu] = [longest, cpu].map(Duration::from_nanos);
        Work { transfers: usize::try_from(transfers).expect("not that many"), longest, cpu }
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        let length = block_in_place(|| self.output.read_line(&mut line)).expect("the child writes text");
        assert!(length > 0, "a child that lives says what it does");
        line.trim_end().to_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that the child has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn numbers_of(text: &str) -> [u64; 3] {
    let numbers: Vec<_> = text.split(' ').map(|number| number.parse().expect("a number")).collect();
    numbers.try_into().expect("three of them")
}

/// Entry point of the child. Returns `false` if this process was not started as a child, and otherwise runs until the
/// end of its input.
pub(crate) fn was_child() -> bool {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [first, accounts, urls @ ..] = arguments.as_slice() else { return false };
    if first != CHILD {
        return false;
    }
    serve(&Arc::new(Accounts::open(Path::new(accounts))), urls);
    true
}

fn serve(accounts: &Arc<Accounts>, urls: &[String]) {
    let runtime = Runtime::new().expect("a runtime");
    let manager = runtime.block_on(crate::manager(urls));
    println!("ready");
    for line in std::io::stdin().lines() {
        let line = line.expect("the parent writes text");
        let (way, numbers) = line.split_once(' ').expect("four words");
        let way = [Way::Together, Way::Nested].into_iter().find(|known| format!("{known:?}") == way).expect("a way");
        let [tellers, body, time] = numbers_of(numbers);
        let [body, time] = [body, time].map(Duration::from_millis);
        let load = Load { tellers, body };
        let Work { transfers, longest, cpu } = runtime.block_on(work(&manager, accounts, way, load, time));
        println!("{transfers} {} {}", longest.as_nanos(), cpu.as_nanos());
    }
}

async fn work(manager: &LockManager, accounts: &Arc<Accounts>, way: Way, load: Load, time: Duration) -> Work {
    let (used, end, mut tasks) = (cpu_time(), Instant::now() + time, JoinSet::new());
    for _ in 0..load.tellers {
        let (manager, accounts) = (manager.clone(), Arc::clone(accounts));
        tasks.spawn(async move {
            let mut work = Work::default();
            while Instant::now() < end {
                let begun = Instant::now();
                transfer(&manager, &accounts, way, load.body).await;
                work.longest = work.longest.max(begun.elapsed());
                work.transfers += 1;
            }
            work
        });
    }
    let all = tasks.join_all().await;
    let longest = all.iter().map(|work| work.longest).max().unwrap_or_default();
    let transfers = all.iter().map(|work| work.transfers).sum();
    Work { transfers, longest, cpu: cpu_time().saturating_sub(used) }
}

/// Transfers between two random accounts.
async fn transfer(manager: &LockManager, accounts: &Accounts, way: Way, body: Duration) {
    let from = fastrand::u64(0..ACCOUNTS);
    let to = (from + fastrand::u64(1..ACCOUNTS)) % ACCOUNTS;
    let acquire = async |request: LockRequest| manager.acquire(request.wait(LIMIT)).await.expect("nobody is stuck");
    let key = |account| format!("account:{account}");
    match way {
        Way::Together => {
            let _both = acquire(LockRequest::all([key(from), key(to)])).await;
            accounts.transfer(from, to, body).await;
        }
        Way::Nested => {
            let _first = acquire(LockRequest::new(key(from.min(to)))).await;
            let _second = acquire(LockRequest::new(key(from.max(to)))).await;
            accounts.transfer(from, to, body).await;
        }
    }
}
