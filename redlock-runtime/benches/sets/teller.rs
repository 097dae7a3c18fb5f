//! A process that transfers money: this benchmark, executed again with `--child`.
//!
//! The child says `ready`, and then answers one line by one line. It is told how to lock, how many tellers it has, how long a body is and for how long they transfer, in milliseconds, and says how many transfers that were, what the longest one took and what CPU time all of them did, in nanoseconds. The end
//! of its input ends the child.

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

/// A transfer that takes longer is one of a deadlock.
const LIMIT: Duration = Duration::from_secs(20);

/// How the two accounts of a transfer are locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// By one lock of two keys, in the order in which they come.
    Together,
    /// By two locks, the smaller account first, one in the other.
    Nested,
}

/// What a process is to do.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    /// Those that transfer at the same time.
    pub(crate) tellers: u64,
    /// How long a body takes.
    pub(crate) body: Duration,
}

/// What the tellers of one process have done.
#[derive(Clone, Copy, Default)]
pub(crate) struct Work {
    pub(crate) transfers: usize,
    pub(crate) longest: Duration,
    pub(crate) cpu: Duration,
}

/// The parent's end. Dropping it kills the child.
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

    /// Returns once the child is connected.
    pub(crate) fn ready(&mut self) {
        assert_eq!(self.answer(), "ready");
    }

    /// Has the child begin.
    pub(crate) fn begin(&mut self, way: Way, Load { tellers, body }: Load, time: Duration) {
        let [body, time] = [body, time].map(|time| time.as_millis());
        writeln!(self.input, "{way:?} {tellers} {body} {time}").expect("the child listens");
    }

    /// What it has done, once it has.
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
        // An error says that it has ended before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn numbers_of(text: &str) -> [u64; 3] {
    let numbers: Vec<_> = text.split(' ').map(|number| number.parse().expect("a number")).collect();
    numbers.try_into().expect("three of them")
}

/// The child's end: whether this process was started as one; if so, it has done its work.
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

/// Between two random accounts.
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
