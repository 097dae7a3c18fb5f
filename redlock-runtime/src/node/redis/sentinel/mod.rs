//! A master that Sentinels monitor: they report its address, and the replica that has taken its place.
//!
//! For each new connection, the Sentinels are queried for the master ([`sentinels`]). The configuration that more than half of them report
//! is used ([`view`]): a Sentinel that is cut off from the others still names the old master, and a malicious one could name any address.
//! While a connection is open, messages of the Sentinels announce a new master ([`watch`](mod@watch)). The connection to the old master
//! then ends, even if it is intact.

mod sentinels;
mod url;
mod view;
mod watch;

pub(crate) use self::sentinels::Sentinels;
pub(crate) use self::url::{endpoint, is_watched};
pub(super) use self::watch::watch;
