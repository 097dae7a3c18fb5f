//! Ends connections that are dead but open.
//!
//! A proxy or a load balancer can forget a connection without closing it. It still acknowledges the bytes of the client, so that neither
//! TCP keep-alive nor `TCP_USER_TIMEOUT` notices. Such a connection never answers again:
//!
//! 1. A connection is *silent* while an answer is awaited and no byte comes. A connection for wake-ups awaits no answer, so it sends a
//!    `PING` itself ([`PING_AFTER`]).
//! 2. A connection that is silent for some time ([`Checks`]) is checked: a second connection is made to the same address. It logs in and
//!    sends `INFO` and `PING`, but no scripts and no commands about locks.
//! 3. If the server answers there, the first connection gets one more chance: a `PING`, and [`GRACE`] to send any byte. If it stays silent,
//!    it is handled as a broken connection. Its socket is closed, its missing answers prove nothing, and the next connection starts like
//!    any other.
//! 4. If a server with another run id answers, the votes of the previous server are void, as after a change of its name
//!    ([`names`](super::names)).
//! 5. A frozen server answers on neither connection, so the first one stays. The next check follows after twice the time.

use super::connect::{connect_plainly, connect_plainly_at};
use super::connections::Connections;
use super::endpoint::Endpoint;
use super::info::Info;
use super::io_task::Connection;
use super::live_connection::LiveConnection;
use super::prepare::ask;
use super::progress::Progress;
use super::socket::Control;
use crate::error::NodeError;
use redis::Value;
use redis::aio::PubSubSink;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

/// Silence before the first check. Too short: a server that is busy for a moment is checked by all its clients. Too long: calls fail for
/// longer when a connection is dead.
const FIRST_SILENCE: Duration = Duration::from_secs(1);

/// Maximum silence between two checks. Too short: a frozen server meets many new connections when it continues. Too long: a proxy that
/// comes back and has forgotten the connection costs more time.
const LONGEST_SILENCE: Duration = Duration::from_secs(60);

/// Time between two checks for received bytes on a connection that awaits answers. Too short: needless wake-ups. Too long: silence is
/// noticed late.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Time for a last sign of life, after the server has answered on the second connection. Too short: a connection with a pending answer is
/// closed. Too long: calls fail for longer when a connection is dead.
const GRACE: Duration = Duration::from_millis(250);

/// Time without messages after which a connection for wake-ups sends a `PING`. Too short: needless commands. Too long: callers are woken
/// late when the connection is dead.
const PING_AFTER: Duration = Duration::from_secs(4);

/// Times of the checks of one connection and its successors.
pub(super) struct Checks {
    /// Silence before the next check, without the jitter.
    pause: Duration,
    /// Silence that is normal for the server, in addition.
    allowance: Duration,
    /// Held during a check: one at a time for each node.
    turn: Arc<Mutex<()>>,
}

impl Checks {
    pub(super) const fn new(turn: Arc<Mutex<()>>) -> Self {
        Self { pause: FIRST_SILENCE, allowance: Duration::ZERO, turn }
    }

    /// Creates the checks of the connections for commands of a node. A server may hold answers back until its replicas have confirmed a
    /// lease.
    pub(super) fn for_commands(connections: &Connections) -> Self {
        let allowance = connections.environment.replicas.map_or(Duration::ZERO, |replicas| replicas.patience);
        Self { allowance, ..Self::new(Arc::clone(&connections.checking)) }
    }

    /// Returns the silence before the next check, with jitter: a frozen server is not checked by all its clients at once.
    fn next_silence(&self) -> Duration {
        self.allowance + self.pause.mul_f64(1.0 + 0.25 * fastrand::f64())
    }

    /// Records a check. It was useless unless a byte is received on the connection after it.
    fn checked(&mut self) {
        self.pause = (self.pause * 2).min(LONGEST_SILENCE);
    }

    /// Records received bytes on the connection.
    const fn heard(&mut self) {
        self.pause = FIRST_SILENCE;
    }
}

/// Ends the connection `live` when it is dead. Ends with the connection.
pub(super) async fn watch(
    live: &LiveConnection,
    control: &Control,
    endpoint: &Endpoint,
    (connections, checks): (&Connections, &mut Checks),
) -> Infallible {
    let (mut heard, mut puts) = (control.received.total(), 0);
    loop {
        live.outbox.used_after(puts).await;
        let (mut silent, mut limit) = (Duration::ZERO, checks.next_silence());
        loop {
            puts = live.outbox.seen().0;
            sleep(LOOK_EVERY).await;
            let is_awaited = control.awaits_answers.load(Ordering::Relaxed);
            if control.received.total() != heard {
                heard = control.received.total();
                checks.heard();
                (silent, limit) = (Duration::ZERO, checks.next_silence());
            } else if is_awaited {
                silent += LOOK_EVERY;
            } else {
                silent = Duration::ZERO;
            }
            if silent >= limit {
                let ping = async || drop(live.probe(&["PING"]).await);
                if let Some(server) = check(endpoint, control, checks, ping).await {
                    end(live, &server, silent, connections);
                }
                (silent, limit) = (Duration::ZERO, checks.next_silence());
            }
            let (all_puts, _, is_unsent) = live.outbox.seen();
            if !is_awaited && !is_unsent && all_puts == puts {
                // Until the next command.
                break;
            }
        }
    }
}

/// Ends a connection that was `silent` while its `server` answers on a new one.
fn end(live: &LiveConnection, server: &Server, silent: Duration, connections: &Connections) {
    let known = connections.server.run_id();
    if known.is_some() && server.run_id.is_none() {
        // A proxy answered instead of the server, which may be frozen.
        return;
    }
    if known == server.run_id {
        let reason = format!("silent for {silent:?}, although the server answers on a new connection");
        return live.end(NodeError::Unreachable(reason.into()));
    }
    let error = NodeError::Unreachable(format!("silent for {silent:?}, and another server answers there").into());
    if connections.server.is_member() || live.located().is_some() {
        // The map of the cluster and the Sentinels determine the role of that server.
        live.end(error);
    } else {
        live.leave(error);
    }
}

/// Returns when the connection of `control` is dead. It receives messages, and `pings` are sent on it.
pub(super) async fn death(mut pings: PubSubSink, control: &Control, endpoint: &Endpoint, checks: &mut Checks) {
    loop {
        let heard = control.received.total();
        sleep(PING_AFTER).await;
        if control.received.total() == heard && is_dead(&mut pings, control, endpoint, checks).await {
            return;
        }
    }
}

/// Sends a `PING`. Returns `true` if no byte comes although the server answers on a second connection.
async fn is_dead(pings: &mut PubSubSink, control: &Control, endpoint: &Endpoint, checks: &mut Checks) -> bool {
    let (heard, mut silent, mut limit) = (control.received.total(), Duration::ZERO, checks.next_silence());
    let mut answer = pin!(pings.ping::<Value>());
    loop {
        // An error is an answer, too. A connection that is broken ends the messages as well.
        let is_answered = timeout(LOOK_EVERY, answer.as_mut()).await.is_ok();
        if is_answered || control.received.total() != heard {
            checks.heard();
            return false;
        }
        silent += LOOK_EVERY;
        if silent >= limit {
            if check(endpoint, control, checks, async || sleep(GRACE).await).await.is_some() {
                return true;
            }
            (silent, limit) = (Duration::ZERO, checks.next_silence());
        }
    }
}

/// A server that has answered on a second connection.
struct Server {
    /// `None` if the server does not report it.
    run_id: Option<Box<str>>,
}

/// Makes a second connection beside that of `control`. Returns the server if it answers there, and the first connection is still silent
/// after a last chance. During this chance, `ping` may send a query on the first connection.
async fn check(
    endpoint: &Endpoint,
    control: &Control,
    checks: &mut Checks,
    ping: impl AsyncFnOnce(),
) -> Option<Server> {
    let heard = control.received.total();
    let turn = Arc::clone(&checks.turn);
    let _turn = turn.lock().await;
    if control.received.total() != heard {
        return None;
    }
    checks.checked();
    // The server of this connection, even if the name or the Sentinels now lead elsewhere.
    let endpoint = match control.located.get() {
        Some(located) => endpoint.elsewhere(&located.at.host, located.at.port),
        None => endpoint.for_same_server(),
    };
    let limit = endpoint.connect_timeout();
    let (mut connection, server) = timeout(limit, greet(&endpoint, control)).await.ok()??;
    let _ = timeout(GRACE, ping()).await;
    // A frozen server that continues now answers on the first connection before it answers here.
    let pinged = timeout(limit, ask(&mut connection, redis::pipe().cmd("PING"))).await;
    let is_answered = matches!(pinged, Ok(Ok(_)));
    (is_answered && control.received.total() == heard).then_some(server)
}

/// Logs in on a second connection, and queries the server for its run id.
async fn greet(endpoint: &Endpoint, control: &Control) -> Option<(Connection, Server)> {
    let connected = match control.peer.get() {
        Some(at) => connect_plainly_at(endpoint, *at).await,
        None => connect_plainly(endpoint, &Progress::default()).await,
    };
    let mut connection = connected.ok()?;
    let answers = ask(&mut connection, redis::pipe().cmd("INFO").arg("server")).await.ok()?;
    let info = answers.into_iter().next()?.extract_error().ok();
    let info = info.and_then(|info| redis::from_redis_value::<String>(info).ok());
    let run_id = info.and_then(|info| Info::parse(&info).field("run_id").map(Into::into));
    Some((connection, Server { run_id }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_before_a_check_doubles_until_data_arrives() {
        let mut checks = Checks::new(Arc::default());
        let mut seconds = Vec::new();
        for _ in 0..8 {
            let silence = checks.next_silence();
            assert!(silence >= checks.pause && silence < checks.pause.mul_f64(1.3), "{silence:?}");
            seconds.push(checks.pause.as_secs());
            checks.checked();
        }
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
        checks.heard();
        assert_eq!(checks.pause, FIRST_SILENCE);
    }
}
