//! What all connections to one address share: what is known of the server there, and how its clock goes.

use crate::error::NodeError;
use crate::node::abstention::Abstention;
use crate::node::server_clock::ServerClock;
use crate::node::server_identity::{DataSet, Identity, Marker};
use crate::node::server_register::{OlderQuorums, ServerRegister};
use crate::node::shared_settings::OtherSettings;
use crate::observe::{Throttle, events};
use crate::protocol::command::{Notice, ProvenClaim};
use crate::stats::NodeCounters;
use crate::time::clock::Instant;
use crate::time::due_time::DueTime;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// So many microseconds more or less between the clocks of a server and ours matter to fencing numbers. Smaller, and each answer
/// that tells the time would be compared with those of the other servers; larger, and owners that take turns faster than that are refused.
const NEWS: u64 = 100;

/// Age from which the last time of a server is too old: the next ballot, or the next command that takes a lock, asks for it. Too small: more
/// commands. Too large: clocks that run apart make ballots smaller than those of others, and a step of the clock is noticed later if no lock
/// is renewed.
pub(crate) const FRESH: Duration = Duration::from_secs(10);

/// For so long it is not told again that a server refuses the subscription. Smaller, a server whose connections break says it with
/// each; larger, whoever looks into the log misses it.
const SAME_REFUSAL: Duration = Duration::from_secs(60);

/// Time between two comparisons of the settings with those of other processes. Too small: more commands. Too large: a line is older than its
/// lifetime before it is written again.
pub(crate) const COMPARED_EVERY: Duration = Duration::from_secs(20);

/// Pause after the server has refused the settings, for lack of a permission. Too small: the server logs each refusal. Too large: a
/// permission that was granted has no effect for longer.
const COMPARISON_REFUSED: Duration = Duration::from_secs(3600);

/// What is known of the server at one address.
#[derive(Debug)]
pub(crate) struct ServerFacts {
    address: Box<str>,
    /// The cluster that the server is a member of, as its node is called.
    cluster: Option<Box<str>>,
    servers: Arc<ServerRegister>,
    clock: Mutex<ServerClock>,
    /// When it is asked for its time.
    time_due: DueTime,
    /// When a command that takes a lock asks for it. In contrast to a ballot, that command is served by the answer of the handshake.
    step_check_due: DueTime,
    pub(crate) counters: NodeCounters,
    /// Whether a member of a cluster has channels of its own.
    has_own_channels: AtomicBool,
    older_quorums: Mutex<OlderQuorums>,
    /// How often it has refused to say when a lock is free.
    refusals: Throttle,
    /// When the settings are compared.
    comparison_due: DueTime,
    /// The line of settings that this process has left there last.
    left_settings: Mutex<Box<str>>,
    /// How often other settings were found there.
    differences: Throttle,
}

impl ServerFacts {
    pub(crate) fn new(address: &str, servers: Arc<ServerRegister>) -> Self {
        let clock = Mutex::new(ServerClock::new(servers.drift_factor));
        Self {
            address: address.into(),
            cluster: None,
            servers,
            clock,
            time_due: DueTime::default(),
            step_check_due: DueTime::default(),
            counters: NodeCounters::default(),
            has_own_channels: AtomicBool::new(false),
            older_quorums: Mutex::default(),
            refusals: Throttle::default(),
            comparison_due: DueTime::default(),
            left_settings: Mutex::default(),
            differences: Throttle::default(),
        }
    }

    /// Of a member of the cluster that is the node called `cluster`.
    pub(crate) fn of_member(address: &str, cluster: &str, servers: Arc<ServerRegister>) -> Self {
        Self { cluster: Some(cluster.into()), ..Self::new(address, servers) }
    }

    /// Whether the server is known to be a member of a cluster.
    pub(crate) const fn is_member(&self) -> bool {
        self.cluster.is_some()
    }

    /// Whether the member of a cluster has channels of its own.
    pub(crate) fn has_channels(&self, are_own: bool) {
        self.has_own_channels.store(are_own, Ordering::Release);
    }

    /// Whether what the member of a cluster publishes comes from nobody else.
    pub(crate) fn has_own_channels(&self) -> bool {
        self.has_own_channels.load(Ordering::Acquire)
    }

    /// The node that the server is, or whose part it is.
    pub(crate) fn node(&self) -> &str {
        self.cluster.as_deref().unwrap_or(&self.address)
    }

    /// The server has refused the subscription, by `error`. That is told now and then.
    pub(crate) fn does_not_tell(&self, error: &NodeError) {
        if let Some(times) = self.refusals.times(self.now(), SAME_REFUSAL) {
            events::not_listening(&self.address, error, times);
        }
    }

    /// The time by our clock.
    pub(crate) fn now(&self) -> Instant {
        self.servers.clock.now()
    }

    /// There is a connection to a server that says that it is `identity`. Returns whether the node abstains on it.
    ///
    /// # Errors
    /// [`NodeError::SameServer`] when it counts already, under another address.
    pub(crate) fn connected(&self, identity: Option<Identity>) -> Result<Abstention, NodeError> {
        self.servers.connected(&self.address, self.node(), identity)
    }

    /// Returns the number of the last receipt of this process in the data of the server.
    pub(crate) fn receipt(&self) -> Option<u64> {
        self.servers.receipt(&self.address)
    }

    /// The server says that it is `identity`, and a replica.
    pub(crate) fn is_replica(&self, identity: Identity) {
        self.servers.is_replica(&self.address, self.node(), identity);
    }

    /// Whether it matters that the server has forgotten something.
    pub(crate) fn is_distrusted(&self) -> bool {
        self.servers.distrusts()
    }

    /// Returns `true` if connections keep a marker in the data of servers.
    pub(crate) fn has_marker(&self) -> bool {
        self.servers.has_markers()
    }

    /// Whether the server, which says that its data is `data`, still has what it had.
    pub(crate) fn has_kept(&self, data: DataSet) -> bool {
        self.servers.has_kept(&self.address, data)
    }

    /// Records that the server has thrown data away, although its process and its connection are the same.
    pub(crate) fn has_thrown_data_away(&self) {
        self.servers.may_have_other_data(self.node());
    }

    /// For how much longer than `at` the node abstains, if so.
    pub(crate) fn abstains_for(&self, abstention: Abstention, at: Instant) -> Option<Duration> {
        abstention.left(at, || {
            // No code that can panic runs under this mutex.
            let mut quorums = self.older_quorums.lock().unwrap_or_else(PoisonError::into_inner);
            *quorums = self.servers.older_quorums(&self.address, *quorums, at);
            quorums.are_there
        })
    }

    /// A connection is about to be made. What was heard on the one before may have come after that was said to be broken.
    pub(crate) fn connecting(&self) {
        self.clock().disconnected();
    }

    /// The connection broke.
    pub(crate) fn disconnected(&self) {
        self.clock().disconnected();
        self.servers.disconnected(&self.address, self.node());
    }

    /// The name of the node leads to another server, and the connection to this one has ended.
    pub(crate) fn was_left(&self) {
        self.servers.leave(&self.address, self.node());
    }

    /// Returns the run id of the server that was last connected, if it is known.
    pub(crate) fn run_id(&self) -> Option<Box<str>> {
        self.servers.run_id(&self.address)
    }

    /// The server, which votes, has answered to what was `sent`.
    pub(crate) fn answered(&self, sent: Instant, received: Instant) {
        self.servers.round_trips.measured(self.node(), &self.address, received.since(sent));
    }

    /// A notice that is here now and has come on the connection on which the server tells its time, with what it proves.
    pub(crate) fn proven(&self, notice: Notice) -> Notice {
        let Notice::Claimed(claim) = notice else { return notice };
        if self.is_member() && !self.has_own_channels() {
            // A cluster passes messages on, so that this one may be of another member: of its clock and its data, and behind
            // answers of that member which say that the claim is over.
            return Notice::Granted;
        }
        let earliest = self.clock().earliest(claim.begun, self.now(), self.servers.rules());
        earliest.map_or(Notice::Granted, |from| Notice::Proven(ProvenClaim { length: claim.length, from }))
    }

    /// The server has told its `time`, since 1970, in the answer that is here to what was `sent`.
    pub(crate) fn told(&self, time: Duration, sent: Instant) {
        let received = self.now();
        self.time_due.done(received, FRESH);
        self.step_check_due.done(received, FRESH);
        self.told_at(received, time, sent);
    }

    /// The same, in an answer that was `received` among the many with which a connection begins. It is slower than a short one, for which
    /// the server is asked with the next ballot.
    pub(crate) fn told_first(&self, received: Instant, time: Duration, sent: Instant) {
        self.time_due.reset();
        self.step_check_due.done(received, FRESH);
        self.told_at(received, time, sent);
    }

    fn told_at(&self, received: Instant, time: Duration, sent: Instant) {
        let mut clock = self.clock();
        let step = clock.observe(time, sent, received);
        let news = clock.news(NEWS);
        drop(clock);
        if let Some(ahead) = news {
            self.servers.is_ahead(&self.address, self.node(), Some(ahead));
        }
        if let Some(step) = step {
            self.servers.stepped(self.node(), step);
        }
    }

    /// Whether the server is to be asked for its time `now`. Who is told so asks.
    pub(crate) fn is_time_due(&self, now: Instant) -> bool {
        self.time_due.is_now(now, FRESH)
    }

    /// Returns `true` if a command that takes a lock asks the server for its time `now`, since its clock was last compared too long ago. The
    /// caller asks then.
    pub(crate) fn is_step_check_due(&self, now: Instant) -> bool {
        self.step_check_due.is_now(now, FRESH)
    }

    /// Returns `true` if the settings are to be compared with those of other processes `now`. The caller does so then.
    pub(crate) fn is_comparison_due(&self, now: Instant) -> bool {
        self.comparison_due.is_now(now, COMPARED_EVERY)
    }

    /// Returns the line of settings to leave at the server, and the line to remove: that of this process before, if it was another one.
    /// `None` for a member of a cluster, where the key would move with its slot, and if there are no settings to compare.
    pub(crate) fn settings_to_leave(&self) -> Option<(String, Box<str>)> {
        let line = self.servers.settings().filter(|_| !self.is_member())?;
        let before = self.left_settings().clone();
        let before = if *before == *line { Box::default() } else { before };
        Some((line, before))
    }

    /// Records that the server has the `line` of this process, and those of `others`, which differ. That is logged now and then.
    pub(crate) fn has_left_settings(&self, line: String, others: &[OtherSettings]) {
        let now = self.now();
        self.comparison_due.done(now, COMPARED_EVERY);
        *self.left_settings() = line.into();
        if let Some(first) = others.first()
            && let Some(times) = self.differences.times(now, SAME_REFUSAL)
        {
            let texts = [&*first.names, &first.theirs, &first.ours];
            events::settings_differ(&self.address, texts, others.len(), times);
        }
    }

    /// The user may not leave the settings at the server.
    pub(crate) fn refuses_settings(&self) {
        self.comparison_due.done(self.now(), COMPARISON_REFUSED);
    }

    fn left_settings(&self) -> MutexGuard<'_, Box<str>> {
        // No code that can panic runs under this mutex.
        self.left_settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if the server wrote every command to disk when it was last asked.
    pub(crate) fn is_durable(&self) -> bool {
        self.servers.is_durable(&self.address)
    }

    /// Records the new receipt of this process in the data of the server.
    pub(crate) fn has_left_receipt(&self, marker: Marker) {
        self.servers.has_left_receipt(&self.address, marker);
    }

    /// Records that the server does not write every command to disk any more.
    pub(crate) fn is_not_durable(&self) {
        self.servers.is_not_durable(&self.address);
    }

    /// The user may not ask for the time of the server, which counts as if that were ours. It is asked again on the next connection: the
    /// server notes each refusal.
    pub(crate) fn tells_no_time(&self, now: Instant) {
        self.time_due.done(now, Duration::MAX);
        self.step_check_due.done(now, Duration::MAX);
        self.clock().untold();
        self.servers.is_ahead(&self.address, self.node(), None);
    }

    fn clock(&self) -> MutexGuard<'_, ServerClock> {
        // No code that can panic runs under this mutex.
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::owner_token::ManagerId;
    use crate::node::Environment;
    use crate::node::abstention::Caution;
    use crate::protocol::command::Claim;
    use crate::protocol::quorum::Quorum;
    use crate::protocol::rules::Rules;
    use crate::protocol::timing::CLAIM;
    use crate::request::AfterRestart;
    use crate::time::ballot_clock::{Ahead, Believed};
    use crate::time::clock::{Clock, ClockError};
    use tokio::time::advance;

    /// What the server's clock shows all the time.
    const TIME: Duration = Duration::from_secs(1_800_000_000);

    #[tokio::test(start_paused = true)]
    async fn what_was_told_on_one_connection_proves_nothing_on_the_next() {
        let servers = Environment::of_lone_node(ManagerId::random(), Clock::tokio()).servers;
        let facts = ServerFacts::new("node", servers);
        // No time is earlier than the origin of the clock.
        advance(CLAIM).await;
        let told = || facts.told(TIME, facts.now());
        let proves =
            || matches!(facts.proven(Notice::Claimed(Claim { length: CLAIM, begun: TIME })), Notice::Proven(_));
        assert!(!proves(), "nothing was told");
        told();
        assert!(proves());
        facts.disconnected();
        assert!(!proves());
        // The last answers are handed out when it is known that the connection is broken.
        told();
        facts.connecting();
        assert!(!proves());
        told();
        assert!(proves());
    }

    /// A process of one server whose clock shows [`TIME`] at the origin, and for how long what it sends and what it hears is on its
    /// way.
    struct Process {
        facts: ServerFacts,
        servers: Arc<ServerRegister>,
        origin: tokio::time::Instant,
        there: Duration,
        back: Duration,
    }

    impl Process {
        fn new(way: [u64; 2]) -> Self {
            Self::drifting(0, way)
        }

        /// Its clock runs too fast by so many parts in a million.
        fn drifting(drift_ppm: i32, [there, back]: [u64; 2]) -> Self {
            let ([there, back], origin) = ([there, back].map(Duration::from_micros), tokio::time::Instant::now());
            let clock = Clock::Tokio { origin, error: ClockError { drift_ppm, skew_ms: 0 } };
            let servers = Environment::of_lone_node(ManagerId::random(), clock).servers;
            Self { facts: ServerFacts::new("node", Arc::clone(&servers)), servers, origin, there, back }
        }

        fn time_there(&self) -> Duration {
            TIME + self.origin.elapsed()
        }

        /// The server tells its time, and what is said is on its way for that much longer, there and back.
        async fn hears_the_time(&self, [there, back]: [u64; 2]) {
            let sent = self.facts.now();
            advance(self.there + Duration::from_millis(there)).await;
            let time = self.time_there();
            advance(self.back + Duration::from_millis(back)).await;
            self.facts.told(time, sent);
        }

        fn draws(&self) -> u64 {
            let number = self.servers.ballots.draw(7).unwrap().number;
            assert!(number <= in_ballots(self.time_there()), "it is ahead of the server");
            number
        }
    }

    /// The time of a server as a ballot.
    fn in_ballots(time: Duration) -> u64 {
        let clock = Environment::of_lone_node(ManagerId::random(), Clock::tokio()).servers;
        clock
            .ballots
            .believe(Believed::Servers(Ahead::new(i64::try_from(time.as_micros()).unwrap(), clock.clock.now())));
        clock.ballots.draw(7).unwrap().number
    }

    #[tokio::test(start_paused = true)]
    async fn who_hears_that_a_lock_is_free_draws_more_than_the_owner_before() {
        let paths = [[50, 50], [5000, 200], [200, 5000], [40_000, 40_000], [90, 30]];
        let processes = paths.map(Process::new);
        // The first answers were slow, in one direction or the other: the server was frozen, or the process.
        for (process, slow) in processes.iter().zip([[0, 0], [10_000, 0], [0, 20], [0, 0], [300, 0]]) {
            process.hears_the_time(slow).await;
            process.hears_the_time([0, 0]).await;
        }
        let mut accepted = 0;
        for turn in 0..200 {
            let owner = &processes[(turn * turn + turn / 5) % 5];
            if turn % 7 == 0 {
                for process in &processes {
                    process.hears_the_time([turn as u64 * 30, 0]).await;
                    process.hears_the_time([0, turn as u64]).await;
                }
                // What was heard long ago counts less.
                for process in &processes {
                    process.hears_the_time([0, 0]).await;
                }
            }
            // It was told that the lock is free by a message that was on its way when its draws were accepted last.
            advance(owner.back).await;
            let ballot = owner.draws();
            assert!(ballot > accepted, "refused in turn {turn}");
            accepted = ballot;
            // It takes the lock, and gives it back.
            advance(2 * owner.there + owner.back).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_drawn_is_never_ahead_of_the_server() {
        for drift_ppm in [-100, 0, 100] {
            let process = Process::drifting(drift_ppm, [50, 50]);
            for pause in [0, 1, 60, 3600, 24 * 3600] {
                // The first answer is slow in one direction, and the next one in the other.
                process.hears_the_time([3000, 0]).await;
                process.draws();
                process.hears_the_time([0, 3000]).await;
                advance(Duration::from_secs(pause)).await;
                process.draws();
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_is_asked_for_its_time_when_it_has_not_told_it_for_long() {
        let process = Process::new([0, 0]);
        let is_due = || process.facts.is_time_due(process.facts.now());
        assert_eq!([is_due(), is_due()], [true, false], "it is asked once");
        process.hears_the_time([0, 0]).await;
        advance(FRESH / 2).await;
        assert!(!is_due());
        process.hears_the_time([0, 0]).await;
        advance(FRESH).await;
        assert_eq!([is_due(), is_due()], [true, false]);
        advance(FRESH).await;
        assert!(is_due(), "it has not answered");
    }

    #[tokio::test(start_paused = true)]
    async fn command_that_takes_a_lock_asks_for_a_time_that_is_too_old() {
        let process = Process::new([0, 0]);
        let is_due = || process.facts.is_step_check_due(process.facts.now());
        process.facts.told_first(process.facts.now(), process.time_there(), process.facts.now());
        assert!(!is_due(), "the handshake has told it");
        advance(FRESH / 2).await;
        process.hears_the_time([0, 0]).await;
        advance(FRESH / 2).await;
        assert!(!is_due(), "a renewal has told it");
        advance(FRESH / 2).await;
        assert_eq!([is_due(), is_due()], [true, false], "it is asked once");
        advance(FRESH).await;
        assert!(is_due(), "it has not answered");
        process.facts.tells_no_time(process.facts.now());
        advance(100 * FRESH).await;
        assert!(!is_due(), "it may not be asked");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_may_not_be_asked_counts_as_if_it_showed_our_time() {
        let process = Process::new([0, 0]);
        assert_eq!(process.servers.ballots.draw(7), None);
        process.facts.tells_no_time(process.facts.now());
        advance(100 * FRESH).await;
        assert!(!process.facts.is_time_due(process.facts.now()), "nor is it asked again");
        let ours = Duration::from_micros(process.servers.clock.wall_micros());
        assert_eq!(process.servers.ballots.draw(7).unwrap().number, in_ballots(ours));
        // On the next connection it may be.
        for _ in 0..2 {
            let now = process.facts.now();
            process.facts.told_first(now, process.time_there(), now);
            let number = process.servers.ballots.draw(8).unwrap().number;
            assert!(number.abs_diff(in_ballots(process.time_there())) <= 1, "{number}");
            assert!(process.facts.is_time_due(now), "a short answer is sooner here");
            process.facts.tells_no_time(now);
        }
    }

    /// Two members answer soon, and are no majority of three nodes.
    #[tokio::test(start_paused = true)]
    async fn the_members_of_a_cluster_are_one_node() {
        let caution = Caution { after_restart: AfterRestart::Trust, rules: Rules::default() };
        let servers = Arc::new(ServerRegister::new(Clock::tokio(), caution, Quorum::of(3, 0), 0.01));
        let member = |address| ServerFacts::of_member(address, "cluster", Arc::clone(&servers));
        let (near, far) = (Duration::from_millis(1), Duration::from_millis(80));
        let (members, server) = (["m1", "m2"].map(member), ServerFacts::new("server", Arc::clone(&servers)));
        let now = server.now();
        for (facts, distance) in [(&members[0], near), (&members[1], near), (&server, far)] {
            facts.answered(now, now.after(distance));
        }
        assert_eq!(servers.round_trips.to_quorum(), far);
    }

    #[tokio::test(start_paused = true)]
    async fn a_member_proves_a_claim_on_channels_of_its_own_alone() {
        let servers = Environment::of_lone_node(ManagerId::random(), Clock::tokio()).servers;
        advance(CLAIM).await;
        let claimed = Notice::Claimed(Claim { length: CLAIM, begun: TIME });
        let member = ServerFacts::of_member("member", "cluster", servers);
        for (are_own, expected) in [(false, false), (true, true), (false, false)] {
            member.has_channels(are_own);
            member.told(TIME, member.now());
            assert_eq!(matches!(member.proven(claimed), Notice::Proven(_)), expected, "{are_own}");
        }
    }
}
