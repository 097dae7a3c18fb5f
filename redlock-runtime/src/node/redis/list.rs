//! Search for the keys of a server that are locks of this library.
//!
//! `SCAN` returns one page of names at a time: a server with millions of keys serves others in between. The name does not show if a key is
//! a lock. The start of each text is therefore read, and compared with the format of a token. From each sorted set, the first member is
//! read that may share a lock; a queue has no such member. The admission lock of a lock with permits is internal, and skipped.

use super::acl_hint::explained;
use super::admin_connection::AdminConnection;
use super::endpoint::Endpoint;
use super::inspect::token;
use super::script::SHARE;
use crate::error::NodeError;
use crate::lock::OwnerToken;
use crate::lock::reserved::is_reserved;
use crate::node::inspection::Names;
use redis::Value;
use std::time::Duration;
use tokio::time::Instant;

/// Number of keys that a server examines for one page. Too small: more round trips. Too large: other clients wait longer for their turn.
const PAGE: usize = 1000;

/// Remedy for a user that may lock but may not list.
const READS: &str = "the user may not list keys: grant it `+scan +getrange +zrange` on all keys that may be locks";

/// Type of the key of a lock.
#[derive(Clone, Copy)]
enum Kind {
    /// The token of an exclusive holder.
    Text,
    /// The tokens that share the lock.
    Set,
}

/// Returns at most `most` names of locks at `endpoint` that match `pattern`, as far as they are found `within` this time.
///
/// # Errors
/// If the server cannot be reached, or refuses.
pub(super) async fn list(
    endpoint: &Endpoint,
    pattern: &str,
    most: usize,
    within: Duration,
) -> Result<Names, NodeError> {
    let begun = Instant::now();
    let mut admin_connection = AdminConnection::begin(endpoint).await?;
    admin_connection.enable_no_touch().await?;
    let mut names = Names::default();
    for kind in [Kind::Text, Kind::Set] {
        let mut cursor = "0".to_owned();
        loop {
            let (next, page) = page(&mut admin_connection, (&cursor, kind), pattern).await?;
            names.found.extend(locks(&mut admin_connection, kind, page).await?);
            let has_room = names.found.len() <= most;
            if next == "0" && has_room {
                break;
            } else if !has_room || begun.elapsed() >= within {
                return Ok(names);
            }
            cursor = next;
        }
    }
    names.are_all = true;
    Ok(names)
}

/// Returns the names of this kind on the page at `cursor`, and the cursor of the next page.
async fn page(
    admin_connection: &mut AdminConnection,
    (cursor, kind): (&str, Kind),
    pattern: &str,
) -> Result<(String, Vec<String>), NodeError> {
    let kind = match kind {
        Kind::Text => "string",
        Kind::Set => "zset",
    };
    let mut scan = redis::pipe();
    scan.cmd("SCAN").arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(PAGE).arg("TYPE").arg(kind);
    let answer =
        admin_connection.ask(&scan).await?.pop().unwrap_or(Ok(Value::Nil)).map_err(|error| explained(error, READS))?;
    let page: Option<(String, Vec<Value>)> = redis::from_redis_value(answer).ok();
    let (next, names) = page.ok_or_else(|| NodeError::UnexpectedReply("no page to SCAN".into()))?;
    // A name that is not text does not belong to a lock of this library.
    let names = names.into_iter().filter_map(|name| redis::from_redis_value(name).ok());
    Ok((next, names.filter(|name: &String| !is_reserved(name)).collect()))
}

/// Returns the locks among `names`.
async fn locks(
    admin_connection: &mut AdminConnection,
    kind: Kind,
    names: Vec<String>,
) -> Result<Vec<Box<str>>, NodeError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut read = redis::pipe();
    for name in &names {
        match kind {
            Kind::Text => read.cmd("GETRANGE").arg(name).arg(0).arg(OwnerToken::LEN),
            Kind::Set => read.cmd("ZRANGE").arg(name).arg(SHARE).arg("+inf").arg("BYSCORE").arg("LIMIT").arg(0).arg(1),
        };
    }
    let mut found = Vec::new();
    for (name, value) in names.into_iter().zip(admin_connection.ask(&read).await?) {
        match value.map(first) {
            Ok(value) if token(&value).is_some() => found.push(name.into()),
            // The key has changed in the meantime.
            Ok(_) => {}
            Err(NodeError::Refused(answer)) if answer.starts_with("WRONGTYPE") => {}
            Err(error) => return Err(explained(error, READS)),
        }
    }
    Ok(found)
}

/// Returns a text, or the first element of an array.
fn first(value: Value) -> Value {
    match value {
        Value::Array(members) => members.into_iter().next().unwrap_or(Value::Nil),
        text => text,
    }
}
