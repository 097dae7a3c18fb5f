//! Manager in another process: this benchmark, executed again with `--child`.
//!
//! The child prints `ready`, and then reads one command per line.
//!
//! - `exclusive` and `shared`: acquires the lock. The child answers `asking`. Some time after the acquisition, it
//!   prints the time of the acquisition in nanoseconds of the monotonic clock.
//! - `release`: releases the lock. The child answers `released`.
//! - `listen`: waits for a message. The answers are those of an acquisition, with the time of the message.
//!
//! The child exits at the end of its input.

use crate::hand_over::KEY;
use crate::moment;
use futures_util::StreamExt;
use redlock_runtime::{LockGuard, LockRequest, Mode};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::block_in_place;

const CHILD: &str = "--child";

/// Channel of the message for `listen`.
pub(crate) const CHANNEL: &str = "bench:all";

/// Delay before a child reports an acquisition. Too small: the reports of the first children take CPU time from the
/// last ones.
const SILENCE: Duration = Duration::from_millis(50);

/// Handle of the parent. Dropping it kills the child.
pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    pub(crate) fn start(urls: &[String]) -> Self {
        let own_program = std::env::current_exe().expect("a path to this program");
        let mut command = Command::new(own_program);
        command.arg(CHILD).args(urls).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the child starts");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, input, output }
    }

    /// Waits until the child is connected.
    pub(crate) fn ready(&mut self) {
        assert_eq!(self.answer(), "ready");
    }

    /// Tells the child to acquire the lock. Returns when the child has begun.
    pub(crate) fn ask(&mut self, mode: Mode) {
        self.say(word(mode));
        assert_eq!(self.answer(), "asking");
    }

    /// Returns when the child listens for a message from the first node.
    pub(crate) fn listen(&mut self) {
        self.say("listen");
        assert_eq!(self.answer(), "asking");
    }

    /// Returns the time at which the child acquired the lock or received the message, by the monotonic clock.
    pub(crate) fn held(&mut self) -> Duration {
        Duration::from_nanos(self.answer().parse().expect("a number"))
    }

    /// Waits until the child has released the lock.
    pub(crate) fn release(&mut self) {
        self.say("release");
        assert_eq!(self.answer(), "released");
    }

    fn say(&mut self, word: &str) {
        writeln!(self.input, "{word}").expect("the child listens");
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

const fn word(mode: Mode) -> &'static str {
    match mode {
        Mode::Exclusive => "exclusive",
        _ => "shared",
    }
}

/// Entry point of the child. Returns `false` if this process was not started as a child, and otherwise runs until the
/// end of its input.
pub(crate) fn was_child() -> bool {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [first, urls @ ..] = arguments.as_slice() else { return false };
    if first != CHILD {
        return false;
    }
    serve(urls);
    true
}

fn serve(urls: &[String]) {
    let runtime = Runtime::new().expect("a runtime");
    let manager = runtime.block_on(crate::manager(urls));
    println!("ready");
    let mut held: Option<LockGuard> = None;
    for line in std::io::stdin().lines() {
        let line = line.expect("the parent writes text");
        if line == "release" {
            let guard = held.take().expect("a lock was asked for");
            runtime.block_on(guard.release()).expect("it is held");
            println!("released");
            continue;
        }
        if line == "listen" {
            let url = urls.first().expect("there is a node").clone();
            let since = runtime.block_on(runtime.spawn(heard(url))).expect("no panic");
            tell(since);
            continue;
        }
        let mode = [Mode::Exclusive, Mode::Shared].into_iter().find(|mode| word(*mode) == line).expect("a mode");
        println!("asking");
        let request = LockRequest::new(KEY).mode(mode).wait(Duration::from_secs(60));
        let manager = manager.clone();
        // Run on a worker thread of the runtime, as the bodies of a service do.
        let body = async move { (manager.acquire(request).await.expect("it is handed over"), moment::now()) };
        let (guard, since) = runtime.block_on(runtime.spawn(body)).expect("no panic");
        held = Some(guard);
        tell(since);
    }
}

/// Prints the time, after a delay in which the other children can finish.
fn tell(since: Duration) {
    sleep(SILENCE);
    println!("{}", since.as_nanos());
}

/// Returns the time at which the message arrived.
async fn heard(url: String) -> Duration {
    let client = redis::Client::open(url).expect("the harness gives valid URLs");
    let mut channel = client.get_async_pubsub().await.expect("the node is up");
    channel.subscribe(CHANNEL).await.expect("the node is up");
    println!("asking");
    channel.on_message().next().await.expect("the node stays up");
    moment::now()
}
