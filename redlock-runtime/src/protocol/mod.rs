//! The lock protocol: every decision about locks, without sockets, clocks, tasks or wakers.
//!
//! Two state machines make up the protocol, and callers drive both from outside:
//!
//! - [`candidate`] is the client's half. Its module docs explain how to drive it and why it is safe.
//! - [`node_state`] is the node's half. It does in memory what the Lua scripts of `node/redis` do on a server.
//!
//! [`command`] and [`wakeup`] define the messages between them. [`quorum`] and [`lease`] count votes and calculate
//! lease ends. [`timing`] holds the durations. [`rules`] lists the rules that look optional and are not.
//!
//! Nothing here depends on tokio or reads a clock: each event carries its time. `docs/protocol.md` describes the whole
//! protocol.

pub(crate) mod candidate;
pub(crate) mod command;
pub(crate) mod fencing_token;
pub(crate) mod hold_options;
pub(crate) mod keeping;
pub(crate) mod last_command;
pub(crate) mod lease;
pub(crate) mod local_budget;
pub(crate) mod node_state;
pub(crate) mod quorum;
pub(crate) mod rules;
pub(crate) mod timing;
pub(crate) mod trial;
pub(crate) mod wakeup;
pub(crate) mod window;
