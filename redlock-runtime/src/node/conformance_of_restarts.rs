//! Conformance of the decisions about restarted and young servers with the exhaustive model.
//!
//! The model (`tests/model/src/restarts`) explores what two clients may do with these decisions, with its own copy of them. This test drives
//! both through the same random connections, disconnections and pauses, with every rule and without each of them, and compares for how
//! long each server abstains.

use super::abstention::{Abstention, Caution};
use super::server_identity::{DataSet, Identity, Marker};
use super::server_register::{OlderQuorums, ServerRegister};
use crate::protocol::quorum::Quorum;
use crate::protocol::rules::{Rule, Rules};
use crate::request::AfterRestart;
use crate::time::clock::Clock;
use redlock_model::restarts as model;
use std::time::Duration;

/// One tick of the model, which is the time in which servers start together.
const TICK: Duration = Duration::from_secs(10);

/// Longest lease, without the precision of its expiry. It ends shortly before the last tick, so both agree at every tick.
const LONGEST: Duration = Duration::from_millis(10_000 * model::LONGEST as u64 - 5);

const STEPS: usize = 14;

/// Time of the model at which a sequence begins. Larger than all ages.
const BEGIN: u8 = 40;

/// Rules of these decisions, by their names in the model and in the code.
macro_rules! rules {
    ($($name:ident)*) => {
        [$((redlock_model::Rule::$name, Rule::$name)),*]
    };
}

const RULES: [(redlock_model::Rule, Rule); 8] = rules! {
    ReplacedDataIsForgotten PromotionsAreNoRestarts YoungServersAbstain ColdStartsAreTrusted OlderServersOutvoteYoung
    DurabilityIsProven OlderDataIsForgotten NewcomersTrustNoSettings
};

/// One client of the model and one register, after the same events.
struct Pair {
    known: Vec<Option<model::Known>>,
    now: u8,
    register: ServerRegister,
    abstentions: Vec<Abstention>,
    without: Option<redlock_model::Rule>,
}

impl Pair {
    fn new(servers: usize, without: Option<(redlock_model::Rule, Rule)>) -> Self {
        let rules = Rules { without: without.map(|(_, rule)| rule) };
        let caution = Caution { after_restart: AfterRestart::Abstain, rules };
        let register = ServerRegister::new(Clock::tokio(), caution, Quorum::of(servers, 0), 0.0);
        register.record_lease_length(LONGEST);
        let abstentions = vec![Abstention::default(); servers];
        Self { known: vec![None; servers], now: BEGIN, register, abstentions, without: without.map(|(rule, _)| rule) }
    }

    async fn tick(&mut self) {
        self.now += 1;
        tokio::time::advance(TICK).await;
    }

    fn connect(&mut self, server: usize, identity: &model::Identity) {
        self.known[server] = Some(model::Known::connected(self.known[server], identity, self.now, self.without));
        let connected = self.register.connected(name(server), name(server), Some(to_code(server, identity)));
        self.abstentions[server] = connected.unwrap();
    }

    fn disconnect(&mut self, server: usize) {
        if let Some(known) = &mut self.known[server] {
            known.disconnected(self.now);
        }
        self.register.disconnected(name(server), name(server));
    }

    /// Returns the ticks for which each server abstains, by the model and by the code.
    fn abstains(&self) -> [Vec<u8>; 2] {
        let servers = || 0..self.known.len();
        let at = self.register.clock.now();
        let by_code = servers().map(|server| {
            let older = || self.register.older_quorums(name(server), OlderQuorums::default(), at).are_there;
            let left = self.abstentions[server].left(at, older).unwrap_or_default();
            u8::try_from(left.as_millis().div_ceil(TICK.as_millis())).unwrap()
        });
        let by_model = servers().map(|server| model::abstains_for(&self.known, server, self.now, self.without));
        [by_model.collect(), by_code.collect()]
    }
}

fn name(server: usize) -> &'static str {
    ["a", "b", "c", "d", "e"][server]
}

/// Converts an identity of the model. Reported ages may be too long by a second.
fn to_code(server: usize, identity: &model::Identity) -> Identity {
    let age = |ticks: u8| u32::from(ticks) * TICK + Duration::from_secs(1);
    let id = |id: u8| Box::from(format!("{server}-{id}"));
    let marker = identity.marker.map(|marker| Marker {
        id: id(marker.id),
        age: Some(age(marker.age)),
        receipt: marker.receipt.into(),
        follows: marker.follows.map(u64::from),
    });
    let data = DataSet { id: Some(id(identity.data.id)), previous: identity.data.previous.map(id) };
    Identity { run_id: id(identity.run), uptime: age(identity.uptime), is_durable: identity.is_durable, data, marker }
}

fn random_identity(random: &mut fastrand::Rng) -> model::Identity {
    let maybe = |random: &mut fastrand::Rng| random.bool().then(|| random.u8(1..3));
    let marker = (random.u8(0..5) > 0).then(|| model::Marker {
        id: random.u8(1..3),
        age: random.u8(0..6),
        receipt: random.u8(1..3),
        follows: maybe(random),
    });
    let data = model::DataSet { id: random.u8(1..3), previous: maybe(random) };
    model::Identity { run: random.u8(1..3), uptime: random.u8(0..6), is_durable: random.bool(), data, marker }
}

/// Compares one random sequence of events. Returns for how long each server abstains after each event.
async fn compared(seed: u64, without: Option<(redlock_model::Rule, Rule)>) -> Vec<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let servers = random.usize(3..=5);
    let mut pair = Pair::new(servers, without);
    let mut decisions = Vec::new();
    for step in 0..STEPS {
        let server = random.usize(0..servers);
        let identity = random_identity(&mut random);
        match random.u8(0..6) {
            0 | 1 => pair.tick().await,
            2 => pair.disconnect(server),
            _ => pair.connect(server, &identity),
        }
        let [by_model, by_code] = pair.abstains();
        assert_eq!(by_model, by_code, "seed {seed}, step {step}, without {without:?}");
        decisions.push(by_code);
    }
    decisions
}

#[tokio::test(start_paused = true)]
async fn model_and_register_abstain_alike() {
    let mut differing = [0_u32; RULES.len()];
    for seed in 0..4000 {
        let decisions = compared(seed, None).await;
        for (rule, differing) in RULES.into_iter().zip(&mut differing) {
            *differing += u32::from(compared(seed, Some(rule)).await != decisions);
        }
    }
    // Otherwise, the test would not compare the rule.
    assert!(differing.iter().all(|differing| *differing > 10), "{differing:?}");
}
