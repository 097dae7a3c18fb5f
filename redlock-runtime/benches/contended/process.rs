//! Contender in another process: this benchmark, executed again with `--child`.
//!
//! Parent and child exchange lines of text.
//!
//! - `acquire`: the child answers `asking`, then `held <nanoseconds of the monotonic clock>` or `gave up`.
//! - `release`: the child answers `released`.
//!
//! The child exits at the end of its input.

use crate::contender::{Held, Kind};
use crate::moment;
use crate::plan::LIMIT;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

const CHILD: &str = "--child";

/// Handle of the parent. Dropping it kills the child.
pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    answers: UnboundedReceiver<String>,
}

impl Process {
    pub(crate) fn start(kind: Kind, urls: &[String], key: &str, ttl: Duration) -> Self {
        let own_program = std::env::current_exe().expect("a path to this program");
        let mut command = Command::new(own_program);
        command.args([CHILD, kind.name(), key, &ttl.as_millis().to_string()]).args(urls);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the child starts");
        let input = child.stdin.take().expect("a pipe");
        let output = child.stdout.take().expect("a pipe");
        let (sender, answers) = unbounded_channel();
        std::thread::spawn(move || pass_on(output, &sender));
        Self { child, input, answers }
    }

    /// Tells the child to acquire the lock. Returns when the child is waiting.
    pub(crate) async fn ask(&mut self) {
        self.say("acquire");
        self.answer("asking").await.expect("a child that lives says what it does");
    }

    /// Returns the time at which the child acquired the lock, by the monotonic clock. Returns `None` if the contender
    /// gives up or takes longer than [`LIMIT`].
    pub(crate) async fn held(&mut self) -> Option<Duration> {
        let nanos = self.answer("held").await?;
        Some(Duration::from_nanos(nanos.trim().parse().expect("a number")))
    }

    pub(crate) async fn release(&mut self) {
        self.say("release");
        self.answer("released").await.expect("a release ends");
    }

    /// Kills the child with SIGKILL and waits until it has exited.
    pub(crate) fn kill(&mut self) {
        // An error means that the child has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn say(&mut self, word: &str) {
        writeln!(self.input, "{word}").expect("the child listens");
    }

    /// Returns the text after `word` in the next answer. Returns `None` if the answer does not begin with `word`, or
    /// does not arrive within [`LIMIT`].
    async fn answer(&mut self, word: &str) -> Option<String> {
        let answer = tokio::time::timeout(LIMIT, self.answers.recv()).await.ok()??;
        answer.strip_prefix(word).map(str::to_owned)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn pass_on(output: ChildStdout, answers: &UnboundedSender<String>) {
    for line in BufReader::new(output).lines() {
        let Ok(line) = line else { return };
        if answers.send(line).is_err() {
            return;
        }
    }
}

/// Entry point of the child. Returns `false` if this process was not started as a child, and otherwise runs until the
/// end of its input.
pub(crate) fn was_child() -> bool {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [first, kind, key, millis, urls @ ..] = arguments.as_slice() else { return false };
    if first != CHILD {
        return false;
    }
    let kind = Kind::from_name(kind).expect("the name of a contender");
    serve(kind, key, Duration::from_millis(millis.parse().expect("milliseconds")), urls);
    true
}

fn serve(kind: Kind, key: &str, ttl: Duration, urls: &[String]) {
    let runtime = Runtime::new().expect("a runtime");
    let contender = runtime.block_on(kind.connect(urls));
    let mut held = None;
    for line in std::io::stdin().lines() {
        match line.expect("the parent writes text").as_str() {
            "acquire" => {
                println!("asking");
                let (contender, key) = (contender.clone(), key.to_owned());
                // Run on a worker thread of the runtime, as the bodies of a service do.
                let body = async move { (contender.acquire(&key, ttl).await, moment::now()) };
                let (lock, since) = runtime.block_on(runtime.spawn(body)).expect("no panic");
                let answer = if lock.is_some() { format!("held {}", since.as_nanos()) } else { "gave up".to_owned() };
                held = lock;
                println!("{answer}");
            }
            "release" => {
                runtime.block_on(held.take().map(Held::release).expect("a lock is held"));
                println!("released");
            }
            other => panic!("{other:?} is no command"),
        }
    }
}
