//! Errors of locks and nodes.
//!
//! Error values contain keys, node addresses and durations, and no secrets. [`FromLockError`] converts a [`LockError`] into the
//! return type of an annotated function.

#[cfg(feature = "actix-web")]
mod actix_response;
mod debug_fmt;
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
#[cfg(any(feature = "actix-web", feature = "axum", feature = "tonic"))]
mod public_error;
mod redacted;
mod refusal;
mod retry_after;
mod source_line;

pub use self::from_lock_error::FromLockError;
pub use self::held_lock::HeldLock;
pub(crate) use self::held_lock::{OrderStep, Why};
pub use self::lock_error::LockError;
pub use self::lock_holder::LockHolder;
pub use self::loss::LossCause;
pub use self::node_error::{ErrorReply, NodeError, NodeFailure};
pub use self::source_line::SourceLine;
