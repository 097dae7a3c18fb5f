//! One run: everything that a seed decides, from the first connection to the last release.

use super::actor::{Actor, Planned, act, key};
use super::breaking::Operator;
use super::jobs::Jobs;
use super::network::{Network, Step};
use super::observer::Observer;
use super::profile::Profile;
use super::records::{Promise, Violation};
use super::server::Server;
use super::simulated_node::SimulatedNode;
use super::trace::Trace;
use super::workload::{Foreign, Work};
use crate::client::clock_steps::watch_clocks;
use crate::client::local_queue::LocalQueue;
use crate::client::node_handle::NodeHandle;
use crate::client::shared::Shared;
use crate::client::wakeup_router::WakeupRouter;
use crate::lock::owner_token::ManagerId;
use crate::node::abstention::Caution;
use crate::node::{Environment, ServerRegister};
use crate::protocol::timing;
use crate::request::Policy;
use crate::time::clock::{Clock, ClockError, Instant};
use crate::time::token_clock::TokenClock;
use crate::{LockError, LockManager, LockRequest, NodeError};
use fastrand::Rng;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{sleep, sleep_until, timeout};

/// Time without faults after which everything is released: a safety poll, a pause between two releases, and a reserve.
const AFTERMATH: Duration = Duration::from_secs(4);
/// Longest run. It includes the longest lease of a crashed process after the last fault.
const LIMIT: Duration = Duration::from_secs(300);
/// Time within which the next waiter removes leftovers of dead tokens: two safety polls, and a reserve.
const EXORCISM: Duration = Duration::from_secs(3);

/// Time within which the requests of a cut connection arrive.
const LATE: Duration = Duration::from_secs(1);

/// Manager number of programs without a manager.
const NOBODY: usize = usize::MAX;

/// Result of a run.
pub(super) struct Outcome {
    pub(super) violation: Option<Violation>,
    pub(super) trace: String,
    pub(super) longest_idle: Duration,
}

/// Runs one seed in virtual time.
pub(super) fn run(profile: &Profile, seed: u64, keeps_trace: bool) -> Outcome {
    // The seed of the jitter, and of the random parts of the tokens.
    fastrand::seed(seed);
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async { Run::prepare(profile, seed, keeps_trace).finished().await })
}

/// Run in progress.
struct Run {
    network: Arc<Network>,
    observer: Arc<Observer>,
    jobs: Arc<Jobs>,
    managers: Vec<LockManager>,
    /// Tasks, each with the number of its manager.
    tasks: Vec<(usize, JoinHandle<()>)>,
    faults_end: Instant,
    has_crashes: bool,
    longest_linger: Duration,
}

impl Run {
    /// Draws the servers, managers, faults and tasks of a run, and starts them.
    fn prepare(profile: &Profile, seed: u64, keeps_trace: bool) -> Self {
        let mut random = Rng::with_seed(seed);
        let clock = Clock::tokio();
        let trace = Arc::new(Trace::new(clock, keeps_trace));
        let nodes = profile.nodes[random.usize(0..profile.nodes.len())];
        let servers = (0..nodes).map(|number| server(number, profile, &mut random, clock.now())).collect();
        let network = Arc::new(Network::new(clock, random.fork(), profile, servers, trace));
        let clients = random.usize(profile.clients.clone());
        let managers: Vec<_> = (0..clients).map(|_| manager(&network, profile, nodes, &mut random)).collect();
        let observer = Arc::new(Observer::new(&network, profile));
        let faults_end = profile.faults.plan(&mut random, &network, profile.max_ttl());
        let has_crashes = profile.faults.crashes > 0 || profile.faults.loses_the_numbered;
        let (jobs, tasks, longest_linger) = (Arc::default(), Vec::new(), profile.longest_linger());
        let mut run = Self { network, observer, jobs, managers, tasks, faults_end, has_crashes, longest_linger };
        run.start(profile, &mut random);
        run
    }

    /// Starts the tasks of all programs.
    fn start(&mut self, profile: &Profile, random: &mut Rng) {
        let keys = random.usize(profile.keys.clone());
        for (client, manager) in self.managers.iter().enumerate() {
            if random.u8(0..100) < profile.shutdowns {
                let at = Duration::from_millis(random.u64(0..1500));
                self.tasks.push((client, tokio::spawn(self.actor(client, manager).shut_down(at))));
            }
            for _ in 0..random.usize(profile.tasks.clone()) {
                let actor = self.actor(client, manager);
                self.tasks.push((client, tokio::spawn(actor.run(Work::draw(random, profile, keys)))));
            }
        }
        for _ in 0..profile.operators {
            let (client, operator) = (random.usize(0..self.managers.len()), Operator::draw(random, keys));
            let actor = self.actor(client, &self.managers[client]);
            self.tasks.push((client, tokio::spawn(actor.operate(operator))));
        }
        if random.u8(0..100) < profile.foreign {
            let foreign = Foreign::draw(random, keys, profile.tree);
            let task = tokio::spawn(act(Arc::clone(&self.network), Arc::clone(&self.observer), foreign));
            self.tasks.push((NOBODY, task));
        }
    }

    fn actor(&self, client: usize, manager: &LockManager) -> Actor {
        let (network, observer) = (Arc::clone(&self.network), Arc::clone(&self.observer));
        Actor { network, observer, jobs: Arc::clone(&self.jobs), manager: manager.clone(), client }
    }

    /// Drives the events and the story of the run, until the story ends or a promise is broken.
    async fn finished(mut self) -> Outcome {
        let aborts: Vec<_> = self.tasks.iter().map(|(client, task)| (*client, task.abort_handle())).collect();
        let (network, observer) = (Arc::clone(&self.network), Arc::clone(&self.observer));
        network.look_at(network.now());
        {
            let mut story = pin!(self.story());
            let mut timer = pin!(sleep(Duration::ZERO));
            poll_fn(|cx| {
                loop {
                    // First all due events happen, and the observer looks. Then the tasks run until the next event.
                    let next = network.at_once(|| events(&network, &observer, &aborts, cx.waker()));
                    if observer.records().violation.is_some() {
                        return Poll::Ready(());
                    }
                    timer.as_mut().reset(tokio::time::Instant::now() + next.since(network.now()));
                    if timer.as_mut().poll(cx).is_pending() {
                        return story.as_mut().poll(cx);
                    }
                }
            })
            .await;
        }
        let mut records = observer.records();
        Outcome { violation: records.violation.take(), trace: network.trace.text(), longest_idle: records.longest_idle }
    }

    /// Runs all calls, waits for the last fault, and checks that everything is released.
    async fn story(&mut self) {
        let start = tokio::time::Instant::now();
        if timeout(LIMIT, self.all_calls()).await.is_err() {
            return self.observer.broken(Promise::Deadline, format!("no end in sight: {}", self.observer.waiting()));
        }
        // After the last fault, every release gets through, and only retained locks are left.
        sleep_until(start + self.faults_end.since_origin()).await;
        sleep(AFTERMATH).await;
        self.observer.unused();
        sleep(self.longest_linger).await;
        // After the longest linger, only haunted keys are left, which the next call must get.
        for key in self.observer.leftovers() {
            self.check_leftovers_do_not_block(key).await;
        }
        // Without managers, even the queues expire.
        self.managers.clear();
        sleep(timing::QUEUE_EXPIRY + LATE).await;
        self.observer.remains();
        let alive = Handle::current().metrics().num_alive_tasks();
        if alive > 0 && !self.has_crashes {
            self.observer.broken(Promise::Clean, format!("{alive} tasks are left when all managers are gone"));
        }
    }

    /// Checks that leftovers of dead tokens do not keep the next call out.
    async fn check_leftovers_do_not_block(&self, index: usize) {
        let is_alive = |(client, manager): &(usize, &LockManager)| {
            !self.network.is_crashed(*client) && !manager.shared().is_closed()
        };
        let Some((_, manager)) = self.managers.iter().enumerate().find(is_alive) else { return };
        let wait = EXORCISM + self.network.longest_expected_lease(&key(index));
        let request = LockRequest::new(key(index)).wait(wait);
        let abstains = |error: &LockError| {
            matches!(error, LockError::NoQuorum { causes, .. }
                if causes.iter().any(|cause| matches!(cause.error(), NodeError::RecentlyRestarted(_))))
        };
        // A server that may have lost locks grants none, regardless of their holders.
        if let Err(error) = manager.acquire(request).await
            && !abstains(&error)
        {
            self.observer.broken(Promise::Progress, format!("a ghost has {}: {error}", key(index)));
        }
    }

    /// Waits for all tasks. A panic that was not planned breaks a promise.
    async fn all_calls(&mut self) {
        for (_, task) in self.tasks.drain(..) {
            if let Err(error) = task.await
                && let Ok(panic) = error.try_into_panic()
                && !panic.is::<Planned>()
            {
                let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                self.observer.broken(Promise::NoPanic, format!("a task has panicked: {text}"));
            }
        }
    }
}

/// Runs all due events. Returns the time of the next one.
fn events(network: &Network, observer: &Observer, aborts: &[(usize, AbortHandle)], waker: &Waker) -> Instant {
    loop {
        match network.step(waker) {
            Step::Deliver(deliver, wakeup) => deliver(wakeup),
            Step::Crash { client } => {
                aborts.iter().filter(|(other, _)| *other == client).for_each(|(_, task)| task.abort());
            }
            Step::Look => network.look_at(network.now().after(observer.next_look())),
            Step::Wait(next) => {
                observer.look();
                return next;
            }
        }
    }
}

fn drift(random: &mut Rng, profile: &Profile) -> i32 {
    random.i32(-profile.drift_ppm..=profile.drift_ppm)
}

/// Creates a server. Unless the run is cold, it has run for a day.
fn server(number: usize, profile: &Profile, random: &mut Rng, now: Instant) -> Server {
    let is_durable = profile.are_durable || profile.faults.forget() == 0 && !profile.is_cold;
    let mut server = Server::new(number, drift(random, profile), is_durable, profile, now);
    server.has_wall_clock = !profile.has_no_wall_clocks;
    if !profile.is_cold {
        server.age();
        server.add_old_marker();
    }
    server
}

/// Returns the id of a manager, which has an earlier version for the given percentage of all numbers.
fn manager_id(number: u128, of_old: u8) -> ManagerId {
    if number % 100 < of_old.into() { ManagerId::of_old(number) } else { ManagerId::numbered(number) }
}

/// Creates a manager as the builder does, except for its nodes and clocks.
fn manager(network: &Arc<Network>, profile: &Profile, servers: usize, random: &mut Rng) -> LockManager {
    let drift_ppm = drift(random, profile);
    let skew_ms = random.i64(-profile.skew..=profile.skew);
    let error = ClockError { drift_ppm, skew_ms: if profile.has_no_wall_clocks { i64::MIN } else { skew_ms } };
    let clock = Clock::Tokio { origin: tokio::time::Instant::now(), error };
    let policy = Policy { default_ttl: profile.max_ttl(), tolerated_data_loss: profile.amnesia, ..Policy::default() };
    let environment = Environment {
        manager: manager_id(random.u128(..), profile.of_old),
        namespace: Arc::from(""),
        label: Arc::from(""),
        token_clock: Arc::new(TokenClock::new(clock)),
        changed: Arc::new(Notify::new()),
        deliver: Arc::new(|_| {}),
        connected: Arc::new(|| {}),
        servers: Arc::new(ServerRegister::new(
            clock,
            Caution { after_restart: profile.after_restart, rules: profile.rules },
            policy.quorum(servers),
            policy.drift_factor,
        )),
        replicas: None,
    };
    environment.servers.record_lease_length(policy.default_ttl);
    let router = WakeupRouter::default();
    let client = network.add_client(&environment);
    let is_late = profile.late > 0 && random.bool();
    let late = if is_late { Duration::from_millis(random.u64(0..=profile.late)) } else { Duration::ZERO };
    let starts_at = network.now().after(late);
    let nodes = (0..servers).map(|server| {
        let (deliver, connected) = (router.of_node(server), router.connected(server));
        let environment = Environment { deliver, connected, ..environment.clone() };
        let node = SimulatedNode::connect(network, (client, starts_at), server, environment);
        let handle = NodeHandle::in_background(node, clock, &Handle::current());
        if profile.has_no_deliveries { handle.without_deliveries() } else { handle }
    });
    let nodes = nodes.collect();
    let shared = Shared::new(environment, clock, policy, nodes, profile.rules);
    let local = Arc::new(LocalQueue::new(Arc::new(shared), None));
    watch_clocks(&local);
    router.connect(&local);
    LockManager::new(local)
}
