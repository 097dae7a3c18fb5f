//! The lock protocol over several nodes.
mod action;
mod canonical;
mod client;
mod failure;
mod forgery;
mod lone_client;
mod message;
mod network;
pub mod node;
mod progress;
mod scenario;
mod sharing;
mod show;
mod state;
mod world;

pub use action::Action;
pub use lone_client::{Client, Known};
pub use message::{Command, Reply};
pub use scenario::{Scenario, UNBOUNDED};
pub use state::{Phase, State};

use crate::search::Model;
use scenario::DETACHED;
use world::World;

impl Model for Scenario {
    type State = State;
    type Action = Action;

    fn initial(&self) -> Vec<State> {
        let fast_sets = if self.fast { 1 << self.tokens } else { 1 };
        (0..fast_sets).map(|fast| self.started(fast)).collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        action::enabled(self, state, actions);
    }

    fn apply(&self, state: &State, action: Action) -> State {
        action::apply(self, state, action)
    }

    fn canonical(&self, state: State) -> State {
        canonical::canonical(self, state)
    }

    fn encode(&self, state: &State, bytes: &mut Vec<u8>) {
        state.encode(self.nodes, self.all_tokens(), bytes);
    }

    fn decode(&self, bytes: &mut &[u8]) -> State {
        State::decode(self.nodes, self.all_tokens(), bytes)
    }

    fn violation(&self, state: &State, stuck: bool) -> Option<String> {
        progress::violation(self, state, stuck)
    }

    fn show(&self, state: &State) -> String {
        show::show(self, state)
    }
}

impl Scenario {
    /// Returns the state in which all tokens have sent their first commands. Slower commands cover a later start.
    fn started(&self, fast: usize) -> State {
        let bounds = State {
            crashes: self.crashes,
            cuts: self.cuts,
            failures: self.failures,
            forgeries: self.forgeries,
            expiries: self.expiries,
            polls: self.polls,
            ..State::default()
        };
        let mut world = World::new(self, &bounds);
        for token in 0..self.tokens {
            if self.adopters > 0 && token == DETACHED {
                world.detach();
            } else if self.free.is_some() {
                world.state.phases[token] = Phase::Wait;
            } else if self.adopts(token) {
                world.try_at_once(token, Command::Adopt);
            } else if fast >> token & 1 == 1 {
                world.try_at_once(token, Command::SetNx);
            } else {
                world.wait(token);
            }
        }
        if let Some(made_up) = self.made_up() {
            world.state.phases[made_up] = Phase::Left;
        }
        world.state
    }
}
