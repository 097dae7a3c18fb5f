//! What the nodes say of one key, for people: who has it, who they are, for how much longer, and who waits.
//!
//! Here belong the types that say so, and their texts. Asking does not: each kind of node says what it has, and
//! `manager::inspect` asks all of them.

mod break_report;
mod clients;
mod holder;
mod lock_list;
mod node_inspection;
mod owner;
mod verdict;

pub use self::break_report::{BreakOutcome, BreakReport, NodeBreak, StandIn};
pub(crate) use self::clients::{Clients, client_name};
pub use self::holder::Holder;
pub use self::lock_list::LockList;
pub(crate) use self::lock_list::Names;
pub use self::node_inspection::NodeInspection;
pub use self::owner::Owner;
pub use self::verdict::Inspection;

/// How many of those who wait are told of by name. Smaller, a queue of some length cannot be read; larger, the answer about
/// a queue of thousands costs the connection that the locks use too.
pub(crate) const MOST_WAITERS: usize = 100;

/// How many keys a node is asked for together. Smaller, a look at many takes more round trips; larger, it holds up the locks that use
/// the same connection.
pub(crate) const AT_A_TIME: usize = 500;

/// How much of a value that is no token is shown, in bytes. Smaller, the tokens of other libraries cannot be told apart;
/// larger, a value that is no lock at all fills the screen.
pub(crate) const LONGEST_VALUE: usize = 256;
