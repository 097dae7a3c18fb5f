//! Marker types of requests and detached locks: with or without a fencing token.

/// Marker without a fencing token: the guard is a [`LockGuard`](crate::LockGuard).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfenced {}

/// Marker with a fencing token: the guard is a [`FencedGuard`](crate::FencedGuard).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fenced {}
