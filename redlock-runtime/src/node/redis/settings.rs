//! Comparison of the settings of all processes, and check that a durable server still is durable.
//!
//! Both happen together with the count of pattern subscribers (`pattern_subscribers`), on a live connection. One trigger is a command that
//! takes or renews a lock, if the last comparison was `COMPARED_EVERY` ago (`node::server_facts`). The other is a report on the server. An
//! idle process sends nothing. One task per connection makes all comparisons ([`watch`]). Two at once, or one that is dropped before its
//! answer arrives, would leave a receipt that the process does not know.
//!
//! 1. **Settings.** The line of this process (`node::shared_settings`) goes into a sorted set beside the marker, and the lines of other
//!    processes come back. A line lives for a minute, and the set as well.
//! 2. **Durability.** A server that wrote every command to disk when the connection was made may have other settings now. It has lost
//!    commands after a restart then, even if its data has the marker and the last receipt. If it still is durable, the connection leaves a
//!    new receipt: an earlier copy of the data lacks it.

use super::info::Info;
use super::live_connection::LiveConnection;
use super::marker::{marker, read_marker};
use super::pattern_subscribers;
use super::prepare::PERSISTENCE;
use crate::error::NodeError;
use crate::lock::reserved::REGISTER;
use crate::node::shared_settings::OtherSettings;
use redis::Value;
use std::collections::HashMap;
use std::convert::Infallible;

const SCRIPT: &str = include_str!("lua/settings.lua");

/// Lifetime of a line in milliseconds. Too small: processes that seldom take locks do not see each other. Too large: a deploy that is
/// complete is reported for longer.
const LIFETIME: &str = "60000";

/// Maximum number of lines that a server keeps and returns. Too small: lines of another program displace the lines of processes. Too large:
/// a long answer.
const MOST_LINES: &str = "16";

/// Maximum number of bytes of a line in the answer. Too small: a line is cut. Too large: another program fills messages.
const MOST_BYTES: &str = "120";

/// Parts of the answers to a user who lacks a permission, and of a server that lacks a command.
const LACKS: [&str; 3] = ["NOPERM", "can't run this", "unknown command"];

/// Makes the requested comparisons. Ends with the connection.
pub(super) async fn watch(live: &LiveConnection) -> Infallible {
    loop {
        let number = live.comparisons.requested().await;
        let others = compare(live).await;
        live.comparisons.finished(number, others);
    }
}

/// Leaves the settings of this process at the server, and returns the differing settings of other processes.
async fn compare(live: &LiveConnection) -> Vec<OtherSettings> {
    pattern_subscribers::count(live).await;
    check_durability(live).await;
    let server = live.server();
    let Some((ours, before)) = server.settings_to_store() else { return Vec::new() };
    let key = [live.namespace(), REGISTER, "settings"].concat();
    let words = ["EVAL", SCRIPT, "1", &key, &ours, &before, LIFETIME, MOST_LINES, MOST_BYTES];
    let lines = match live.probe(&words).await {
        Ok(lines) => lines,
        Err(NodeError::Refused(answer)) if LACKS.iter().any(|text| answer.contains(text)) => {
            server.on_settings_refused();
            return Vec::new();
        }
        Err(_) => return Vec::new(),
    };
    let lines: Vec<Vec<u8>> = redis::from_redis_value(lines).unwrap_or_default();
    let others: Vec<_> = lines.iter().filter_map(|theirs| OtherSettings::compare(theirs, &ours)).collect();
    server.on_settings_stored(ours, &others);
    others
}

/// Records that the server is not durable any more, if its settings have changed since the connection was made.
async fn check_durability(live: &LiveConnection) {
    if !live.server().is_durable() {
        return;
    }
    let (info, settings) = (live.probe(&["INFO"]), live.probe(&["CONFIG", "GET", PERSISTENCE]));
    let (info, settings) = (info.await, settings.await);
    let is_answered = |answer: &Result<Value, NodeError>| matches!(answer, Ok(_) | Err(NodeError::Refused(_)));
    if !is_answered(&info) || !is_answered(&settings) {
        // The connection has ended, and the next one queries.
        return;
    }
    let info = info.ok().and_then(|info| redis::from_redis_value::<String>(info).ok());
    let settings: Option<HashMap<String, String>> = settings.ok().and_then(|said| redis::from_redis_value(said).ok());
    let identity = info.and_then(|info| Info::parse(&info).identity(&settings.unwrap_or_default()));
    if !identity.is_some_and(|identity| identity.is_durable) {
        live.server().record_not_durable();
        return;
    }
    if let Some(last) = live.server().receipt() {
        let reply = live.probe_with(read_marker(live.namespace(), live.manager(), Some(last))).await;
        if let Some(marker) = reply.ok().and_then(|reply| marker(reply, Some(last))) {
            live.server().on_receipt_stored(marker);
        }
    }
}
