//! Distributed locks on Redis for async Rust.
