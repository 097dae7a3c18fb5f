//! Whether a request or a detached lock asks for a fencing token, as types.

/// Without a fencing token: the guard is a [`LockGuard`](crate::LockGuard).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfenced {}

/// With a fencing token: the guard is a [`FencedGuard`](crate::FencedGuard).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fenced {}
