//! Pending releases: every last command about a token is kept until its node has settled it.
//!
//! `Drop` can send a release but cannot wait for the answer. The answer still matters: a server may have lost its
//! scripts, and a connection may break with the release on it. So each node has a [`collector`] for
//! releases that the first answer has not settled, and a [`ReleaseLedger`] that counts unanswered commands.
//!
//! `protocol::last_command` decides if an answer settles a release; this module sends, waits and counts.

mod collector;
mod leaving_tokens;
mod owed;
mod pending_release;
mod release_ledger;

pub(crate) use self::collector::Collector;
pub(crate) use self::pending_release::PendingRelease;
pub(crate) use self::release_ledger::ReleaseLedger;
