//! The two round trips before a connection is used. The first one finds out which scripts the server lacks. The second one loads these, sets
//! the client name, and identifies the server. A member of a cluster is queried for its id before, which its scripts contain.
//!
//! The receipt in the data of a durable server is replaced by the last round trip. Otherwise, a connection that breaks after it would cost
//! the proof that the server has kept its data.

use super::answer::{parse_time_reply, refused};
use super::channels::Channels;
use super::connections::Connections;
use super::endpoint::Located;
use super::info::Info;
use super::io_task::{Connection, IoTask};
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

/// The settings that determine if a server writes every command to disk. Redis 6.2 accepts one pattern, and not a list of names.
pub(super) const PERSISTENCE: &str = "*append*";

/// Maximum number of digests in one query. A server closes the connection if a client that has not logged in sends more than 10 words.
const MOST_DIGESTS: usize = 8;

/// Error text for a Sentinel.
const SENTINEL: &str =
    "is a Sentinel, which takes no locks: write redis+sentinel://host:26379/name, with the name of the master";

/// Prepares a connection for commands, and creates the task that drives it.
///
/// # Errors
/// - [`NodeError::Refused`] if the server does not accept the scripts, or the user may not run `WAIT` for its replicas;
/// - [`NodeError::Replica`] if it accepts no locks;
/// - [`NodeError::SameServer`] if it has a vote already;
/// - [`NodeError::Unsupported`] for a Sentinel, for a server that is too old, and for a member of a cluster that is not configured as one.
pub(super) async fn prepare(
    mut connection: Connection,
    (has_pushes, doubt): (bool, Doubt),
    connections: &Connections,
) -> Result<(Arc<LiveConnection>, IoTask), NodeError> {
    let Connections { server, environment, .. } = connections;
    let namespace = &*environment.namespace;
    let channels = if server.is_member() {
        own_channels(&mut connection, namespace).await?
    } else {
        Channels::of_server(namespace)
    };
    server.set_own_channels(channels.are_own());
    let digests = Scripts::digests(&channels);
    let is_stored = stored(ask(&mut connection, &exist(&digests)).await?, digests.len())?;
    let (sent, receipt) = (server.now(), server.receipt());
    let mut answers = ask(&mut connection, &questions(&channels, &is_stored, environment, server)).await?;
    let answered = server.now();
    let refusals = needed::refusals(answers.split_off(answers.len().saturating_sub(needed::questions())).into_iter());
    let mut answers = answers.into_iter();
    let of_script = |(known, is_stored): (String, &bool)| if *is_stored { Ok(known) } else { digest(answers.next()) };
    let digests: Vec<_> = digests.into_iter().zip(&is_stored).map(of_script).collect();
    // The name is only for people who read the server's list of clients, so a refusal does not matter.
    let _name = answers.next();
    let is_tracking = server.is_distrusted() && permitted::<Value>(answers.next()).is_some() && has_pushes;
    // A user without these permissions can still lock; the manager just knows less about the server.
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
    let time = answers.next().map(parse_time_reply);
    let marker = if has_marker(server) { answers.next().and_then(|reply| marker(reply, receipt)) } else { None };
    let located = connection.control.located.get();
    let identity = info.identity(&settings);
    let identity = identity.map(|identity| in_office(Identity { marker, ..identity }, located, server.is_member()));
    if info.is_replica() {
        if let Some(identity) = identity {
            server.record_replica(identity);
        }
        return Err(NodeError::Replica);
    }
    // Not earlier: a replica replies with an error.
    let wait = if environment.replicas.is_some() { answers.next() } else { None };
    if let Some(refusal) = wait.and_then(|wait| wait.extract_error().err()) {
        return Err(refused(&refusal));
    }
    let abstention = server.connected(identity)?;
    // The clock of a server without locks is not used, either.
    match time {
        Some(Ok(time)) => server.record_handshake_time(answered, time, sent),
        // Any other reason is treated the same: a number can be drawn with each connected node.
        Some(Err(_)) | None => server.on_time_refused(answered),
    }
    // Only now: a node without a vote is not near, even if it answers fast.
    if server.abstains_for(abstention, answered).is_none() {
        server.answered(sent, answered);
    }
    let brings_wakeups = has_pushes && !connections.listens_apart();
    let live =
        Arc::new(LiveConnection::new(scripts, brings_wakeups, abstention, Arc::clone(server), environment.clone()));
    live.needed.record(&refusals, &environment.namespace);
    Ok((Arc::clone(&live), IoTask::new(live, connection, Verification::new(doubt, is_tracking))))
}

/// Returns the `identity` of a server at its place: `located` by Sentinels, or a member of a cluster. Whatever its settings are, such a
/// server is not durable: the next one at its place may be a replica that has the same marker and not the same data.
fn in_office(identity: Identity, located: Option<&Located>, is_member: bool) -> Identity {
    let is_durable = identity.is_durable && located.is_none() && !is_member;
    Identity { is_durable, ..identity.in_office_for(located.and_then(|located| located.since)) }
}

/// Returns the channels of a member of a cluster. If the member has no id, they are the channels of any server, and each wake-up comes from
/// all members.
///
/// # Errors
/// [`NodeError::Refused`] if the user may not query the id: other users may, and would publish on channels to which this one does not
/// subscribe.
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

/// Builds the queries for the scripts with these digests.
fn exist(digests: &[String]) -> Pipeline {
    let mut pipeline = redis::pipe();
    for digests in digests.chunks(MOST_DIGESTS) {
        pipeline.cmd("SCRIPT").arg("EXISTS").arg(digests);
    }
    pipeline
}

/// Returns for each of `number` scripts if the server stores it. If the server does not say so, all of them are loaded.
///
/// # Errors
/// [`NodeError::Refused`] if the server requires a login, because it would close the connection after a long script. Also if it is still
/// loading its data: the end of that would fall between the next queries, and a receipt would be replaced by a connection that fails.
fn stored(answers: Vec<Value>, number: usize) -> Result<Vec<bool>, NodeError> {
    let mut stored = Vec::with_capacity(number);
    for answer in answers {
        match answer.extract_error() {
            Err(error) => {
                let is_stale_replica = error.code() == Some("MASTERDOWN");
                let refused = refused(&error);
                if error.code() == Some("NOAUTH") || refused.is_transient() && !is_stale_replica {
                    return Err(refused);
                }
            }
            Ok(answer) => stored.extend(redis::from_redis_value::<Vec<bool>>(answer).unwrap_or_default()),
        }
    }
    Ok(if stored.len() == number { stored } else { vec![false; number] })
}

/// Builds the queries, in the order in which [`prepare`] reads the replies.
fn questions(channels: &Channels, is_stored: &[bool], environment: &Environment, server: &ServerFacts) -> Pipeline {
    let mut pipeline = redis::pipe();
    for ((_, source), _) in Scripts::SOURCES.iter().zip(is_stored).filter(|(_, is_stored)| !**is_stored) {
        pipeline.cmd("SCRIPT").arg("LOAD").arg(&*channels.in_script(source));
    }
    let name = client_name(&environment.manager.to_string(), &environment.label);
    pipeline.cmd("CLIENT").arg("SETNAME").arg(name);
    if server.is_distrusted() {
        // No key is ever tracked: the only message is that data was discarded (`verification`). RESP2 delivers no messages.
        pipeline.cmd("CLIENT").arg("TRACKING").arg("ON").arg("OPTIN");
    }
    pipeline.cmd("INFO");
    pipeline.cmd("CONFIG").arg("GET").arg(PERSISTENCE);
    pipeline.cmd("TIME");
    if has_marker(server) {
        pipeline.add_command(read_marker(&environment.namespace, environment.manager, server.receipt()));
    }
    if environment.replicas.is_some() {
        // Waits for zero replicas, to check the permission. A refusal later would come after the lock was taken.
        pipeline.cmd("WAIT").arg(0).arg(1);
    }
    needed::add_questions(&mut pipeline, &environment.namespace);
    pipeline
}

/// Returns `true` if the connection keeps a marker in the data of the server. In a cluster, the key would move with its slot.
fn has_marker(server: &ServerFacts) -> bool {
    server.has_marker() && !server.is_member()
}

/// Returns the replies, one for each query. The connection is driven from here, because it has no task yet.
pub(super) async fn ask(
    Connection { commands, driver, control }: &mut Connection,
    questions: &Pipeline,
) -> Result<Vec<Value>, NodeError> {
    let mut request = pin!(commands.send_packed_commands(questions, 0, questions.len()));
    let answers = poll_fn(|cx| {
        let is_over = driver.as_mut().poll(cx).is_ready();
        match request.as_mut().poll(cx) {
            // A broken connection is useless, even if its replies are here: the I/O task would poll a driver that has ended.
            Poll::Pending | Poll::Ready(Ok(_)) if is_over => Poll::Ready(Err(NodeError::Disconnected)),
            answers => answers.map_err(|error| refused(&error)),
        }
    });
    let answers = answers.await?;
    control.received.on_complete();
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

/// Returns the scripts with these digests. If the server does not store them, or does not run them by their digests, they are sent with each
/// command.
///
/// # Errors
/// The error of `SCRIPT LOAD`, if it is transient or the scripts cannot be sent with each command either.
fn scripts(
    channels: Channels,
    digests: Vec<Result<String, NodeError>>,
    refusals: &[Refusal],
) -> Result<Scripts, NodeError> {
    let mut digests = digests.into_iter();
    let is_run_by_source = !needed::refuses(refusals, "EVAL");
    match Scripts::loaded(channels.clone(), || digests.next().unwrap_or(Err(NodeError::Disconnected))) {
        Ok(scripts) if !is_run_by_source || !needed::refuses(refusals, "EVALSHA") => Ok(scripts),
        Err(error) if !is_run_by_source || error.is_transient() => Err(error),
        _ => Ok(Scripts::unloaded(channels)),
    }
}

/// Returns the digest in a reply to `SCRIPT LOAD`.
fn digest(answer: Option<Value>) -> Result<String, NodeError> {
    match answer.map(Value::extract_error) {
        Some(Ok(value)) => redis::from_redis_value(value)
            .map_err(|_| NodeError::Refused("something else than a digest to SCRIPT LOAD".into())),
        Some(Err(error)) => Err(refused(&error)),
        None => Err(NodeError::Disconnected),
    }
}

/// Returns the reply to a query that a server may refuse.
fn permitted<T: FromRedisValue>(answer: Option<Value>) -> Option<T> {
    redis::from_redis_value(answer?.extract_error().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::redis::cluster::address::MemberAddress;
    use std::time::Duration;

    #[test]
    fn servers_of_sentinels_and_clusters_are_never_durable() {
        let at = MemberAddress::new("10.0.0.1", 6379, "");
        let located = Located { at, since: Some(Duration::from_secs(1)), epoch: 0 };
        let info =
            Info::parse("run_id:1\r\nuptime_in_seconds:9\r\nrole:master\r\naof_enabled:1\r\nmaster_replid2:0000\r\n");
        let settings = HashMap::from([("appendfsync".to_owned(), "always".to_owned())]);
        for (located, is_member, expected) in
            [(None, false, true), (Some(&located), false, false), (None, true, false), (Some(&located), true, false)]
        {
            let identity = info.identity(&settings).unwrap();
            assert!(identity.is_durable, "by its settings");
            let identity = in_office(identity, located, is_member);
            assert_eq!(identity.is_durable, expected, "{located:?}, member: {is_member}");
        }
    }
}
