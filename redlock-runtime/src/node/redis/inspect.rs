//! Inspection of keys at a server, and of the processes that own the tokens there.
//!
//! The keys are read on the connection for locks, by a short script with a bounded reply. The list of clients can be long. It is therefore
//! read by an `admin_connection`, and only if there is a token to look for.

use super::acl_hint::explained;
use super::admin_connection::AdminConnection;
use super::channels::Channels;
use super::connections::Connections;
use super::endpoint::Endpoint;
use super::live_connection::LiveConnection;
use super::script::{LETTERS, MEMBER, SHARE};
use super::side_key::{queue_name, register_name};
use crate::error::NodeError;
use crate::lock::class::Class;
use crate::lock::{LockKey, Mode, OwnerToken};
use crate::node::inspection::{AT_A_TIME, Clients, Holder, LONGEST_VALUE, MOST_WAITERS, NodeInspection, Owner};
use crate::protocol::fencing_token::FencingToken;
use crate::text::excerpt;
use redis::Value;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::timeout;

const SCRIPT: &str = include_str!("lua/inspect.lua");

/// Remedy for a user that may lock but may not inspect.
const READS: &str =
    "the user may not read the lock: grant it `+eval +get +pttl +zcard +zrange` on the key and its queue";
const CLIENT_LIST: &str =
    "the user may not list the connected clients: grant it `+client|list` (before Redis 7, `+client`)";

/// Returns the state of `keys` at the server called `label`; with its owners, if they must be `named`. Each step may take up to `patience`.
pub(super) async fn inspect(
    (label, endpoint): (&str, &Endpoint),
    connections: &Connections,
    keys: &[LockKey],
    named: bool,
    patience: Duration,
) -> Vec<NodeInspection> {
    let silent = |error: NodeError| keys.iter().map(|_| NodeInspection::silent(label, error.clone())).collect();
    let live = match connections.live() {
        Ok(live) => live,
        Err(error) => return silent(error),
    };
    let mut looked = Vec::with_capacity(keys.len());
    for keys in keys.chunks(AT_A_TIME) {
        let late = |_| keys.iter().map(|_| NodeInspection::silent(label, NodeError::TimedOut(patience))).collect();
        looked.extend(timeout(patience, inspect_all_keys(label, &live, keys)).await.unwrap_or_else(late));
    }
    if named && looked.iter().any(NodeInspection::has_owners) {
        let managers: BTreeSet<String> = looked.iter().flat_map(NodeInspection::managers).map(str::to_owned).collect();
        let clients = timeout(patience, clients(endpoint, live.channels(), &managers)).await;
        let clients = clients.unwrap_or(Err(NodeError::TimedOut(patience)));
        looked.iter_mut().filter(|node| node.has_owners()).for_each(|node| node.name(&clients));
    }
    looked
}

/// Returns the state of `keys` at the server, queried together.
async fn inspect_all_keys(label: &str, live: &LiveConnection, keys: &[LockKey]) -> Vec<NodeInspection> {
    let looks: Vec<_> = keys.iter().map(|key| look(label, live, key)).collect();
    let mut looked = Vec::with_capacity(looks.len());
    for look in looks {
        looked.push(look.await);
    }
    looked
}

/// Returns the state of `key` at the server. The queries are sent before this returns.
fn look(label: &str, live: &LiveConnection, key: &LockKey) -> impl Future<Output = NodeInspection> + use<> {
    let (key, queue, register) = (key.name(), queue_name(key.name()), register_name(live.namespace(), key.name()));
    let (longest, most, share) = (LONGEST_VALUE.to_string(), MOST_WAITERS.to_string(), SHARE.to_string());
    let state = live.probe(&["EVAL", SCRIPT, "2", key, &queue, &longest, &most, &share]);
    // Queried separately, because a user without fencing may not read it.
    let register = live.probe(&["ZSCORE", &register, MEMBER]);
    let (mut node, abstains_for) = (NodeInspection::of(label), live.abstains_for());
    async move {
        match state.await {
            Ok(state) => describe(&mut node, &state),
            Err(error) => node.error = Some(explained(error, READS)),
        }
        node.fence = register.await.ok().and_then(|score| number(&score));
        node.error = node.error.or(abstains_for.map(NodeError::RecentlyRestarted));
        node
    }
}

/// Returns the token that holds the lock of `key`. The query is sent before this returns.
pub(super) fn holder_of(live: &LiveConnection, key: &LockKey) -> impl Future<Output = Option<OwnerToken>> + use<> {
    // The mark is included. The script needs no permission that locks do not need.
    let (longest, share) = ((OwnerToken::LEN + 1).to_string(), SHARE.to_string());
    let state = live.probe(&["EVAL", SCRIPT, "2", key.name(), &queue_name(key.name()), &longest, "1", &share]);
    async {
        let Value::Array(state) = state.await.ok()? else { return None };
        let Value::BulkString(text) = state.first()? else { return None };
        stored(text).filter(|(_, class)| *class == Class::Exclusive).map(|(token, _)| token)
    }
}

/// Writes the reply of the script into `node`.
fn describe(node: &mut NodeInspection, state: &Value) {
    let Value::Array(state) = state else { return unintelligible(node, state) };
    let [value, Value::Int(pttl), Value::Int(waiting), waiters, holders] = state.as_slice() else {
        return unintelligible(node, &Value::Array(state.clone()));
    };
    let (Some(waiters), Some(holders)) = (entries_by_class(waiters), entries_by_class(holders)) else {
        return unintelligible(node, &Value::Array(state.clone()));
    };
    node.holder = holder(value, &holders, *pttl);
    node.remaining = u64::try_from(*pttl).ok().map(Duration::from_millis).filter(|_| node.holder != Holder::Nobody);
    node.waiter_count = u64::try_from(*waiting).unwrap_or(0);
    node.waiters = owners(&waiters);
    node.waiters.sort_by_key(|owner| owner.token);
    node.waiters.truncate(MOST_WAITERS);
}

/// Returns the holders or the waiters of a lock, each with its class. Returns `None` if the value has another format.
fn entries_by_class(lists: &Value) -> Option<Vec<(Class, &Value)>> {
    const CLASSES: [Class; 4] = [Class::Exclusive, Class::Shared, Class::IntentExclusive, Class::IntentShared];
    let Value::Array(lists) = lists else { return None };
    let mut all = Vec::new();
    for (class, list) in CLASSES.into_iter().zip(lists) {
        let Value::Array(list) = list else { return None };
        all.extend(list.iter().map(|value| (class, value)));
    }
    Some(all)
}

fn owners(values: &[(Class, &Value)]) -> Vec<Owner> {
    values.iter().filter_map(|(class, value)| Some(Owner::in_class(token(value)?, *class))).collect()
}

fn unintelligible(node: &mut NodeInspection, state: &Value) {
    node.error = Some(NodeError::UnexpectedReply(excerpt(format_args!("{state:?}")).into()));
}

/// Returns the holder for a value with this `pttl`, or for a set of tokens that share the lock.
fn holder(value: &Value, holders: &[(Class, &Value)], pttl: i64) -> Holder {
    let Value::BulkString(text) = value else {
        return match value {
            Value::Nil => Holder::Nobody,
            Value::Int(1) if pttl >= 0 => sharing(holders),
            _ => Holder::Data,
        };
    };
    match stored(text) {
        _ if pttl == -1 => Holder::Data,
        Some((token, Class::Exclusive)) => Holder::Owner(Owner::of(token, Mode::Exclusive)),
        Some((token, class)) => Holder::Shared { owners: vec![Owner::in_class(token, class)] },
        // The script returns at most this length, but the server may not.
        None => Holder::Foreign { value: String::from_utf8_lossy(text.get(..LONGEST_VALUE).unwrap_or(text)).into() },
    }
}

/// Returns the holder for a set with these members. A lock whose shares are all over is free.
fn sharing(holders: &[(Class, &Value)]) -> Holder {
    let mut owners = owners(holders);
    owners.sort_by_key(|owner| owner.token);
    match owners.len() {
        0 if holders.is_empty() => Holder::Nobody,
        0 => Holder::Data,
        _ => Holder::Shared { owners },
    }
}

/// Returns the token in a value, with or without the mark for waiters or the letter of its class.
pub(super) fn token(value: &Value) -> Option<OwnerToken> {
    let Value::BulkString(text) = value else { return None };
    stored(text).map(|(token, _)| token)
}

/// Returns the token in the text of a key, and the class in which it holds the key.
fn stored(text: &[u8]) -> Option<(OwnerToken, Class)> {
    let text = str::from_utf8(text).ok()?;
    let lettered = LETTERS.iter().find_map(|(letter, class)| Some((text.strip_suffix(*letter)?, *class)));
    let (token, class) = lettered.unwrap_or((text.strip_suffix('+').unwrap_or(text), Class::Exclusive));
    Some((OwnerToken::parse(token)?, class))
}

/// Returns the first token with the number in a register.
fn number(score: &Value) -> Option<FencingToken> {
    let number = super::wording::score(score)?;
    Some(FencingToken::first(u64::try_from(number).ok()?))
}

/// Returns the clients of the server, and the `managers` that subscribe there: some connections have no name.
///
/// # Errors
/// If the server refuses, cannot be reached again, or has more clients than the limit.
async fn clients(endpoint: &Endpoint, names: &Channels, managers: &BTreeSet<String>) -> Result<Clients, NodeError> {
    let mut questions = redis::pipe();
    questions.cmd("CLIENT").arg("LIST").cmd("PUBSUB").arg("NUMSUB");
    for manager in managers {
        questions.arg(names.of(manager));
    }
    let mut answers = AdminConnection::begin(endpoint).await?.ask(&questions).await?.into_iter();
    let list = answers.next().unwrap_or(Ok(Value::Nil)).map_err(|error| explained(error, CLIENT_LIST))?;
    let list: String =
        redis::from_redis_value(list).map_err(|_| NodeError::UnexpectedReply("no list to CLIENT LIST".into()))?;
    // Without this permission, only the names of the clients are known.
    let channels = answers.next().and_then(Result::ok).and_then(|answer| redis::from_redis_value(answer).ok());
    let channels: Vec<(String, u64)> = channels.unwrap_or_default();
    let listening = managers.iter().filter(|manager| {
        let channel = names.of(manager);
        channels.iter().any(|(name, listeners)| *name == channel && *listeners > 0)
    });
    Ok(Clients::parse(&list).listening(listening.cloned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::owner_token::ManagerId;
    use crate::time::token_clock::TokenTime;

    #[test]
    fn stored_value_is_classified_as_holder_foreign_or_data() {
        let owner = OwnerToken::new(ManagerId::numbered(7), TokenTime::new(1, 0));
        let text = |text: &str| Value::BulkString(text.into());
        let ours = || Holder::Owner(Owner::of(owner, Mode::Exclusive));
        let shared = || Holder::Shared { owners: vec![Owner::of(owner, Mode::Shared)] };
        let foreign = |value: &str| Holder::Foreign { value: value.into() };
        let (member, strange) = (text(owner.as_str()), text("a member"));
        let (none, one, strange) = (vec![], vec![(Class::Shared, &member)], vec![(Class::Shared, &strange)]);
        let sets = [
            (&none, 1000, Holder::Nobody),
            (&one, 1000, shared()),
            (&one, -1, Holder::Data),
            (&strange, 1000, Holder::Data),
        ];
        for (readers, pttl, expected) in sets {
            assert_eq!(holder(&Value::Int(1), readers, pttl), expected, "{readers:?} {pttl}");
        }
        let table = [
            (Value::Nil, -2, Holder::Nobody),
            (text(owner.as_str()), 1000, ours()),
            (text(&format!("{owner}+")), 1000, ours()),
            (text(&format!("{owner}s")), 1000, shared()),
            (text(&format!("{owner}s")), -1, Holder::Data),
            (text(&format!("{owner}x")), 1000, foreign(&format!("{owner}x"))),
            (text("worker-3"), 1000, foreign("worker-3")),
            (text(""), 0, foreign("")),
            (Value::BulkString(vec![0xff, b'a']), 1000, foreign("\u{fffd}a")),
            (text("a document"), -1, Holder::Data),
            (text(owner.as_str()), -1, Holder::Data),
            (Value::Int(0), 1000, Holder::Data),
        ];
        for (value, pttl, expected) in table {
            assert_eq!(holder(&value, &[], pttl), expected, "{value:?} {pttl}");
        }
    }
}
