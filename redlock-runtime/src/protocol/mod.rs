//! The protocol: what is decided about locks, without sockets, clocks, tasks or wakers.
//!
//! Two state machines make it up, and both are driven from outside: the client's half is [`candidate`], whose head says how
//! to drive it and why it is safe; the node's half is [`node_state`], which does what the scripts of `node/redis` do. What
//! travels between them is in [`command`] and [`wakeup`]; what they count and calculate in [`quorum`] and [`lease`]; the
//! times in [`timing`]; the rules that look as if one could do without them in [`rules`].
//!
//! Nothing here depends on tokio or reads a clock: the time comes in with every event. `docs/protocol.md` has the protocol
//! on one page.

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
