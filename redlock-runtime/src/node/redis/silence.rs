//! Ends connections that are dead but open.
//!
//! A proxy or a load balancer can forget a connection without closing it. It still acknowledges the bytes of the client, so that neither
//! TCP keep-alive nor `TCP_USER_TIMEOUT` notices. Such a connection never answers again:
//!
//! 1. A connection is *silent* while an answer is awaited and no byte comes. A connection for wake-ups awaits no answer, so it sends a
//!    `PING` itself ([`PING_AFTER`]).
//! 2. A connection that is silent for some time ([`Checks`]) is checked: a second connection is made to the same address. It logs in and
//!    sends `INFO` and `PING`, but no scripts and no commands about locks. One connection of a node is checked at a time.
//! 3. If the server answers there, the first connection gets one more chance: a `PING`, and [`GRACE`] to send any byte. If it stays silent,
//!    it is handled as a broken connection. Its socket is closed, its missing answers prove nothing, and the next connection starts like
//!    any other.
//! 4. If a server with another run id answers, the votes of the previous server are void, as after a change of its name
//!    ([`names`](super::names)).
//! 5. A frozen server accepts the second connection and answers on neither, so the first one stays. The next check follows after twice the
//!    time, up to [`LONGEST_SILENCE`]. The second connection stays open until then. A proxy without its server looks the same: when it
//!    answers or closes the second connection, the check continues at once.
//! 6. If the second connection fails, no server has work with it. The next check follows after [`LONGEST_AFTER_FAILURE`] at most.
//!
//! By 3, 5 and 6, a dead connection is replaced within 10 s after the server answers on new connections (see the tests). There is one
//! exception: a proxy accepts the second connection, answers nothing for a time `t`, and then has forgotten this connection, too. The next
//! check follows `1.25 t` later at most, and never more than 75 s later.

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
use crate::node::BoxFuture;
use redis::Value;
use redis::aio::PubSubSink;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};

/// Silence before the first check. Too short: a server that is busy for a moment is checked by all its clients. Too long: calls fail for
/// longer when a connection is dead.
const FIRST_SILENCE: Duration = Duration::from_secs(1);

/// Maximum silence between two checks. Too short: a frozen server meets many new connections when it continues. Too long: a proxy that
/// comes back and has forgotten both connections costs more time.
const LONGEST_SILENCE: Duration = Duration::from_secs(60);

/// Maximum silence between two checks if the second connection has failed. Too short: more attempts at an unreachable server. Too long:
/// calls fail for longer after the server can be reached again.
const LONGEST_AFTER_FAILURE: Duration = Duration::from_secs(4);

/// Time between two checks for received bytes on a connection that awaits answers. Too short: needless wake-ups. Too long: silence is
/// noticed late.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Time for a last sign of life, after the server has answered on the second connection. Too short: a connection with a pending answer is
/// closed. Too long: calls fail for longer when a connection is dead.
const GRACE: Duration = Duration::from_millis(250);

/// Time without messages after which a connection for wake-ups sends a `PING`. Too short: needless commands. Too long: callers are woken
/// late when the connection is dead.
const PING_AFTER: Duration = Duration::from_secs(3);

/// Time between two checks for received bytes on a connection for wake-ups. Too short: needless wake-ups. Too long: the `PING` is sent
/// late.
const LISTEN_EVERY: Duration = Duration::from_secs(1);

/// Times of the checks of one connection and its successors.
pub(super) struct Checks {
    /// Silence before the next check, without the jitter.
    pause: Duration,
    /// Share of the pause that is added to it: a frozen server is not checked by all its clients at once.
    jitter: f64,
    /// Silence that is normal for the server, in addition.
    allowance: Duration,
    /// Held during a check: one at a time for each node.
    turn: Arc<Mutex<()>>,
}

impl Checks {
    pub(super) fn new(turn: Arc<Mutex<()>>) -> Self {
        Self { pause: FIRST_SILENCE, jitter: random_jitter(), allowance: Duration::ZERO, turn }
    }

    /// Creates the checks of the connections for commands of a node. A server may hold answers back until its replicas have confirmed a
    /// lease.
    pub(super) fn for_commands(connections: &Connections) -> Self {
        let allowance = connections.environment.replicas.map_or(Duration::ZERO, |replicas| replicas.patience);
        Self { allowance, ..Self::new(Arc::clone(&connections.checking)) }
    }

    /// Returns the silence before the next check.
    fn next_silence(&self) -> Duration {
        self.allowance + self.pause.mul_f64(1.0 + self.jitter)
    }

    /// Records a check. It was useless unless a byte is received on the connection after it.
    fn checked(&mut self) {
        self.pause = (self.pause * 2).min(LONGEST_SILENCE);
        self.jitter = random_jitter();
    }

    /// Records that the second connection of the check has failed: the server is not frozen, but out of reach.
    fn failed(&mut self) {
        self.pause = self.pause.min(LONGEST_AFTER_FAILURE);
    }

    /// Records received bytes on the connection.
    const fn heard(&mut self) {
        self.pause = FIRST_SILENCE;
    }
}

fn random_jitter() -> f64 {
    0.25 * fastrand::f64()
}

/// Ends the connection `live` when it is dead. Ends with the connection.
pub(super) async fn watch(
    live: &LiveConnection,
    control: &Control,
    endpoint: &Endpoint,
    (connections, checks): (&Connections, &mut Checks),
) -> Infallible {
    watch_beside(live, control, &ToServer { endpoint, control }, (connections, checks)).await
}

/// Like [`watch`], with the second connections of `second`.
async fn watch_beside(
    live: &LiveConnection,
    control: &Control,
    second: &impl Second,
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
                let begun = Instant::now();
                if let Some(server) = check(second, control, checks, ping).await {
                    end(live, &server, silent + begun.elapsed(), connections);
                }
                // The time of the check is a part of the next silence.
                (silent, limit) = (begun.elapsed(), checks.next_silence());
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
    death_beside(&mut pings, control, &ToServer { endpoint, control }, checks).await;
}

/// Sink of `PING`s on a connection that receives messages.
trait Ping: Send {
    /// Sends a `PING`, and waits for its answer.
    fn ping(&mut self) -> BoxFuture<'_, ()>;
}

impl Ping for PubSubSink {
    fn ping(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async { drop(Self::ping::<Value>(self).await) })
    }
}

/// Like [`death`], with the second connections of `second`.
async fn death_beside(pings: &mut impl Ping, control: &Control, second: &impl Second, checks: &mut Checks) {
    loop {
        let (mut heard, mut quiet) = (control.received.total(), Duration::ZERO);
        while quiet < PING_AFTER {
            sleep(LISTEN_EVERY).await;
            quiet = if control.received.total() == heard { quiet + LISTEN_EVERY } else { Duration::ZERO };
            heard = control.received.total();
        }
        if is_dead(pings, control, second, checks).await {
            return;
        }
    }
}

/// Sends a `PING`. Returns `true` if no byte comes although the server answers on a second connection.
async fn is_dead(pings: &mut impl Ping, control: &Control, second: &impl Second, checks: &mut Checks) -> bool {
    let (heard, mut silent, mut limit) = (control.received.total(), Duration::ZERO, checks.next_silence());
    let mut answer = pings.ping();
    loop {
        // An error is an answer, too. A connection that is broken ends the messages as well.
        let is_answered = timeout(LOOK_EVERY, answer.as_mut()).await.is_ok();
        if is_answered || control.received.total() != heard {
            checks.heard();
            return false;
        }
        silent += LOOK_EVERY;
        if silent >= limit {
            let begun = Instant::now();
            if check(second, control, checks, async || sleep(GRACE).await).await.is_some() {
                return true;
            }
            (silent, limit) = (begun.elapsed(), checks.next_silence());
        }
    }
}

/// A server that has answered on a second connection.
struct Server {
    /// `None` if the server does not report it.
    run_id: Option<Box<str>>,
}

/// Source of the second connections of the checks.
trait Second: Sync {
    type Connection: Send;

    /// Returns the limit for making a connection, and for one answer on it.
    fn limit(&self) -> Duration;

    /// Logs in on a new connection, and queries the server for its run id. Records the steps in `progress`.
    fn greet<'a>(&'a self, progress: &'a Progress) -> BoxFuture<'a, Option<(Self::Connection, Server)>>;

    /// Sends a `PING`, and returns `true` if it is answered.
    fn ping(&self, connection: Self::Connection) -> BoxFuture<'_, bool>;
}

/// Checks the connection of `control` by a second one. Returns the server if it answers there, and the first connection is still silent
/// after a last chance. During this chance, `ping` may send a query on the first connection.
async fn check(
    second: &impl Second,
    control: &Control,
    checks: &mut Checks,
    ping: impl AsyncFnOnce(),
) -> Option<Server> {
    let heard = control.received.total();
    let is_silent = || control.received.total() == heard;
    let turn = Arc::clone(&checks.turn);
    let _turn = turn.lock().await;
    if !is_silent() {
        return None;
    }
    checks.checked();
    let begun = Instant::now();
    let (connection, server) = match greeted(second, is_silent, checks.next_silence()).await {
        Greeting::Answered(connection, server) => (connection, server),
        Greeting::Failed => {
            checks.failed();
            return None;
        }
        Greeting::Useless => return None,
    };
    // The login and the `PING` have one limit, as the next connection has, unless the login waited for a server.
    let left = second.limit().checked_sub(begun.elapsed()).unwrap_or_else(|| second.limit());
    let _ = timeout(GRACE, ping()).await;
    // A frozen server that continues now answers on the first connection before it answers here.
    let is_answered = timeout(left, second.ping(connection)).await == Ok(true);
    (is_answered && is_silent()).then_some(server)
}

/// Result of the login on a second connection.
enum Greeting<C> {
    Answered(C, Server),
    /// There is no connection, or it broke.
    Failed,
    /// The server has accepted the connection and not answered, or the first connection is not silent any longer.
    Useless,
}

/// Logs in on a second connection. An accepted connection waits for its answer for `patience` while the first one `is_silent`.
async fn greeted<S: Second>(second: &S, is_silent: impl Fn() -> bool, patience: Duration) -> Greeting<S::Connection> {
    let (progress, begun, limit) = (Progress::default(), Instant::now(), second.limit());
    let mut greeting = second.greet(&progress);
    loop {
        match timeout(LOOK_EVERY.min(limit), greeting.as_mut()).await {
            Ok(Some((connection, server))) => return Greeting::Answered(connection, server),
            Ok(None) => return Greeting::Failed,
            Err(_) if begun.elapsed() >= limit && !progress.is_accepted() => return Greeting::Failed,
            Err(_) if !is_silent() || begun.elapsed() >= limit.max(patience) => return Greeting::Useless,
            Err(_) => {}
        }
    }
}

/// Second connections to the server of the connection of `control`.
struct ToServer<'a> {
    endpoint: &'a Endpoint,
    control: &'a Control,
}

impl Second for ToServer<'_> {
    type Connection = Connection;

    fn limit(&self) -> Duration {
        self.endpoint.connect_timeout()
    }

    fn greet<'a>(&'a self, progress: &'a Progress) -> BoxFuture<'a, Option<(Connection, Server)>> {
        Box::pin(greet(self, progress))
    }

    fn ping(&self, mut connection: Connection) -> BoxFuture<'_, bool> {
        Box::pin(async move { ask(&mut connection, redis::pipe().cmd("PING")).await.is_ok() })
    }
}

async fn greet(ToServer { endpoint, control }: &ToServer<'_>, progress: &Progress) -> Option<(Connection, Server)> {
    // The server of the first connection, even if the name or the Sentinels now lead elsewhere.
    let endpoint = match control.located.get() {
        Some(located) => endpoint.elsewhere(&located.at.host, located.at.port),
        None => endpoint.for_same_server(),
    };
    let connected = match control.peer.get() {
        Some(at) => connect_plainly_at(&endpoint, *at, progress).await,
        None => connect_plainly(&endpoint, progress).await,
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
    use super::super::backoff::Backoff;
    use super::super::channels::Channels;
    use super::super::progress::Step;
    use super::super::script::Scripts;
    use super::*;
    use crate::lock::owner_token::ManagerId;
    use crate::node::abstention::Abstention;
    use crate::node::environment::Environment;
    use crate::time::clock::Clock;
    use std::future::pending;
    use std::sync::Mutex as StdMutex;
    use tokio::time::sleep_until;

    /// Maximum time without locks because of a connection that a proxy has forgotten: the promise of the guide.
    const PROMISED: Duration = Duration::from_secs(10);
    /// Longer than any pause of the checks.
    const HOUR: Duration = Duration::from_secs(3600);

    /// Fate of a second connection during an outage.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Outage {
        /// The network drops all packets.
        Unreachable,
        /// A proxy closes the connection, because it does not reach its server.
        Closed,
        /// The connection is accepted, and served at the end of the outage.
        Held,
        /// The connection is accepted, and forgotten.
        Forgotten,
    }

    /// A server whose first connection is forgotten, and that answers on second connections after an outage.
    struct Scene {
        endpoint: Endpoint,
        outage: Outage,
        until: Instant,
        /// Time for the login, and for the answer to a `PING`.
        latency: Duration,
        /// Beginnings of the second connections.
        begun: StdMutex<Vec<Instant>>,
    }

    impl Scene {
        /// The answers on second connections are as slow as the settings permit.
        fn new(outage: Outage, lasting: Duration, seed: u64) -> Self {
            fastrand::seed(seed);
            let endpoint = Endpoint::parse("redis://server", 1).unwrap();
            let latency = (endpoint.connect_timeout() / 2).saturating_sub(Duration::from_millis(1));
            Self { endpoint, outage, until: Instant::now() + lasting, latency, begun: StdMutex::default() }
        }

        /// Returns the time until the connection for commands is replaced, if that happens within `limit`.
        async fn replaces_commands(&self, limit: Duration) -> Option<Duration> {
            let environment = Environment::for_single_node(ManagerId::numbered(7), Clock::tokio());
            let connections = Connections::new("server:6379", environment);
            let Ok(scripts) = Scripts::loaded(Channels::of_server(""), || Ok::<_, Infallible>(String::new()));
            let (server, environment) = (Arc::clone(&connections.server), connections.environment.clone());
            let live = LiveConnection::new(scripts, true, Abstention::default(), server, environment);
            // A command that is never answered.
            drop(live.probe(&["PING"]));
            let control = Control::default();
            control.awaits_answers.store(true, Ordering::Relaxed);
            let (begun, mut checks) = (Instant::now(), Checks::for_commands(&connections));
            let watching = watch_beside(&live, &control, self, (&connections, &mut checks));
            let ended = async {
                while live.end_reason().is_none() {
                    sleep(LOOK_EVERY).await;
                }
            };
            tokio::select! {
                never = watching => match never {},
                () = sleep(limit) => return None,
                () = ended => {}
            }
            self.connect_again().await;
            Some(begun.elapsed())
        }

        /// Returns the time until the connection for wake-ups is replaced. The last message arrives when it is inconvenient.
        async fn replaces_wakeups(&self) -> Duration {
            let (begun, control, mut checks) = (Instant::now(), Control::default(), Checks::new(Arc::default()));
            let receiving = async {
                sleep(Duration::from_millis(1)).await;
                control.received.add(1).unwrap();
                pending::<Infallible>().await
            };
            let mut pings = Unanswered;
            tokio::select! {
                never = receiving => match never {},
                () = death_beside(&mut pings, &control, self, &mut checks) => {}
            }
            self.connect_again().await;
            begun.elapsed()
        }

        /// Takes the longest time until the next connection is ready.
        async fn connect_again(&self) {
            let mut backoff = Backoff::new();
            backoff.connected();
            backoff.pause().await;
            sleep(self.limit()).await;
        }
    }

    impl Second for Scene {
        type Connection = ();

        fn limit(&self) -> Duration {
            self.endpoint.connect_timeout()
        }

        fn greet<'a>(&'a self, progress: &'a Progress) -> BoxFuture<'a, Option<((), Server)>> {
            Box::pin(self.greeted(progress))
        }

        fn ping(&self, (): ()) -> BoxFuture<'_, bool> {
            Box::pin(async {
                sleep(self.latency).await;
                true
            })
        }
    }

    impl Scene {
        async fn greeted(&self, progress: &Progress) -> Option<((), Server)> {
            self.begun.lock().unwrap().push(Instant::now());
            progress.begins(Step::Connect, &self.endpoint, "server:6379");
            if Instant::now() < self.until {
                match self.outage {
                    Outage::Unreachable => pending().await,
                    Outage::Closed => return None,
                    Outage::Held => {
                        progress.goes_on(Step::Login);
                        sleep_until(self.until).await;
                    }
                    Outage::Forgotten => {
                        progress.goes_on(Step::Login);
                        pending::<()>().await;
                    }
                }
            }
            progress.goes_on(Step::Login);
            sleep(self.latency).await;
            Some(((), Server { run_id: None }))
        }
    }

    /// `PING`s without answers.
    struct Unanswered;

    impl Ping for Unanswered {
        fn ping(&mut self) -> BoxFuture<'_, ()> {
            Box::pin(pending())
        }
    }

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
        checks.failed();
        assert_eq!(checks.pause, LONGEST_AFTER_FAILURE);
        checks.heard();
        assert_eq!(checks.pause, FIRST_SILENCE);
    }

    /// The sum of the silence, the check and the next connection, with the default settings and the slowest answers that these permit.
    #[tokio::test(start_paused = true)]
    async fn forgotten_connections_are_replaced_within_ten_seconds() {
        for seed in 0..50 {
            let scene = Scene::new(Outage::Held, Duration::ZERO, seed);
            let took = scene.replaces_commands(HOUR).await.unwrap();
            assert!(took <= PROMISED, "seed {seed}: {took:?}");
            let scene = Scene::new(Outage::Held, Duration::ZERO, seed);
            let took = scene.replaces_wakeups().await;
            assert!(took <= PROMISED, "wake-ups, seed {seed}: {took:?}");
        }
    }

    /// New connections fail for a while, and then a proxy has forgotten the first one.
    #[tokio::test(start_paused = true)]
    async fn forgotten_connections_are_replaced_within_ten_seconds_after_an_outage() {
        for outage in [Outage::Unreachable, Outage::Closed, Outage::Held] {
            for seconds in [2, 7, 30, 100, 600] {
                for seed in 0..10 {
                    let lasting = Duration::from_secs(seconds);
                    let took = Scene::new(outage, lasting, seed).replaces_commands(HOUR).await.unwrap();
                    let after = took.saturating_sub(lasting);
                    assert!(after <= PROMISED, "{outage:?} for {lasting:?}, seed {seed}: {after:?}");
                }
            }
        }
    }

    /// The exception: a proxy accepts new connections, does not answer, and forgets them as well. This looks like a frozen server.
    #[tokio::test(start_paused = true)]
    async fn forgotten_second_connection_delays_the_recovery_by_the_length_of_the_outage() {
        for seconds in [2, 7, 30, 100, 600] {
            for seed in 0..10 {
                let lasting = Duration::from_secs(seconds);
                let took = Scene::new(Outage::Forgotten, lasting, seed).replaces_commands(HOUR).await.unwrap();
                let longest = lasting.min(LONGEST_SILENCE).mul_f64(1.25) + PROMISED;
                assert!(
                    took.saturating_sub(lasting) <= longest,
                    "{lasting:?}, seed {seed}: {:?}",
                    took.saturating_sub(lasting)
                );
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn frozen_server_meets_ever_fewer_second_connections() {
        for seed in 0..10 {
            let scene = Scene::new(Outage::Held, 2 * HOUR, seed);
            assert_eq!(scene.replaces_commands(HOUR / 6).await, None);
            let begun = scene.begun.lock().unwrap();
            let pauses = begun.windows(2).map(|pair| pair[1] - pair[0]);
            for (pause, seconds) in pauses.zip([2, 4, 8, 16, 32].into_iter().chain([60; 20])) {
                let shortest = Duration::from_secs(seconds);
                assert!(
                    shortest <= pause && pause <= shortest.mul_f64(1.25) + 2 * LOOK_EVERY,
                    "seed {seed}: {begun:?}"
                );
            }
            assert!(begun.len() >= 12, "{begun:?}");
        }
    }
}
