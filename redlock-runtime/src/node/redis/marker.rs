//! The marker in the data of a server, and the receipts that connections leave there; see [`Marker`].

use crate::lock::owner_token::ManagerId;
use crate::lock::reserved::REGISTER;
use crate::node::server_identity::Marker;
use redis::{Cmd, Value};
use std::time::Duration;

const SCRIPT: &str = include_str!("lua/marker.lua");

/// Maximum number of receipts that a server keeps. Too small: a process whose receipt is gone ignores the votes of a durable server after a
/// restart, for up to the longest lease. Too large: memory of the server, about 100 bytes for each.
const MAX_RECEIPTS: u32 = 10_000;

/// Reads the marker of the namespace, and replaces the receipt `last` of the manager by a new one.
pub(super) fn read_marker(namespace: &str, manager: ManagerId, last: Option<u64>) -> Cmd {
    let [marker, receipts] = ["server", "receipts"].map(|name| [namespace, REGISTER, name].concat());
    let mut command = redis::cmd("EVAL");
    command.arg(SCRIPT).arg(2).arg(marker).arg(receipts);
    command.arg(format!("{:016x}", fastrand::u64(..))).arg(manager.to_string());
    command.arg(last.unwrap_or_default()).arg(MAX_RECEIPTS);
    command
}

/// Reads the reply to [`read_marker`] with `last`. Returns `None` for an error, for example if the user may not use the keys or the server
/// has no memory left.
pub(super) fn marker(reply: Value, last: Option<u64>) -> Option<Marker> {
    let (id, age, receipt, found): (String, i64, u64, bool) =
        redis::from_redis_value(reply.extract_error().ok()?).ok()?;
    let age = u64::try_from(age).ok().map(Duration::from_millis);
    Some(Marker { id: id.into(), age, receipt, follows: last.filter(|_| found) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marker_is_parsed_with_and_without_age_and_receipt() {
        let reply = |age, found| {
            Value::Array(vec![Value::SimpleString("2f0c".into()), Value::Int(age), Value::Int(7), Value::Int(found)])
        };
        let expected = |age, follows| Some(Marker { id: "2f0c".into(), age, receipt: 7, follows });
        assert_eq!(marker(reply(1500, 1), Some(6)), expected(Some(Duration::from_millis(1500)), Some(6)));
        assert_eq!(marker(reply(-1, 0), Some(6)), expected(None, None));
        assert_eq!(marker(Value::Nil, Some(6)), None);
    }
}
