//! What the nodes of a manager are like, as far as locks depend on it: the types that say so, and their texts.
//!
//! Asking does not belong here: each kind of node describes itself, and `manager::check` asks all of them and tries a lock
//! at each. A node that has an `error` does not count; everything else is a risk, which a warning names.

mod capabilities;
mod check_report;
mod clock_offset;
mod deployment;
mod node_report;
mod persistence;
mod refusal;
mod remedy;
mod replication;

pub use self::capabilities::Capabilities;
pub use self::check_report::CheckReport;
pub use self::clock_offset::ClockOffset;
pub(crate) use self::deployment::Deployment;
pub(crate) use self::node_report::CLUSTER_MEMBER;
pub use self::node_report::{ClusterMember, NodeReport};
pub use self::persistence::Persistence;
pub use self::refusal::Refusal;
pub(crate) use self::refusal::{Purpose, Refused, text};
pub(crate) use self::remedy::{explained, may_pass};
pub use self::replication::Replication;
