//! Free loopback ports that stay free while a server is down.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};

/// Lowest port. The range lies below the ephemeral ports of Linux (from 32768) and macOS (from 49152).
/// Otherwise, a client could use the port of a killed server at the moment of its restart.
const FIRST: u16 = 10_000;
const COUNT: u16 = 22_000;

/// Next port. Parallel test processes start at different ports. Each counts upwards, so it does not reuse a port soon.
static NEXT: LazyLock<AtomicU16> = LazyLock::new(|| {
    let random = RandomState::new().hash_one(std::process::id());
    AtomicU16::new(u16::try_from(random % u64::from(COUNT)).unwrap_or_default())
});

/// Returns an unused port. Another process may still take it first: the caller must be ready to ask again.
pub(crate) fn free() -> u16 {
    (0..COUNT)
        .map(|_| FIRST + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT)
        .find(|&port| TcpListener::bind(loopback(port)).is_ok())
        .expect("no free port on 127.0.0.1")
}

/// Returns `127.0.0.1:port`.
pub(crate) fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_in_use_is_skipped() {
        let first = free();
        let _taken = TcpListener::bind(loopback(first)).unwrap();
        NEXT.store(first - FIRST, Ordering::Relaxed);
        assert_ne!(free(), first);
    }
}
