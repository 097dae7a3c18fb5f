//! Floods of wake-up messages by a user with the permission to publish alone: they cost a process a bounded amount of memory, and no lock.
//!
//! The process is a child with the permissions of a service, and its memory is read from `/proc`.

use crate::strangers::{set_user, stranger, url_of};
use crate::support::builder;
use redis::aio::MultiplexedConnection;
use redlock_tests::{Nodes, PATIENCE, eventually};
use std::env;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

const URLS: &str = "REDLOCK_TESTS_FLOODED_URLS";
/// Start of a line with the token of a lock that the child has acquired and released.
const LOCKED: &str = "locked with ";
/// Maximum growth of the resident memory over all floods, in KiB.
const MOST_KIB: u64 = 16 * 1024;
/// Messages of each form with short keys. Without limits, each costs some hundred bytes.
const SHORT: usize = 20_000;
/// Messages of each form with keys that are nearly as long as a message may be.
const LONG: usize = 4_000;
const LONG_KEY: usize = 1_900;
/// Messages of each form that are much longer than any message of a node.
const HUGE: usize = 20;
const HUGE_KEY: usize = 200_000;

/// Returns the forms of all messages, from the table of the wake-up channel, and two forms that it does not have.
fn forms() -> Vec<&'static str> {
    let source = include_str!("../../../redlock-runtime/src/protocol/wakeup.rs");
    let rows = source.lines().filter_map(|line| line.strip_prefix("//! | `"));
    let forms: Vec<_> = rows.filter_map(|row| row.split('`').next()).collect();
    assert!(forms.len() >= 10 && forms.iter().all(|form| form.ends_with(" <key>")), "{forms:?}");
    [&forms[..], &["unheard-of <token> <key>", "<key>"]].concat()
}

/// Returns message number `number` of this form, with made-up tokens of the manager with this id.
fn message(form: &str, id: &str, number: usize, key: &str) -> String {
    let token = |last: u8| format!("{number:08x}-0000-7000-8000-00000000000{last}@{id}");
    form.replace("<token>", &token(0))
        .replace("<by>", &token(1))
        .replace("<milliseconds>", "1000")
        .replace("<seconds>", "1800000000")
        .replace("<microseconds>", "7")
        .replace("<key>", key)
}

/// Returns the key of a message, with `length` zeros. The child may release the even ones, and not the odd ones.
fn key(number: usize, length: usize) -> String {
    let namespace = if number.is_multiple_of(2) { "locks:" } else { "other:" };
    format!("{namespace}{}{number}", "0".repeat(length))
}

/// The process that reads the messages.
struct Victim {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Victim {
    async fn start(test: &str, nodes: &Nodes) -> Self {
        let rules = "service reset resetchannels on >service ~locks:* ~{locks:* &redlock:locks:* +@all";
        let rules: Vec<_> = rules.split(' ').collect();
        for node in nodes.iter() {
            set_user(node, &rules).await;
        }
        let urls: Vec<_> = nodes.iter().map(|node| url_of(node, "service", "service")).collect();
        let mut process = Command::new(env::current_exe().unwrap());
        process.args(["--exact", "--nocapture", test]).env(URLS, urls.join(","));
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = process.spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        Self { process, input, output: BufReader::new(output).lines() }
    }

    /// Makes the process acquire and release a lock. Returns the token.
    async fn lock(&mut self) -> String {
        self.input.write_all(b"lock\n").await.unwrap();
        let token = async {
            loop {
                let line = self.output.next_line().await.unwrap().expect("the process has failed");
                if let Some((_, token)) = line.split_once(LOCKED) {
                    return token.to_owned();
                }
            }
        };
        timeout(PATIENCE, token).await.expect("the process gets its lock")
    }

    /// Returns a value in KiB from the status of the process.
    fn kib(&self, field: &str) -> u64 {
        let path = format!("/proc/{}/status", self.process.id().unwrap());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    async fn end(mut self) {
        drop(self.input);
        let status = timeout(PATIENCE, self.process.wait()).await.unwrap().unwrap();
        assert!(status.success(), "{status}");
    }
}

/// Acquires and releases a lock for each line of the input.
async fn serve(urls: &str) {
    let manager = builder(urls.split(',')).namespace("locks").build().unwrap();
    // After this, its channels are open at all nodes.
    manager.check().await;
    let read_line = || std::io::stdin().lines().next();
    while let Some(Ok(_)) = tokio::task::spawn_blocking(read_line).await.unwrap() {
        let guard = manager.acquire("order:1").await.unwrap();
        let token = *guard.token();
        guard.release().await.unwrap();
        println!("{LOCKED}{token}");
    }
}

/// A user who may only publish, connected to one node.
struct Publisher(MultiplexedConnection);

impl Publisher {
    /// Publishes messages of this form to the manager with this id. Returns `true` if it receives each of them.
    async fn publish(&mut self, form: &str, id: &str, numbers: std::ops::Range<usize>, length: usize) -> bool {
        // Some megabytes at once at most.
        let step = (4_000_000 / length.max(100)).clamp(1, 1000);
        let (mut numbers, mut is_heard) = (numbers, true);
        while !numbers.is_empty() {
            let mut pipeline = redis::pipe();
            for number in numbers.by_ref().take(step) {
                let message = message(form, id, number, &key(number, length));
                pipeline.cmd("PUBLISH").arg(format!("redlock:locks:{id}")).arg(message);
            }
            let heard: Vec<u64> = pipeline.query_async(&mut self.0).await.unwrap();
            is_heard &= heard.iter().all(|listeners| *listeners == 1);
        }
        is_heard
    }

    async fn flood(&mut self, form: &str, id: &str) {
        let long = SHORT + LONG;
        for (numbers, length) in [(0..SHORT, 0), (SHORT..long, LONG_KEY), (long..long + HUGE, HUGE_KEY)] {
            assert!(self.publish(form, id, numbers, length).await, "{form}: the connection was cut");
        }
    }
}

async fn publisher(nodes: &Nodes, node: usize) -> Publisher {
    Publisher(stranger(&nodes[node], &["+publish", "&redlock:locks:*"]).await)
}

async fn wait_until_listening(nodes: &Nodes, id: &str) {
    let channel = format!("redlock:locks:{id}");
    for node in nodes.iter() {
        eventually(PATIENCE, "it listens", async || {
            let (_, listeners): (String, u64) = node.inspect().command(&["PUBSUB", "NUMSUB", &channel]).await;
            if listeners > 0 { Ok(()) } else { Err(listeners) }
        })
        .await;
    }
}

fn id(token: &str) -> String {
    token.split_once('@').unwrap().1.to_owned()
}

/// The commands of a lock are answered behind all messages, on the same connection.
#[tokio::test]
async fn floods_of_messages_cost_little_memory() {
    if let Ok(urls) = env::var(URLS) {
        return serve(&urls).await;
    }
    let nodes = Nodes::start(1).await;
    let mut victim = Victim::start("message_floods::floods_of_messages_cost_little_memory", &nodes).await;
    let id = id(&victim.lock().await);
    wait_until_listening(&nodes, &id).await;
    let mut spy = publisher(&nodes, 0).await;
    let before = victim.kib("VmRSS");
    for form in forms() {
        spy.flood(form, &id).await;
        victim.lock().await;
        let most = victim.kib("VmHWM");
        println!("{form}: {} KiB", most.saturating_sub(before));
        assert!(most <= before + MOST_KIB, "after `{form}`: {before} KiB before, {most} KiB at most");
    }
    victim.end().await;
}

/// The commands that a message causes cannot be executed at the frozen node.
#[tokio::test]
async fn floods_of_messages_cost_little_memory_while_a_node_is_frozen() {
    if let Ok(urls) = env::var(URLS) {
        return serve(&urls).await;
    }
    let nodes = Nodes::start(3).await;
    let name = "message_floods::floods_of_messages_cost_little_memory_while_a_node_is_frozen";
    let mut victim = Victim::start(name, &nodes).await;
    let id = id(&victim.lock().await);
    let (mut spy, mut spy_at_frozen) = (publisher(&nodes, 0).await, publisher(&nodes, 2).await);
    wait_until_listening(&nodes, &id).await;
    let before = victim.kib("VmRSS");
    for form in forms() {
        // Messages from the node that is about to freeze: the process has not read all of them.
        spy_at_frozen.publish(form, &id, 0..LONG, LONG_KEY).await;
        nodes[2].freeze();
        spy.flood(form, &id).await;
        // Both running nodes are needed, so the node with the messages answers behind all of them.
        victim.lock().await;
        let most = victim.kib("VmHWM");
        println!("{form}: {} KiB", most.saturating_sub(before));
        assert!(most <= before + MOST_KIB, "after `{form}`: {before} KiB before, {most} KiB at most");
        nodes[2].thaw();
        wait_until_listening(&nodes, &id).await;
    }
    victim.end().await;
}
