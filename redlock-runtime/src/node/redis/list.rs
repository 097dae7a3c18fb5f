//! Which keys of a server are locks of this library.
//!
//! A page of names at a time, by `SCAN`: a server with millions of keys serves others in between. A name says nothing of
//! locks, so that the beginning of each text is read, which is a token or is not; then of each sorted set the first that may share
//! a lock. In a queue there is none. The turnstile of a lock with permits is one that nobody asked for, and left out.

use super::endpoint::Endpoint;
use super::errand::Errand;
use super::explained::explained;
use super::inspect::token;
use super::script::SHARE;
use crate::error::NodeError;
use crate::lock::OwnerToken;
use crate::lock::reserved::is_reserved;
use crate::node::inspection::Names;
use redis::Value;
use std::time::Duration;
use tokio::time::Instant;

/// How many keys a server looks at for one page. Smaller, more round trips; larger, the others wait longer for their turn.
const PAGE: usize = 1000;

/// What a user lacks who may lock and may not list.
const READS: &str = "the user may not list keys: grant it `+scan +getrange +zrange` on all keys that may be locks";

/// What a lock may be.
#[derive(Clone, Copy)]
enum Kind {
    /// The token that has it alone.
    Text,
    /// The tokens that share it.
    Set,
}

/// The names of all locks at `endpoint` that match `pattern`, at most so many, as far as they are found `within` that time.
///
/// # Errors
/// When the server cannot be reached, or refuses.
pub(super) async fn list(
    endpoint: &Endpoint,
    pattern: &str,
    most: usize,
    within: Duration,
) -> Result<Names, NodeError> {
    let begun = Instant::now();
    let mut errand = Errand::begin(endpoint).await?;
    errand.leaves_no_trace().await?;
    let mut names = Names::default();
    for kind in [Kind::Text, Kind::Set] {
        let mut cursor = "0".to_owned();
        loop {
            let (next, page) = page(&mut errand, (&cursor, kind), pattern).await?;
            names.found.extend(locks(&mut errand, kind, page).await?);
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

/// The names of that kind on the page behind `cursor`, and the cursor of the next one.
async fn page(
    errand: &mut Errand,
    (cursor, kind): (&str, Kind),
    pattern: &str,
) -> Result<(String, Vec<String>), NodeError> {
    let kind = match kind {
        Kind::Text => "string",
        Kind::Set => "zset",
    };
    let mut scan = redis::pipe();
    scan.cmd("SCAN").arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(PAGE).arg("TYPE").arg(kind);
    let answer = errand.ask(&scan).await?.pop().unwrap_or(Ok(Value::Nil)).map_err(|error| explained(error, READS))?;
    let page: Option<(String, Vec<Value>)> = redis::from_redis_value(answer).ok();
    let (next, names) = page.ok_or_else(|| NodeError::UnexpectedReply("no page to SCAN".into()))?;
    // A name that is no text is that of no lock of ours.
    let names = names.into_iter().filter_map(|name| redis::from_redis_value(name).ok());
    Ok((next, names.filter(|name: &String| !is_reserved(name)).collect()))
}

/// Those of `names` that are locks.
async fn locks(errand: &mut Errand, kind: Kind, names: Vec<String>) -> Result<Vec<Box<str>>, NodeError> {
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
    for (name, value) in names.into_iter().zip(errand.ask(&read).await?) {
        match value.map(first) {
            Ok(value) if token(&value).is_some() => found.push(name.into()),
            // It is something else by now.
            Ok(_) => {}
            Err(NodeError::Refused(answer)) if answer.starts_with("WRONGTYPE") => {}
            Err(error) => return Err(explained(error, READS)),
        }
    }
    Ok(found)
}

/// A text, or the first of an array.
fn first(value: Value) -> Value {
    match value {
        Value::Array(members) => members.into_iter().next().unwrap_or(Value::Nil),
        text => text,
    }
}
