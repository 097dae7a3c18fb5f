//! Keeps the map of a cluster fresh.
//!
//! One member is queried for the slots of all members:
//!
//! - at the start, and then every few seconds;
//! - whenever a member has redirected a command or cannot be reached;
//! - as soon as the connection to a member is lost. A process that only holds locks sends nothing between renewals. It must still learn
//!   soon that a replica without its locks has taken over.
//!
//! While a member is missing, or a slot has no member, the query is repeated: no message announces that a replica has taken over.

use super::address::MemberAddress;
use super::members::Members;
use super::slot_map::SlotMap;
use super::together::all;
use super::view::{View, best};
use crate::error::NodeError;
use crate::node::BoxFuture;
use crate::node::redis::RedisNode;
use crate::node::redis::answer::refused;
use crate::node::redis::backoff::Backoff;
use crate::node::redis::connect::connect_plainly;
use crate::node::redis::endpoint::Endpoint;
use crate::node::redis::log_throttle::LogThrottle;
use crate::node::redis::prepare;
use crate::node::redis::progress::{Progress, Step};
use crate::observe::events;
use crate::time::wait_until::wait_until;
use redis::Value;
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Lifetime of a map without signs of a change. Too small: more queries. Too large: a new or lost member stays unknown for longer, if no
/// command has revealed the change.
const GOOD_FOR: Duration = if cfg!(test) { Duration::from_secs(90) } else { Duration::from_secs(5) };

/// Minimum pause between two queries for the map. Too small: a slot that moves under load causes many queries. Too large: commands are
/// redirected for longer.
const LEAST_PAUSE: Duration = Duration::from_millis(50);

/// Time limit for the reply of a connected member. Too small: a busy member is skipped. Too large: a frozen member delays the new map.
const PATIENCE: Duration = Duration::from_millis(250);

/// Error text for a server that is not a cluster.
const NO_CLUSTER: &str = "is not a member of a cluster: write redis:// instead of redis+cluster://";

/// Runs until it is aborted, on the library's thread.
pub(super) async fn run_map_refresh(members: Arc<Members>) {
    let (mut backoff, mut log_throttle) = (Backoff::new(), LogThrottle::default());
    let mut last_regular = Instant::now();
    loop {
        let is_regular = last_regular.elapsed() >= GOOD_FOR / 2;
        let learnt = match ask(&members).await {
            Ok(view) => {
                let lost = lost(&members, &view.map).await;
                members.learn(view, is_regular, &lost)
            }
            Err(error) => Err(error),
        };
        if is_regular {
            last_regular = Instant::now();
        }
        if let Err(error) = learnt {
            backoff.failed(&error);
            if let Some(times) = log_throttle.times(&error.to_string()) {
                events::no_map(members.seeds.label(), &error, times);
            }
            members.failed(error);
        }
        if members.is_healthy() {
            backoff.connected();
            sleep(LEAST_PAUSE).await;
            // Both outcomes are a reason to query.
            let _ = timeout(jittered(GOOD_FOR), wanted(&members)).await;
        } else {
            backoff.pause().await;
        }
    }
}

/// Returns when a caller requests a map, or the connection to a member is lost.
async fn wanted(members: &Members) {
    let mut wanted = pin!(members.wanted.notified());
    let mut lost = pin!(wait_until(members.changed(), || !members.is_healthy()));
    poll_fn(|cx| if wanted.as_mut().poll(cx).is_ready() { Poll::Ready(()) } else { lost.as_mut().poll(cx) }).await;
}

/// Returns between three quarters of `pause` and all of it, so that processes that were started together do not query together.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.75 + 0.25 * fastrand::f64())
}

/// Returns the map of the first member that knows the newest epoch, or else of the best informed one.
///
/// # Errors
/// The error of the last member that did not report a map.
async fn ask(members: &Members) -> Result<View, NodeError> {
    let (epoch, informants) = (members.epoch(), members.informants());
    let (mut views, mut last) = (Vec::new(), NodeError::Disconnected);
    for member in &informants {
        match query_member(member).await {
            Ok(view) if view.is_newest(epoch) => return Ok(view),
            Ok(view) => views.push(view),
            Err(error) => last = error,
        }
    }
    if let Some(view) = best(views, informants.len(), epoch) {
        return Ok(view);
    }
    let known: Vec<_> = members.addresses().iter().map(|at| members.seeds.member(at)).collect();
    let (mut views, mut asked) = (Vec::new(), 0);
    for endpoint in members.seeds.iter().chain(&known) {
        asked += 1;
        match query_seed(endpoint, &members.progress).await {
            Ok(view) if view.is_newest(epoch) => return Ok(view),
            Ok(view) => views.push(view),
            Err(error) => last = error,
        }
    }
    best(views, asked, epoch).ok_or(last)
}

/// Queries a member over its existing connection.
async fn query_member(member: &RedisNode) -> Result<View, NodeError> {
    let live = member.connections.live()?;
    let [slots, info] = View::QUESTIONS.map(|question| live.probe(&question));
    let answers = timeout(PATIENCE, async { (slots.await, info.await) }).await;
    let (slots, info) = answers.map_err(|_| NodeError::TimedOut(PATIENCE))?;
    View::parse(&slots.map_err(explained)?, info.ok(), &member.host)
}

/// Queries a seed over a new connection: a seed need not be a master, and may have another address in the cluster.
async fn query_seed(endpoint: &Endpoint, progress: &Progress) -> Result<View, NodeError> {
    let asked = progress.limited(endpoint.connect_timeout(), query_over_new_connection(endpoint, progress)).await;
    asked.map_err(|error| endpoint.passing(endpoint.told(progress.refused(error), &progress.at())))
}

async fn query_over_new_connection(endpoint: &Endpoint, progress: &Progress) -> Result<View, NodeError> {
    let mut connection = connect_plainly(endpoint, progress).await?;
    progress.goes_on(Step::Preparation);
    endpoint.logged_in();
    let mut questions = redis::Pipeline::new();
    for [command, about] in View::QUESTIONS {
        questions.cmd(command).arg(about);
    }
    let mut answers = prepare::ask(&mut connection, &questions).await?.into_iter().map(Value::extract_error);
    let slots = answers.next().unwrap_or(Ok(Value::Nil)).map_err(|error| explained(refused(&error)))?;
    let info = answers.next().and_then(Result::ok);
    View::parse(&slots, info, endpoint.host().unwrap_or_default())
}

/// Returns the members that have lost slots in `map` and do not answer. A member that hands slots over moves their keys and still answers.
async fn lost(members: &Members, map: &SlotMap) -> BTreeSet<MemberAddress> {
    let losers = members.losers(map);
    let asked = losers.iter().map(|(_, member)| Box::pin(is_there(member)) as BoxFuture<'_, bool>);
    let are_there = all(asked.collect()).await;
    losers.into_iter().zip(are_there).filter(|(_, is_there)| !is_there).map(|((at, _), _)| at).collect()
}

async fn is_there(member: &RedisNode) -> bool {
    let Ok(live) = member.connections.live() else { return false };
    matches!(timeout(PATIENCE, live.probe(&["PING"])).await, Ok(Ok(_) | Err(NodeError::Refused(_))))
}

/// Replaces the error of a server that is not a member of a cluster by a clearer one.
fn explained(error: NodeError) -> NodeError {
    match &error {
        NodeError::Refused(answer) if answer.contains("cluster support disabled") => {
            NodeError::Unsupported(NO_CLUSTER.into())
        }
        _ => error,
    }
}
