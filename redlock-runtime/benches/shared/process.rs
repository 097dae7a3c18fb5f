//! A manager in another process: this benchmark, executed again with `--child`.
//!
//! The child says `ready`, and then answers one word per line. `exclusive` and `shared` have it ask for the lock: it answers
//! `asking`, and, a while after it has the lock, by the nanoseconds of the monotonic clock at which it got it. `release` is answered
//! by `released`. `listen` is answered in the same way as they are, for a message in the place of the lock. The end of its input
//! ends the child.

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

/// Where the message comes that `listen` is for.
pub(crate) const CHANNEL: &str = "bench:all";

/// After which time a child says that it has the lock. Shorter, what the first ones say takes the processor from the last ones.
const SILENCE: Duration = Duration::from_millis(50);

/// The parent's end. Dropping it kills the child.
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

    /// Returns once the child is connected.
    pub(crate) fn ready(&mut self) {
        assert_eq!(self.answer(), "ready");
    }

    /// Returns once the child asks for the lock.
    pub(crate) fn ask(&mut self, mode: Mode) {
        self.say(word(mode));
        assert_eq!(self.answer(), "asking");
    }

    /// Returns once the child listens for a message from the first node.
    pub(crate) fn listen(&mut self) {
        self.say("listen");
        assert_eq!(self.answer(), "asking");
    }

    /// When the child had the lock or the message, by the monotonic clock.
    pub(crate) fn held(&mut self) -> Duration {
        Duration::from_nanos(self.answer().parse().expect("a number"))
    }

    /// Returns once the child has given the lock back.
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
        // An error says that it has ended before.
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

/// The child's end: whether this process was started as one; if so, it has done its work.
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
        // On a worker of the runtime, where a service runs its bodies.
        let body = async move { (manager.acquire(request).await.expect("it is handed over"), moment::now()) };
        let (guard, since) = runtime.block_on(runtime.spawn(body)).expect("no panic");
        held = Some(guard);
        tell(since);
    }
}

/// Says when it was, and nothing before others had their time.
fn tell(since: Duration) {
    sleep(SILENCE);
    println!("{}", since.as_nanos());
}

/// When the message was there.
async fn heard(url: String) -> Duration {
    let client = redis::Client::open(url).expect("the harness gives valid URLs");
    let mut channel = client.get_async_pubsub().await.expect("the node is up");
    channel.subscribe(CHANNEL).await.expect("the node is up");
    println!("asking");
    channel.on_message().next().await.expect("the node stays up");
    moment::now()
}
