//! The round trip before a connection is used: loads the scripts, names the client, asks who the server is. Before it, a member
//! of a cluster is asked what it is called there, which stands in its scripts.

use super::answer::{refused, time_told};
use super::channels::Channels;
use super::connections::Connections;
use super::courier::{Connection, Courier};
use super::info::Info;
use super::live_connection::LiveConnection;
use super::marker::{marker, read_marker};
use super::needed;
use super::script::Scripts;
use super::verification::{Doubt, Verification};
use crate::error::NodeError;
use crate::node::environment::Environment;
use crate::node::inspection::client_name;
use crate::node::report::{CLUSTER_MEMBER, Refusal};
use crate::node::server_facts::ServerFacts;
use crate::node::server_identity::Identity;
use crate::text::excerpt;
use redis::{FromRedisValue, Pipeline, Value};
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

/// The settings that say whether a server writes every command to disk. Redis 6.2 takes one pattern and no list of names.
pub(super) const PERSISTENCE: &str = "*append*";

/// What is wrong with a server that only watches over others.
const SENTINEL: &str =
    "is a Sentinel, which takes no locks: write redis+sentinel://host:26379/name, with the name of the master";

/// Makes a connection ready for commands, and the task that drives it.
///
/// # Errors
/// [`NodeError::Refused`] when the server does not take the scripts, or may not be asked about its replicas, [`NodeError::Replica`] when it takes no locks,
/// [`NodeError::SameServer`] when it counts already, [`NodeError::Unsupported`] for a Sentinel, for a server that is too old, and for a member of a cluster that
/// is not known as one.
pub(super) async fn prepare(
    mut connection: Connection,
    (has_pushes, doubt): (bool, Doubt),
    connections: &Connections,
) -> Result<(Arc<LiveConnection>, Courier), NodeError> {
    let Connections { server, environment, .. } = connections;
    let namespace = &*environment.namespace;
    let channels = if server.is_member() {
        own_channels(&mut connection, namespace).await?
    } else {
        Channels::of_server(namespace)
    };
    server.has_channels(channels.are_own());
    let (sent, receipt) = (server.now(), server.receipt());
    let mut answers = ask(&mut connection, &questions(&channels, environment, server)).await?;
    let answered = server.now();
    let refusals = needed::refusals(answers.split_off(answers.len().saturating_sub(needed::questions())).into_iter());
    let mut answers = answers.into_iter();
    let digests = answers.by_ref().take(Scripts::SOURCES.len()).collect::<Vec<_>>();
    // The name only helps whoever looks at the server's list of clients, so that a refusal does not matter.
    let _name = answers.next();
    let is_tracking = server.is_distrusted() && permitted::<Value>(answers.next()).is_some() && has_pushes;
    // A user who may ask none of what follows can lock all the same; the manager just knows less of the server.
    let info: Info = permitted(answers.next()).map(|text: String| Info::parse(&text)).unwrap_or_default();
    if info.is_sentinel() {
        return Err(NodeError::Unsupported(SENTINEL.into()));
    }
    if info.is_cluster_member() && !server.is_member() {
        return Err(NodeError::Unsupported(CLUSTER_MEMBER.into()));
    }
    if let Some(product) = info.too_old() {
        return Err(too_old(&product));
    }
    let scripts = scripts(channels, digests, &refusals)?;
    let settings: HashMap<String, String> = permitted(answers.next()).unwrap_or_default();
    let time = answers.next().map(time_told);
    let marker = if has_marker(server) { answers.next().and_then(|reply| marker(reply, receipt)) } else { None };
    let located = connection.control.located.get();
    let identity = info.identity(&settings).map(|identity| {
        // A name or a Sentinel may lead to a replica next, which has the marker of its master.
        let is_durable = identity.is_durable && located.is_none() && !server.is_member();
        Identity { is_durable, marker, ..identity.in_office_for(located.and_then(|located| located.since)) }
    });
    if info.is_replica() {
        if let Some(identity) = identity {
            server.is_replica(identity);
        }
        return Err(NodeError::Replica);
    }
    // Not before: a replica answers with an error.
    let wait = if environment.replicas.is_some() { answers.next() } else { None };
    if let Some(refusal) = wait.and_then(|wait| wait.extract_error().err()) {
        return Err(refused(&refusal));
    }
    let abstention = server.connected(identity)?;
    // Nor does a clock count of one that takes no locks.
    match time {
        Some(Ok(time)) => server.told_first(answered, time, sent),
        // For whatever reason: a number can be drawn with each node that is connected.
        Some(Err(_)) | None => server.tells_no_time(answered),
    }
    // Only now: a node without a vote is not near, however soon it answers.
    if server.abstains_for(abstention, answered).is_none() {
        server.answered(sent, answered);
    }
    let brings_wakeups = has_pushes && !connections.listens_apart();
    let live =
        Arc::new(LiveConnection::new(scripts, brings_wakeups, abstention, Arc::clone(server), environment.clone()));
    live.needed.record(&refusals, &environment.namespace);
    Ok((Arc::clone(&live), Courier::new(live, connection, Verification::new(doubt, is_tracking))))
}

/// The channels of a member of a cluster: its own, or where it has no id those of any server. Then each wake-up comes from all
/// members.
///
/// # Errors
/// [`NodeError::Refused`] to a user who may not ask: others may, and would publish on other channels than this one listens to.
async fn own_channels(connection: &mut Connection, namespace: &str) -> Result<Channels, NodeError> {
    let answers = ask(connection, redis::pipe().cmd("CLUSTER").arg("MYID")).await?;
    let said = match answers.into_iter().next().unwrap_or(Value::Nil).extract_error() {
        Err(error) if error.code() == Some("NOPERM") => return Err(refused(&error)),
        Err(_) => return Ok(Channels::of_server(namespace)),
        Ok(said) => said,
    };
    let id: String = redis::from_redis_value(said)
        .map_err(|_| NodeError::UnexpectedReply("something else than an id to CLUSTER MYID".into()))?;
    Channels::of_member(namespace, &id)
}

/// What is asked, in the order in which [`prepare`] takes the answers.
fn questions(channels: &Channels, environment: &Environment, server: &ServerFacts) -> Pipeline {
    let mut pipeline = redis::pipe();
    for (_, source) in Scripts::SOURCES {
        pipeline.cmd("SCRIPT").arg("LOAD").arg(&*channels.in_script(source));
    }
    let name = client_name(&environment.manager.to_string(), &environment.label);
    pipeline.cmd("CLIENT").arg("SETNAME").arg(name);
    if server.is_distrusted() {
        // No key is ever tracked: what comes is only that data was thrown away (`verification`). Nothing comes in RESP2.
        pipeline.cmd("CLIENT").arg("TRACKING").arg("ON").arg("OPTIN");
    }
    pipeline.cmd("INFO");
    pipeline.cmd("CONFIG").arg("GET").arg(PERSISTENCE);
    pipeline.cmd("TIME");
    if has_marker(server) {
        pipeline.add_command(read_marker(&environment.namespace, environment.manager, server.receipt()));
    }
    if environment.replicas.is_some() {
        // For none: only whether it is permitted. A refusal later would come when the lock has been taken.
        pipeline.cmd("WAIT").arg(0).arg(1);
    }
    needed::add_questions(&mut pipeline, &environment.namespace);
    pipeline
}

/// Returns `true` if the connection keeps a marker in the data of the server. In a cluster, the key would move with its slot.
fn has_marker(server: &ServerFacts) -> bool {
    server.has_marker() && !server.is_member()
}

/// The answers, one for each question. The connection is driven from here, because it has no task yet.
pub(super) async fn ask(
    Connection { commands, driver, control }: &mut Connection,
    questions: &Pipeline,
) -> Result<Vec<Value>, NodeError> {
    let mut request = pin!(commands.send_packed_commands(questions, 0, questions.len()));
    let answers = poll_fn(|cx| {
        let is_over = driver.as_mut().poll(cx).is_ready();
        match request.as_mut().poll(cx) {
            // A connection that broke is of no use, even when its answers are here: the courier would poll a driver
            // that has ended.
            Poll::Pending | Poll::Ready(Ok(_)) if is_over => Poll::Ready(Err(NodeError::Disconnected)),
            answers => answers.map_err(|error| refused(&error)),
        }
    });
    let answers = answers.await?;
    control.received.is_complete();
    Ok(answers)
}

/// Returns the error for a server of an old version.
fn too_old(product: &str) -> NodeError {
    let text = format!(
        "is {product} and needs Redis 6.2 or newer: shared locks, permits, fencing and paths fail on it, so update it or use another \
         server"
    );
    NodeError::Unsupported(excerpt(text).into())
}

/// The scripts, by the answers to `SCRIPT LOAD`. If the server does not store them, or does not run them by their digests, they are sent
/// with each command.
///
/// # Errors
/// That of `SCRIPT LOAD`, if it passes or the scripts cannot be sent with each command either.
fn scripts(channels: Channels, digests: Vec<Value>, refusals: &[Refusal]) -> Result<Scripts, NodeError> {
    let mut digests = digests.into_iter();
    let is_run_by_source = !needed::refuses(refusals, "EVAL");
    match Scripts::loaded(channels.clone(), || digest(digests.next())) {
        Ok(scripts) if !is_run_by_source || !needed::refuses(refusals, "EVALSHA") => Ok(scripts),
        Err(error) if !is_run_by_source || error.is_transient() => Err(error),
        _ => Ok(Scripts::unloaded(channels)),
    }
}

/// The digest in an answer to `SCRIPT LOAD`.
fn digest(answer: Option<Value>) -> Result<String, NodeError> {
    match answer.map(Value::extract_error) {
        Some(Ok(value)) => redis::from_redis_value(value)
            .map_err(|_| NodeError::Refused("something else than a digest to SCRIPT LOAD".into())),
        Some(Err(error)) => Err(refused(&error)),
        None => Err(NodeError::Disconnected),
    }
}

/// The answer to a question that a server may refuse.
fn permitted<T: FromRedisValue>(answer: Option<Value>) -> Option<T> {
    redis::from_redis_value(answer?.extract_error().ok()?).ok()
}
