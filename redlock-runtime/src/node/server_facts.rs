//! State that all connections to one address share: known facts about the server, and its clock.

use crate::error::NodeError;
use crate::node::abstention::Abstention;
use crate::node::forbidden_queue::ForbiddenQueue;
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

/// Minimum change of the offset between a server's clock and ours that is reported for fencing numbers, in microseconds. Too small: each
/// answer with the time causes a comparison with the other servers. Too large: fencing numbers are refused if the lock changes hands faster
/// than this.
const NEWS: u64 = 100;

/// Age from which the last time of a server is too old: the next ballot, or the next command that takes a lock, queries it. Too small: more
/// commands. Too large: drifting clocks make ballots smaller than those of other processes. A step of the clock is also noticed later if no
/// lock is renewed.
pub(crate) const FRESH: Duration = Duration::from_secs(10);

/// Minimum time between two log events for a refused subscription. Too small: an unstable server causes an event for each connection. Too
/// large: a reader of the log misses it.
const SAME_REFUSAL: Duration = Duration::from_secs(60);

/// Minimum time between two log events for queues that the user may not use. Too small: each lock causes an event. Too large: a reader of
/// the log misses it.
const SAME_FORBIDDEN: Duration = Duration::from_secs(60);

/// Time between two comparisons of the settings with other processes. Too small: more commands. Too large: a line is older than its
/// lifetime before it is written again.
pub(crate) const COMPARED_EVERY: Duration = Duration::from_secs(20);

/// Pause after the server has refused the settings, for lack of a permission. Too small: the server logs each refusal. Too large: a
/// permission that was granted has no effect for longer.
const COMPARISON_REFUSED: Duration = Duration::from_secs(3600);

/// Known facts about the server at one address.
#[derive(Debug)]
pub(crate) struct ServerFacts {
    address: Box<str>,
    /// The label of the node of the cluster that the server belongs to.
    cluster: Option<Box<str>>,
    servers: Arc<ServerRegister>,
    clock: Mutex<ServerClock>,
    /// Time of the next query for its time.
    time_due: DueTime,
    /// Time of the next query by a command that takes a lock. The answer of the handshake is sufficient for this command, but not for a
    /// ballot.
    step_check_due: DueTime,
    pub(crate) counters: NodeCounters,
    pub(crate) forbidden_queue: ForbiddenQueue,
    /// Throttle for the event that the user may not use the queue of a lock.
    forbidden: Throttle,
    /// `true` if a member of a cluster has separate channels.
    has_own_channels: AtomicBool,
    older_quorums: Mutex<OlderQuorums>,
    /// Throttle for the event that it refuses the subscription.
    refusals: Throttle,
    /// Time of the next comparison of settings.
    comparison_due: DueTime,
    /// The line of settings that this process last left there.
    left_settings: Mutex<Box<str>>,
    /// Throttle for the event that other settings were found there.
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
            forbidden_queue: ForbiddenQueue::default(),
            forbidden: Throttle::default(),
            has_own_channels: AtomicBool::new(false),
            older_quorums: Mutex::default(),
            refusals: Throttle::default(),
            comparison_due: DueTime::default(),
            left_settings: Mutex::default(),
            differences: Throttle::default(),
        }
    }

    /// Creates the facts about a member of the cluster that is the node called `cluster`.
    pub(crate) fn of_member(address: &str, cluster: &str, servers: Arc<ServerRegister>) -> Self {
        Self { cluster: Some(cluster.into()), ..Self::new(address, servers) }
    }

    /// Returns `true` if the server is known to be a member of a cluster.
    pub(crate) const fn is_member(&self) -> bool {
        self.cluster.is_some()
    }

    /// Records if the member of a cluster has separate channels.
    pub(crate) fn set_own_channels(&self, are_own: bool) {
        self.has_own_channels.store(are_own, Ordering::Release);
    }

    /// Returns `true` if the channels of the member are used by no other member.
    pub(crate) fn has_own_channels(&self) -> bool {
        self.has_own_channels.load(Ordering::Acquire)
    }

    /// Returns the label of the node that the server is, or belongs to.
    pub(crate) fn node(&self) -> &str {
        self.cluster.as_deref().unwrap_or(&self.address)
    }

    /// Records that the server has refused the subscription, by `error`. This is logged from time to time.
    pub(crate) fn on_subscription_refused(&self, error: &NodeError) {
        if let Some(times) = self.refusals.times(self.now(), SAME_REFUSAL) {
            events::not_listening(&self.address, error, times);
        }
    }

    /// Records that the user may use the lock with this `name`, and not its queue. This is logged from time to time.
    pub(crate) fn on_queue_forbidden(&self, name: &str) {
        self.forbidden_queue.record(name);
        if let Some(times) = self.forbidden.times(self.now(), SAME_FORBIDDEN) {
            events::queue_forbidden(&self.address, times);
        }
    }

    /// Returns the time by our clock.
    pub(crate) fn now(&self) -> Instant {
        self.servers.clock.now()
    }

    /// Records a connection to a server with this `identity`. Returns its abstention.
    ///
    /// # Errors
    /// [`NodeError::SameServer`] if it has a vote already, under another address.
    pub(crate) fn connected(&self, identity: Option<Identity>) -> Result<Abstention, NodeError> {
        self.servers.connected(&self.address, self.node(), identity)
    }

    /// Returns the number of the last receipt of this process in the data of the server.
    pub(crate) fn receipt(&self) -> Option<u64> {
        self.servers.receipt(&self.address)
    }

    /// Records that the server is a replica with this `identity`.
    pub(crate) fn record_replica(&self, identity: Identity) {
        self.servers.record_replica(&self.address, self.node(), identity);
    }

    /// Returns `true` if a loss of data by the server would matter.
    pub(crate) fn is_distrusted(&self) -> bool {
        self.servers.distrusts()
    }

    /// Returns `true` if connections keep a marker in the data of servers.
    pub(crate) fn has_marker(&self) -> bool {
        self.servers.has_markers()
    }

    /// Returns `true` if the server, which reports the data set `data`, still has its previous data.
    pub(crate) fn has_kept(&self, data: DataSet) -> bool {
        self.servers.has_kept(&self.address, data)
    }

    /// Records that the server has discarded data, although its process and its connection are the same.
    pub(crate) fn on_data_discarded(&self) {
        self.servers.on_possible_data_change(self.node());
    }

    /// Returns how long the node abstains after `at`, if it does.
    pub(crate) fn abstains_for(&self, abstention: Abstention, at: Instant) -> Option<Duration> {
        abstention.left(at, || {
            // No code that can panic runs under this mutex.
            let mut quorums = self.older_quorums.lock().unwrap_or_else(PoisonError::into_inner);
            *quorums = self.servers.older_quorums(&self.address, *quorums, at);
            quorums.are_there
        })
    }

    /// Records that a connection is about to be made. Messages on the previous one may have arrived after its end was reported.
    pub(crate) fn connecting(&self) {
        self.clock().disconnected();
    }

    /// Records that the connection broke.
    pub(crate) fn disconnected(&self) {
        self.clock().disconnected();
        self.servers.disconnected(&self.address, self.node());
    }

    /// Records that the name of the node leads to another server, and that the connection to this one has ended.
    pub(crate) fn on_server_left(&self) {
        self.servers.leave(&self.address, self.node());
    }

    /// Returns the run id of the server that was last connected, if it is known.
    pub(crate) fn run_id(&self) -> Option<Box<str>> {
        self.servers.run_id(&self.address)
    }

    /// Records a reply of the server, which has a vote, to a command that was `sent`.
    pub(crate) fn answered(&self, sent: Instant, received: Instant) {
        self.servers.round_trips.measured(self.node(), &self.address, received.since(sent));
    }

    /// Adds the proof to a notice that arrives now, on the connection on which the server also reports its time.
    pub(crate) fn proven(&self, notice: Notice) -> Notice {
        let Notice::Claimed(claim) = notice else { return notice };
        if self.is_member() && !self.has_own_channels() {
            // A cluster forwards messages. This one may come from another member. It then depends on the clock and the data of that member,
            // and may be older than replies of that member which end the claim.
            return Notice::Granted;
        }
        let earliest = self.clock().earliest(claim.begun, self.now(), self.servers.rules());
        earliest.map_or(Notice::Granted, |from| Notice::Proven(ProvenClaim { length: claim.length, from }))
    }

    /// Records the `time` of the server, since 1970, in a reply that arrives now to a query that was `sent`.
    pub(crate) fn told(&self, time: Duration, sent: Instant) {
        let received = self.now();
        self.time_due.done(received, FRESH);
        self.step_check_due.done(received, FRESH);
        self.told_at(received, time, sent);
    }

    /// Like [`told`](Self::told), for a reply that was `received` among the many replies of a handshake. It is slower than a short one; the
    /// next ballot requests a short one.
    pub(crate) fn record_handshake_time(&self, received: Instant, time: Duration, sent: Instant) {
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
            self.servers.record_clock_offset(&self.address, self.node(), Some(ahead));
        }
        if let Some(step) = step {
            self.servers.stepped(self.node(), step);
        }
    }

    /// Returns `true` if the server must be queried for its time `now`. The caller then does so.
    pub(crate) fn try_begin_time_query(&self, now: Instant) -> bool {
        self.time_due.is_now(now, FRESH)
    }

    /// Returns `true` if a command that takes a lock must query the time of the server `now`: its clock was last compared too long ago. The
    /// caller then does so.
    pub(crate) fn try_begin_step_check(&self, now: Instant) -> bool {
        self.step_check_due.is_now(now, FRESH)
    }

    /// Returns `true` if the settings must be compared with other processes `now`. The caller then does so.
    pub(crate) fn try_begin_comparison(&self, now: Instant) -> bool {
        self.comparison_due.is_now(now, COMPARED_EVERY)
    }

    /// Returns the line of settings to leave at the server, and the previous line of this process to remove, if it differs. Returns `None`
    /// for a member of a cluster, where the key would move with its slot, and without settings to compare.
    pub(crate) fn settings_to_store(&self) -> Option<(String, Box<str>)> {
        let line = self.servers.settings().filter(|_| !self.is_member())?;
        let before = self.left_settings().clone();
        let before = if *before == *line { Box::default() } else { before };
        Some((line, before))
    }

    /// Records that the server has the `line` of this process, and the differing lines of `others`. This is logged from time to time.
    pub(crate) fn on_settings_stored(&self, line: String, others: &[OtherSettings]) {
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

    /// Records that the user may not leave the settings at the server.
    pub(crate) fn on_settings_refused(&self) {
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
    pub(crate) fn on_receipt_stored(&self, marker: Marker) {
        self.servers.on_receipt_stored(&self.address, marker);
    }

    /// Records that the server no longer writes every command to disk.
    pub(crate) fn record_not_durable(&self) {
        self.servers.record_not_durable(&self.address);
    }

    /// Records that the user may not query the time of the server. Our clock is used in its place. It is queried again on the next
    /// connection: the server logs each refusal.
    pub(crate) fn on_time_refused(&self, now: Instant) {
        self.time_due.done(now, Duration::MAX);
        self.step_check_due.done(now, Duration::MAX);
        self.clock().untold();
        self.servers.record_clock_offset(&self.address, self.node(), None);
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

    /// The constant time of the server's clock.
    const TIME: Duration = Duration::from_secs(1_800_000_000);

    #[tokio::test(start_paused = true)]
    async fn time_from_one_connection_proves_no_claim_on_the_next() {
        let servers = Environment::for_single_node(ManagerId::random(), Clock::tokio()).servers;
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
        // The last replies are dispatched after the end of the connection is known.
        told();
        facts.connecting();
        assert!(!proves());
        told();
        assert!(proves());
    }

    /// A process of one server whose clock shows [`TIME`] at the origin, and the delays of its messages in both directions.
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

        /// The clock of the process runs too fast by this many parts in a million.
        fn drifting(drift_ppm: i32, [there, back]: [u64; 2]) -> Self {
            let ([there, back], origin) = ([there, back].map(Duration::from_micros), tokio::time::Instant::now());
            let clock = Clock::Tokio { origin, error: ClockError { drift_ppm, skew_ms: 0 } };
            let servers = Environment::for_single_node(ManagerId::random(), clock).servers;
            Self { facts: ServerFacts::new("node", Arc::clone(&servers)), servers, origin, there, back }
        }

        fn time_there(&self) -> Duration {
            TIME + self.origin.elapsed()
        }

        /// Delivers the time of the server, with these additional delays in both directions.
        async fn deliver_time(&self, [there, back]: [u64; 2]) {
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

    /// Converts the time of a server to a ballot.
    fn in_ballots(time: Duration) -> u64 {
        let clock = Environment::for_single_node(ManagerId::random(), Clock::tokio()).servers;
        clock
            .ballots
            .believe(Believed::Servers(Ahead::new(i64::try_from(time.as_micros()).unwrap(), clock.clock.now())));
        clock.ballots.draw(7).unwrap().number
    }

    #[tokio::test(start_paused = true)]
    async fn notified_waiter_draws_larger_ballot_than_previous_holder() {
        let paths = [[50, 50], [5000, 200], [200, 5000], [40_000, 40_000], [90, 30]];
        let processes = paths.map(Process::new);
        // The first replies were slow, in one direction or the other: the server was frozen, or the process.
        for (process, slow) in processes.iter().zip([[0, 0], [10_000, 0], [0, 20], [0, 0], [300, 0]]) {
            process.deliver_time(slow).await;
            process.deliver_time([0, 0]).await;
        }
        let mut accepted = 0;
        for turn in 0..200 {
            let owner = &processes[(turn * turn + turn / 5) % 5];
            if turn % 7 == 0 {
                for process in &processes {
                    process.deliver_time([turn as u64 * 30, 0]).await;
                    process.deliver_time([0, turn as u64]).await;
                }
                // An old reply has less weight.
                for process in &processes {
                    process.deliver_time([0, 0]).await;
                }
            }
            // The message that the lock is free was on its way when the process's last ballots were accepted.
            advance(owner.back).await;
            let ballot = owner.draws();
            assert!(ballot > accepted, "refused in turn {turn}");
            accepted = ballot;
            // It takes the lock, and releases it.
            advance(2 * owner.there + owner.back).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn drawn_ballot_is_never_ahead_of_the_server_clock() {
        for drift_ppm in [-100, 0, 100] {
            let process = Process::drifting(drift_ppm, [50, 50]);
            for pause in [0, 1, 60, 3600, 24 * 3600] {
                // The first reply is slow in one direction, and the next one in the other.
                process.deliver_time([3000, 0]).await;
                process.draws();
                process.deliver_time([0, 3000]).await;
                advance(Duration::from_secs(pause)).await;
                process.draws();
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn server_time_is_requested_when_the_last_one_is_old() {
        let process = Process::new([0, 0]);
        let is_due = || process.facts.try_begin_time_query(process.facts.now());
        assert_eq!([is_due(), is_due()], [true, false], "it is asked once");
        process.deliver_time([0, 0]).await;
        advance(FRESH / 2).await;
        assert!(!is_due());
        process.deliver_time([0, 0]).await;
        advance(FRESH).await;
        assert_eq!([is_due(), is_due()], [true, false]);
        advance(FRESH).await;
        assert!(is_due(), "it has not answered");
    }

    #[tokio::test(start_paused = true)]
    async fn acquire_requests_the_server_time_when_the_last_one_is_old() {
        let process = Process::new([0, 0]);
        let is_due = || process.facts.try_begin_step_check(process.facts.now());
        process.facts.record_handshake_time(process.facts.now(), process.time_there(), process.facts.now());
        assert!(!is_due(), "the handshake has told it");
        advance(FRESH / 2).await;
        process.deliver_time([0, 0]).await;
        advance(FRESH / 2).await;
        assert!(!is_due(), "a renewal has told it");
        advance(FRESH / 2).await;
        assert_eq!([is_due(), is_due()], [true, false], "it is asked once");
        advance(FRESH).await;
        assert!(is_due(), "it has not answered");
        process.facts.on_time_refused(process.facts.now());
        advance(100 * FRESH).await;
        assert!(!is_due(), "it may not be asked");
    }

    #[tokio::test(start_paused = true)]
    async fn server_that_denies_its_time_counts_with_local_time() {
        let process = Process::new([0, 0]);
        assert_eq!(process.servers.ballots.draw(7), None);
        process.facts.on_time_refused(process.facts.now());
        advance(100 * FRESH).await;
        assert!(!process.facts.try_begin_time_query(process.facts.now()), "nor is it asked again");
        let ours = Duration::from_micros(process.servers.clock.wall_micros());
        assert_eq!(process.servers.ballots.draw(7).unwrap().number, in_ballots(ours));
        // The next connection may allow it.
        for _ in 0..2 {
            let now = process.facts.now();
            process.facts.record_handshake_time(now, process.time_there(), now);
            let number = process.servers.ballots.draw(8).unwrap().number;
            assert!(number.abs_diff(in_ballots(process.time_there())) <= 1, "{number}");
            assert!(process.facts.try_begin_time_query(now), "a short answer is sooner here");
            process.facts.on_time_refused(now);
        }
    }

    /// Two members answer soon, and are not a majority of three nodes.
    #[tokio::test(start_paused = true)]
    async fn round_trips_of_cluster_members_count_as_one_node() {
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
    async fn cluster_member_proves_a_claim_only_on_its_own_channels() {
        let servers = Environment::for_single_node(ManagerId::random(), Clock::tokio()).servers;
        advance(CLAIM).await;
        let claimed = Notice::Claimed(Claim { length: CLAIM, begun: TIME });
        let member = ServerFacts::of_member("member", "cluster", servers);
        for (are_own, expected) in [(false, false), (true, true), (false, false)] {
            member.set_own_channels(are_own);
            member.told(TIME, member.now());
            assert_eq!(matches!(member.proven(claimed), Notice::Proven(_)), expected, "{are_own}");
        }
    }
}
