//! What can go wrong, and what the caller does next.
//!
//! Errors are values: they name keys, nodes and durations, and hold nothing that could be secret. Where an error is
//! decided stands elsewhere; how a function's own return type carries one is [`FromLockError`].

mod from_lock_error;
#[cfg(feature = "tonic")]
mod grpc_status;
mod held_lock;
#[cfg(feature = "axum")]
mod http_response;
mod lock_error;
mod lock_holder;
mod loss;
mod node_error;
#[cfg(any(feature = "axum", feature = "tonic"))]
mod outward;
mod refusal;
mod retry_after;
mod shown;
mod source_line;
mod told;

pub use self::from_lock_error::FromLockError;
pub use self::held_lock::HeldLock;
pub(crate) use self::held_lock::{OrderStep, Why};
pub use self::lock_error::LockError;
pub use self::lock_holder::LockHolder;
pub use self::loss::LossCause;
pub use self::node_error::{ErrorReply, NodeError, NodeFailure};
pub use self::source_line::SourceLine;
