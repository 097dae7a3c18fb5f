//! A simulated Redis server: the state machine of the memory node, with a clock, channels and troubles of its own.

use crate::clock::Instant;
use crate::node::memory::State;
use crate::node::{Command, Reply, Wakeup};
use crate::rules::Rules;
use crate::token::OwnerToken;
use crate::token_clock::TokenTime;
use std::collections::{HashMap, HashSet};

pub(super) struct Server {
    state: State,
    rules: Rules,
    /// How much faster its clock runs, in parts in a million.
    ppm: i32,
    /// It executes nothing until then.
    pub(super) frozen_until: Instant,
    /// It cannot be reached until then.
    pub(super) down_until: Instant,
    subscribers: Vec<Subscriber>,
    /// When each token that ever waited was first put into a queue.
    queued_since: HashMap<OwnerToken, Instant>,
    /// Tokens that a connection brought here after its end, maybe later than the next connection their release.
    ghosts: HashSet<OwnerToken>,
}

/// A connection that a channel is open on, as far as the server knows.
struct Subscriber {
    channel: String,
    wire: usize,
}

/// What the execution of one command led to.
pub(super) struct Executed {
    pub(super) reply: Reply,
    pub(super) seen: Option<TokenTime>,
    /// Wake-ups and the wires that they go out on.
    pub(super) published: Vec<(usize, Wakeup)>,
}

impl Server {
    pub(super) fn new(ppm: i32, rules: Rules, origin: Instant) -> Self {
        let state = State::following(rules);
        Self {
            state,
            rules,
            ppm,
            frozen_until: origin,
            down_until: origin,
            subscribers: Vec::new(),
            ghosts: HashSet::new(),
            queued_since: HashMap::new(),
        }
    }

    pub(super) fn execute(&mut self, now: Instant, command: &Command) -> Executed {
        let Self { state, subscribers, .. } = self;
        let mut published = Vec::new();
        let (reply, seen) = state.execute(now.drifted(self.ppm), command, &mut |channel, wakeup| {
            let wires = || subscribers.iter().filter(|known| known.channel == channel).map(|known| known.wire);
            // Of several connections of one client at most the newest still exists.
            if let Some(newest) = wires().max() {
                published.push((newest, wakeup));
            }
            wires().count()
        });
        if let Reply::Queued { .. } = reply {
            self.queued_since.entry(command.subject.token).or_insert(now);
        }
        Executed { reply, seen, published }
    }

    pub(super) fn haunt(&mut self, token: OwnerToken) {
        self.ghosts.insert(token);
    }

    pub(super) fn is_haunted_by(&self, token: OwnerToken) -> bool {
        self.ghosts.contains(&token)
    }

    pub(super) fn subscribe(&mut self, channel: &str, wire: usize) {
        self.subscribers.push(Subscriber { channel: channel.to_owned(), wire });
    }

    pub(super) fn forget(&mut self, wire: usize) {
        self.subscribers.retain(|known| known.wire != wire);
    }

    /// Loses its memory.
    pub(super) fn wipe(&mut self) {
        self.state = State::following(self.rules);
    }

    /// Whether it would answer now.
    pub(super) fn is_well(&self, now: Instant) -> bool {
        self.frozen_until.max(self.down_until) <= now
    }

    pub(super) fn owner(&self, key: &str, now: Instant) -> Option<OwnerToken> {
        self.state.owner(key, now.drifted(self.ppm))
    }

    /// The tokens in the queue of `key`, and since when they have been there.
    pub(super) fn queued_since(&self, key: &str, now: Instant) -> Vec<(OwnerToken, Instant)> {
        let queue = self.state.queue(key, now.drifted(self.ppm)).into_iter();
        queue.filter_map(|token| Some((token, *self.queued_since.get(&token)?))).collect()
    }

    pub(super) fn tokens(&self, key: &str, now: Instant) -> Vec<OwnerToken> {
        self.state.tokens(key, now.drifted(self.ppm))
    }

    /// What another program does that knows nothing of queues.
    pub(super) fn delete(&mut self, key: &str, token: OwnerToken, now: Instant) {
        self.state.delete(key, token, now.drifted(self.ppm));
    }
}
