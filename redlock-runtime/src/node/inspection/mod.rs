//! Answers of the nodes about one key, for people: the holder, its process, the remaining lease and the waiters.
//!
//! This module has the types and their texts. It does no I/O: each kind of node reads its own data, and `manager::inspect` asks
//! all nodes.

mod break_report;
mod clients;
mod holder;
mod lock_list;
mod node_inspection;
mod owner;
mod verdict;

pub use self::break_report::{BreakOutcome, BreakReport, NodeBreak, PlaceholderOwner};
pub(crate) use self::clients::{Clients, client_name};
pub use self::holder::Holder;
pub use self::lock_list::LockList;
pub(crate) use self::lock_list::Names;
pub use self::node_inspection::NodeInspection;
pub use self::owner::Owner;
pub use self::verdict::Inspection;

/// Number of waiters that an inspection lists: 100. Too small: a queue of some length cannot be read. Too large: the answer about a
/// queue of thousands delays the locks on the same connection.
pub(crate) const MOST_WAITERS: usize = 100;

/// Number of keys in one question to a node: 500. Too small: many keys take more round trips. Too large: a question delays the locks on
/// the same connection.
pub(crate) const AT_A_TIME: usize = 500;

/// Bytes of a foreign value that are shown: 256. Too small: the tokens of other libraries cannot be told apart. Too large: a value that is
/// not a lock fills the screen.
pub(crate) const LONGEST_VALUE: usize = 256;
