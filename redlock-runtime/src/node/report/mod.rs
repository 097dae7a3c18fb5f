//! Reports about nodes: the usability of each node for locks, and the risks that may break locks later.
//!
//! This module has the types and their texts. It does no I/O: each kind of node describes itself, and `manager::check` asks all nodes and
//! tries a lock at each. A node with an `error` has no vote. Every other problem is a risk, which a warning names.

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
pub(crate) use self::remedy::{explained, may_pass, remedy_for_reply};
pub use self::replication::Replication;
