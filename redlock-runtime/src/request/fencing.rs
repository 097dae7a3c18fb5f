//! Marker types of requests and detached locks: with or without a fencing token.

/// Marks a request or a detached lock without a fencing token. Its guard is a [`LockGuard`](crate::LockGuard).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfenced {}

/// Marks a request or a detached lock with a fencing token. Its guard is a [`FencedGuard`](crate::FencedGuard).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fenced {}
