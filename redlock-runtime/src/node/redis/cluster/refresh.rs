//! Keeps the map of a cluster fresh.
//!
//! One of the members is asked which of them has which slot: at the start, every few seconds, and whenever a member has sent
//! a command elsewhere or cannot be reached. While a member is missing, or a slot has none, it is asked again and again, since
//! nothing tells when a replica has taken over.

use super::members::Members;
use super::slot_map::SlotMap;
use crate::error::NodeError;
use crate::node::redis::RedisNode;
use crate::node::redis::answer::refused;
use crate::node::redis::backoff::{Backoff, CONNECT_TIMEOUT};
use crate::node::redis::complaints::Complaints;
use crate::node::redis::connect::handshake;
use crate::node::redis::endpoint::Endpoint;
use crate::node::redis::prepare;
use crate::node::redis::verification::Doubt;
use redis::{ProtocolVersion, RedisError, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// How long a map is good when nothing says that it is not. Smaller, more questions; larger, a member that has come or gone
/// without any command that has told of it stays unknown for longer.
const GOOD_FOR: Duration = Duration::from_secs(5);

/// Maps are not asked for closer together than this. Smaller, a slot that moves under load makes many questions; larger,
/// commands take the longer way for longer.
const LEAST_PAUSE: Duration = Duration::from_millis(50);

/// How long a member is waited for that has a connection. Smaller, a busy one is passed over; larger, a frozen one holds up
/// the news for longer.
const PATIENCE: Duration = Duration::from_millis(250);

const QUESTION: [&str; 2] = ["CLUSTER", "SLOTS"];

/// What is wrong with a server that is no cluster.
const NO_CLUSTER: &str = "is no member of a cluster: write redis:// in place of redis+cluster://";

/// Runs until it is aborted, on the library's thread.
pub(super) async fn keep_fresh(members: Arc<Members>) {
    let (mut backoff, mut complaints) = (Backoff::new(), Complaints::default());
    let mut last_regular = Instant::now();
    loop {
        let is_regular = last_regular.elapsed() >= GOOD_FOR / 2;
        let learnt = match ask(&members).await {
            Ok(map) => members.learn(map, is_regular),
            Err(error) => Err(error),
        };
        if is_regular {
            last_regular = Instant::now();
        }
        if let Err(error) = learnt {
            if let Some(times) = complaints.times(&error.to_string()) {
                let node = members.seeds.label();
                tracing::warn!(node, %error, times, "cannot find out which member of the cluster has which slot");
            }
            members.failed(error);
        }
        if members.are_well() {
            backoff.connected();
            sleep(LEAST_PAUSE).await;
            // Either way there is a reason to ask.
            let _ = timeout(jittered(GOOD_FOR), members.wanted.notified()).await;
        } else {
            backoff.pause().await;
        }
    }
}

/// Between three quarters of `pause` and all of it, so that processes that were started together do not ask together.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.75 + 0.25 * fastrand::f64())
}

/// The map, as the first member tells it that can be asked.
///
/// # Errors
/// Why the last one did not tell it.
async fn ask(members: &Members) -> Result<SlotMap, NodeError> {
    let mut last = None;
    for member in members.informants() {
        match ask_member(&member).await {
            Ok(map) => return Ok(map),
            Err(error) => last = Some(error),
        }
    }
    let known: Vec<_> = members.addresses().iter().map(|at| members.seeds.member(at)).collect();
    for endpoint in members.seeds.iter().chain(&known) {
        match timeout(CONNECT_TIMEOUT, ask_seed(endpoint)).await {
            Ok(Ok(map)) => return Ok(map),
            Ok(Err(error)) => last = Some(error),
            Err(_) => last = Some(NodeError::Unreachable(format!("no connection within {CONNECT_TIMEOUT:?}").into())),
        }
    }
    Err(last.unwrap_or(NodeError::Disconnected))
}

/// Asks over the connection that there is.
async fn ask_member(member: &RedisNode) -> Result<SlotMap, NodeError> {
    let answer = member.connections.live()?.probe(&QUESTION);
    let answer = timeout(PATIENCE, answer).await.map_err(|_| NodeError::TimedOut(PATIENCE))?;
    read(&answer.map_err(explained)?, &member.host)
}

/// Asks over a connection that is made for this: a seed need not be a master, and need not be called what the cluster calls it.
async fn ask_seed(endpoint: &Endpoint) -> Result<SlotMap, NodeError> {
    let mut connection =
        handshake(endpoint, ProtocolVersion::RESP2, &(Arc::new(|_| {}) as _), &Doubt::default()).await?;
    let mut question = redis::Pipeline::new();
    question.cmd(QUESTION[0]).arg(QUESTION[1]);
    let answer = prepare::ask(&mut connection, &question).await?.pop().unwrap_or(Value::Nil);
    let answer = answer.extract_error().map_err(|error: RedisError| explained(refused(&error)))?;
    read(&answer, endpoint.host().unwrap_or_default())
}

fn read(answer: &Value, host: &str) -> Result<SlotMap, NodeError> {
    SlotMap::parse(answer, host).ok_or_else(|| NodeError::Unintelligible("no map to CLUSTER SLOTS".into()))
}

/// A server that is no member of a cluster says so in words of its own.
fn explained(error: NodeError) -> NodeError {
    match &error {
        NodeError::Refused(answer) if answer.contains("cluster support disabled") => {
            NodeError::Unfit(NO_CLUSTER.into())
        }
        _ => error,
    }
}
