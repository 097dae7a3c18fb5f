//! Counters: calls by call site, and commands by node.
//!
//! The counters are atomics; no mutex is taken. The meaning of an event is documented where it is counted. The manager makes
//! [`Stats`](crate::admin::Stats) of these counters.

mod histogram;
#[cfg(feature = "testing")]
mod journal;
mod node_counters;
mod node_stats;
mod site_counters;
mod site_stats;
mod sites;

pub use self::histogram::Histogram;
#[cfg(feature = "testing")]
pub(crate) use self::journal::{CallEntry, CallLog, Journal, Stays};
#[cfg(feature = "testing")]
pub use self::journal::{LogEntry, LogEvent};
pub(crate) use self::node_counters::NodeCounters;
pub use self::node_stats::NodeStats;
pub(crate) use self::site_counters::Failure;
pub use self::site_stats::{LockSite, SiteStats};
pub(crate) use self::sites::{Known, SiteId, Sites};
