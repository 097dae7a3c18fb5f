//! Progress of a connection that is being made: its errors name the step and the address that failed, and what to do.
//!
//! A connection has several steps, and each can fail or hang for different reasons. The steps share one time limit, so the code that waits
//! for the limit must know which step did not end. Each step is therefore recorded here before it begins.

use super::endpoint::{Announcer, Endpoint};
use crate::error::NodeError;
use crate::node::report::remedy_for_reply;
use crate::text::excerpt;
use std::fmt::Display;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::timeout;

/// Step of a connection, in the order in which they happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// Sentinels are queried for the address of the master.
    Location,
    NameLookUp,
    /// TCP connect, or connect to a unix socket.
    Connect,
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "reached with the feature alone"))]
    TlsHandshake,
    /// User and password are read or requested.
    Credentials,
    /// `HELLO` or `AUTH`.
    Login,
    /// The commands that make the connection ready: scripts, and queries about the server.
    Preparation,
}

/// The step that a connection has reached.
#[derive(Debug, Default)]
pub(super) struct Progress(Mutex<Option<Reached>>);

#[derive(Clone, Debug)]
struct Reached {
    step: Step,
    /// Address, name or path.
    at: Box<str>,
    announcer: Option<Announcer>,
}

impl Progress {
    /// Records that `step` begins at the address `at` of `endpoint`.
    pub(super) fn begins(&self, step: Step, endpoint: &Endpoint, at: impl Display) {
        let at = match endpoint.announced_as() {
            Some(announced) => format!("{at} (announced as {announced})").into(),
            None => at.to_string().into(),
        };
        let reached = Reached { step, at, announcer: endpoint.announcer() };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(reached);
    }

    /// Records that `step` begins, at the same address.
    pub(super) fn goes_on(&self, step: Step) {
        if let Some(reached) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            reached.step = step;
        }
    }

    /// Waits for `connecting`, which makes a connection, for `limit` at most.
    ///
    /// # Errors
    /// Those of `connecting`. [`NodeError::Unreachable`] with the step that did not end in time.
    pub(super) async fn limited<T>(
        &self,
        limit: Duration,
        connecting: impl Future<Output = Result<T, NodeError>>,
    ) -> Result<T, NodeError> {
        timeout(limit, connecting).await.unwrap_or_else(|_| Err(self.timed_out(limit)))
    }

    /// Returns the error for a first connection that is still being made.
    pub(super) fn under_way(&self) -> NodeError {
        let text = "the first connection is being made";
        NodeError::Unreachable(match self.reached() {
            Some(reached) => format!("{text}, now: {}", reached.name()).into(),
            None => text.into(),
        })
    }

    /// Returns the error for the present step, which has failed because of `error`.
    pub(super) fn failed(&self, error: &io::Error) -> NodeError {
        let Some(reached) = self.reached() else { return NodeError::Unreachable(excerpt(error).into()) };
        NodeError::Unreachable(
            format!("{} failed: {}: {}", reached.name(), excerpt(error), reached.remedy(error)).into(),
        )
    }

    /// Adds the present step and a remedy to `error`, if it is a reply that has refused the step. Replies of Sentinels stay unchanged.
    pub(super) fn refused(&self, error: NodeError) -> NodeError {
        match (error, self.reached()) {
            (NodeError::Refused(reply), Some(reached)) if reached.step > Step::Connect => {
                let unknown = || (!has_code(&reply)).then(|| UNKNOWN_REPLY.into());
                NodeError::Refused(match remedy_for_reply(&reply).or_else(unknown) {
                    Some(remedy) => reply.with_step(reached.name(), remedy),
                    None => reply,
                })
            }
            (error, _) => error,
        }
    }

    /// Returns the error for the present step, which has not ended within `limit`.
    fn timed_out(&self, limit: Duration) -> NodeError {
        let Some(reached) = self.reached() else {
            return NodeError::Unreachable(format!("no connection within {limit:?}").into());
        };
        let (name, remedy) = (reached.name(), reached.remedy_for_silence());
        NodeError::Unreachable(format!("{name} has not ended within {limit:?}: {remedy}").into())
    }

    /// Returns the address of the present step.
    pub(super) fn at(&self) -> Box<str> {
        self.reached().map(|reached| reached.at).unwrap_or_default()
    }

    /// Returns `true` if the server, or a machine before it, has accepted the socket.
    pub(super) fn is_accepted(&self) -> bool {
        self.reached().is_some_and(|reached| reached.step > Step::Connect)
    }

    fn reached(&self) -> Option<Reached> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Reached {
    fn name(&self) -> String {
        let at = &self.at;
        match self.step {
            Step::Location => format!("asking the Sentinels of {at}"),
            Step::NameLookUp => format!("name look-up of {at}"),
            Step::Connect if at.starts_with('/') => format!("connect to the socket {at}"),
            Step::Connect => format!("TCP connect to {at}"),
            Step::TlsHandshake => format!("TLS handshake with {at}"),
            Step::Credentials => format!("reading the credentials for {at}"),
            Step::Login => format!("login (HELLO) at {at}"),
            Step::Preparation => format!("first commands to {at}"),
        }
    }

    /// Returns the remedy for a step that has failed because of `error`.
    fn remedy(&self, error: &io::Error) -> &'static str {
        match (self.step, error.kind()) {
            (Step::NameLookUp | Step::Connect, _) if self.announcer.is_some() => self.remedy_for_announced(),
            (Step::NameLookUp, _) => "check the host name, and the DNS of this machine",
            (Step::Connect, _) if self.at.starts_with('/') => {
                "check the path, its permissions, and that the server runs"
            }
            (Step::Connect, io::ErrorKind::ConnectionRefused) => {
                "check that a Redis server is running and listens \
                                                                  there"
            }
            (Step::Connect, _) => "check the address, and the network and firewalls on the way",
            (Step::TlsHandshake, _) => "if the server does not speak TLS on this port, write redis://",
            _ => "check what listens there",
        }
    }

    /// Returns the remedy for a step that does not end.
    fn remedy_for_silence(&self) -> &'static str {
        match self.step {
            Step::Location => "check that the Sentinels are running and that their addresses can be reached",
            Step::NameLookUp | Step::Connect if self.announcer.is_some() => self.remedy_for_announced(),
            Step::NameLookUp => "check the DNS of this machine, or raise `connect_timeout`",
            Step::Connect => {
                "check the address, and firewalls that drop packets; if the server is far away, raise `connect_timeout`"
            }
            Step::TlsHandshake => "if the server does not speak TLS on this port, write redis://",
            Step::Credentials => "make the source of the credentials faster, or raise `connect_timeout`",
            Step::Login | Step::Preparation => SILENT,
        }
    }

    fn remedy_for_announced(&self) -> &'static str {
        match self.announcer {
            Some(Announcer::Sentinel) => {
                "the Sentinels announce this address; if clients reach the server by another one, write that with \
                 `NodeConfig::map_address` or `?map=`"
            }
            _ => {
                "the cluster announces this address; if clients reach the server by another one, write that with \
                 `NodeConfig::map_address` or `?map=`, or set cluster-announce-ip there"
            }
        }
    }
}

/// Returns `true` if a reply begins with an error code of Redis other than `ERR`, such as `DENIED`: its text explains the error.
fn has_code(reply: &str) -> bool {
    let code = reply.split(' ').next().unwrap_or_default();
    code != "ERR" && !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// Remedy for an unknown reply to a new connection: probably, no Redis server has sent it.
const UNKNOWN_REPLY: &str = "check which server or proxy listens there, and that a proxy reaches its Redis server";

/// Remedy if the server has accepted the connection, and does not answer.
const SILENT: &str = "the server accepts connections and does not answer: check whether it hangs, is loading its data \
                      from disk, or is not a Redis server";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::redis::cluster::address::MemberAddress;
    use crate::node::redis::made_up::lead;
    use crate::node::redis::socket;
    use std::net::SocketAddr;

    async fn error(endpoint: &Endpoint) -> String {
        let progress = Progress::default();
        let opened = progress.limited(endpoint.connect_timeout(), socket::open(endpoint, None, &progress)).await;
        opened.err().unwrap().to_string()
    }

    /// The paused clock of the test advances when no task can run.
    #[tokio::test(start_paused = true)]
    async fn failed_and_slow_name_lookups_are_reported() {
        lead("slow.test", []);
        lead("failing.test", [None]);
        lead("empty.test", [Some(vec![])]);
        let table = [
            (
                "redis://slow.test",
                "name look-up of slow.test has not ended within 2s: check the DNS of this machine, or raise `connect_timeout`",
            ),
            (
                "redis://slow.test?connect_timeout_ms=70",
                "name look-up of slow.test has not ended within 70ms: check the DNS of this machine, or raise `connect_timeout`",
            ),
            (
                "redis://failing.test",
                "name look-up of failing.test failed: the name server does not answer: check the host name, and the DNS of this machine",
            ),
            (
                "redis://empty.test",
                "name look-up of empty.test failed: the name has no address: check the host name, and the DNS of this machine",
            ),
        ];
        for (url, expected) in table {
            let endpoint = Endpoint::parse(url, 1).unwrap();
            assert_eq!(error(&endpoint).await, format!("not connected: {expected}"), "{url}");
        }
        let cluster = Endpoint::parse("redis://seed.test", 1).unwrap();
        let member = cluster.announced(Announcer::Cluster, &MemberAddress::new("failing.test", 7000, ""));
        let expected =
            "name look-up of failing.test failed: the name server does not answer: the cluster announces this address";
        assert!(error(&member).await.contains(expected));
    }

    #[tokio::test]
    async fn connect_error_lists_at_most_three_addresses() {
        let refusing = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let at = refusing;
        for (name, many, expected) in [
            ("one.test", 1, format!("({at})")),
            ("three.test", 3, format!("({at}, {at}, {at})")),
            ("five.test", 5, format!("({at}, {at}, {at} and 2 more)")),
        ] {
            lead(name, [Some(vec![refusing; many])]);
            let endpoint = Endpoint::parse(&format!("redis://{name}:7"), 1).unwrap();
            let error = error(&endpoint).await;
            assert!(
                error.starts_with(&format!("not connected: TCP connect to {name}:7 {expected} failed: ")),
                "{error}"
            );
        }
    }

    #[test]
    fn first_connection_names_its_step() {
        let progress = Progress::default();
        let text = || progress.under_way().to_string();
        assert_eq!(text(), "not connected: the first connection is being made");
        let endpoint = Endpoint::parse("redis://[::1]:7", 1).unwrap();
        progress.begins(Step::Connect, &endpoint, endpoint.address());
        assert_eq!(text(), "not connected: the first connection is being made, now: TCP connect to [::1]:7");
        progress.goes_on(Step::Login);
        assert_eq!(text(), "not connected: the first connection is being made, now: login (HELLO) at [::1]:7");
        let at: SocketAddr = "[::2]:8".parse().unwrap();
        progress.begins(Step::Connect, &endpoint, at);
        assert_eq!(&*progress.at(), "[::2]:8");
    }
}
