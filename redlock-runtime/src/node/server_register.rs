//! The register of the servers behind the nodes of one manager: who was last at which address, and which addresses lead
//! to one and the same server.
//!
//! Whether a server that was restarted abstains is decided in `abstention`.

use crate::error::NodeError;
use crate::node::abstention::abstains_until;
use crate::node::server_identity::{Identity, KnownServer};
use crate::protocol::lease;
use crate::request::AfterRestart;
use crate::time::clock::{Clock, Instant};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// What the nodes of one manager find out about their servers.
pub(crate) struct ServerRegister {
    pub(crate) clock: Clock,
    pub(crate) drift_factor: f64,
    after_restart: AfterRestart,
    on_step: OnceLock<OnStep>,
    /// The longest `ttl` that the manager has asked for, in milliseconds: a server may have granted it before it was
    /// restarted.
    longest_lease: AtomicU64,
    /// By address.
    known: Mutex<HashMap<Box<str>, KnownServer>>,
}

/// Is told the address of a server whose clock was set forward, and by how much at the most.
pub(crate) type OnStep = Box<dyn Fn(&str, Duration) + Send + Sync>;

impl ServerRegister {
    pub(crate) fn new(clock: Clock, after_restart: AfterRestart, drift_factor: f64) -> Self {
        let (longest_lease, known) = (AtomicU64::new(0), Mutex::default());
        Self { clock, drift_factor, after_restart, on_step: OnceLock::new(), longest_lease, known }
    }

    /// Says who is told of steps of a server's clock. Only the first call has an effect.
    pub(crate) fn on_step(&self, on_step: OnStep) {
        let _ = self.on_step.set(on_step);
    }

    /// The clock of the server at `address` went ahead by at most `step`.
    pub(crate) fn stepped(&self, address: &str, step: Duration) {
        if let Some(on_step) = self.on_step.get() {
            on_step(address, step);
        }
    }

    /// A lease of length `ttl` may be given from now on.
    pub(crate) fn lease_of(&self, ttl: Duration) {
        let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        // Nearly always it is no longer than before, and a load is cheap.
        if self.longest_lease.load(Ordering::Relaxed) < millis {
            self.longest_lease.fetch_max(millis, Ordering::Relaxed);
        }
    }

    /// There is a connection to `address`. Returns until when the node abstains, if so.
    ///
    /// Without an `identity`, because the user may not ask for it, the register stays as it is.
    ///
    /// # Errors
    /// [`NodeError::SameServer`] when the server counts already, under another address.
    pub(crate) fn connected(&self, address: &str, identity: Option<Identity>) -> Result<Option<Instant>, NodeError> {
        let now = self.clock.now();
        let mut known = self.known();
        let Some(identity) = identity else { return Ok(known.get(address).and_then(|known| known.abstains_until)) };
        let before = known.remove(address);
        let twin = known.iter().find(|(_, other)| other.counts && other.run_id == identity.run_id);
        let twin = twin.map(|(address, _)| address.clone());
        let abstains_until =
            before.and_then(|before| abstains_until(&before, &identity, self.after_restart, self.longest_lease(), now));
        let Identity { run_id, is_durable, .. } = identity;
        let current = KnownServer { run_id, is_durable, counts: twin.is_none(), lost_at: None, abstains_until };
        known.insert(address.into(), current);
        twin.map_or(Ok(abstains_until), |twin| Err(NodeError::SameServer(twin)))
    }

    /// The connection to `address` broke.
    pub(crate) fn disconnected(&self, address: &str) {
        let now = self.clock.now();
        if let Some(known) = self.known().get_mut(address) {
            known.lost_at = Some(now);
        }
    }

    /// The longest lease that a server may have granted, with the drift of the clocks.
    fn longest_lease(&self) -> Duration {
        let longest = Duration::from_millis(self.longest_lease.load(Ordering::Relaxed));
        longest + lease::drift(longest, self.drift_factor)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Box<str>, KnownServer>> {
        // No code that can panic runs under this mutex.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ServerRegister {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerRegister").field("known", &self.known()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(30);
    /// The longest lease with the drift.
    const WINDOW: Duration = Duration::from_millis(30_302);

    fn servers(after_restart: AfterRestart) -> ServerRegister {
        let servers = ServerRegister::new(Clock::tokio(), after_restart, 0.01);
        servers.lease_of(TTL);
        servers.lease_of(TTL / 2);
        servers
    }

    #[expect(clippy::unnecessary_wraps, reason = "as it is when the server may be asked")]
    fn identity(run_id: &str, uptime: u64, is_durable: bool) -> Option<Identity> {
        Some(Identity { run_id: run_id.into(), uptime: Duration::from_secs(uptime), is_durable })
    }

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn it_abstains_over_further_connections() {
        let servers = servers(AfterRestart::Abstain);
        servers.connected("a", identity("1", 0, false)).unwrap();
        let until = servers.connected("a", identity("2", 0, true)).unwrap();
        assert!(until.is_some());
        pass(5).await;
        for identity in [identity("2", 5, true), None, identity("3", 0, true)] {
            assert_eq!(servers.connected("a", identity.clone()), Ok(until), "{identity:?}");
        }
        let later = servers.connected("a", identity("4", 0, false)).unwrap();
        assert!(later > until, "{later:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_server_and_an_unknown_one_vote_at_once() {
        let abstaining = servers(AfterRestart::Abstain);
        for identity in [None, identity("1", 0, false), None, identity("1", 9, false)] {
            assert_eq!(abstaining.connected("a", identity.clone()), Ok(None), "{identity:?}");
        }
        let trusting = servers(AfterRestart::Trust);
        for run_id in ["1", "2"] {
            assert_eq!(trusting.connected("a", identity(run_id, 0, false)), Ok(None));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_counts_under_one_address() {
        let servers = servers(AfterRestart::Abstain);
        servers.connected("a", identity("1", 0, false)).unwrap();
        let twin = Err(NodeError::SameServer("a".into()));
        assert_eq!(servers.connected("b", identity("1", 0, false)), twin);
        servers.disconnected("a");
        assert_eq!(servers.connected("b", identity("1", 0, false)), twin, "its leases still count");
        // It is restarted, and the other name is connected first: what was granted under the first is still in force.
        pass(5).await;
        let until = servers.connected("b", identity("2", 9999, false)).unwrap();
        assert_eq!(until.map(|until| until.since(servers.clock.now())), Some(WINDOW));
        assert_eq!(servers.connected("a", identity("2", 0, false)), Err(NodeError::SameServer("b".into())));
        // The second name leads elsewhere now.
        servers.connected("b", identity("3", 0, false)).unwrap();
        assert!(servers.connected("a", identity("2", 0, false)).unwrap().is_some());
    }
}
