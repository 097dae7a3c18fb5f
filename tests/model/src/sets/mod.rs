//! Requests for several names, all or none of them, and for paths of a tree.
//!
//! Each token wants some names, each in a class, at a majority of the nodes. A release grants the name only to a waiter for a single
//! name. A waiter for several names is notified, and asks for all of them. The model has no time. A grant counts until the token itself
//! gives it away, or until one of its names is taken away. The model [`lock`](crate::lock) covers leases, claims and their ends.
//!
//! Connections may break: outstanding answers are lost, and the oldest command may be executed at any time. Processes may
//! end as well. The entries of an ended token at a node expire after any time, without a notice. Therefore waiters poll.

mod class;
mod node;
mod state;

use std::fmt;

pub use class::Class;
pub use node::{NAMES, Node, Notice, Reply, Verb, Wish};
pub use state::State;

use crate::rule::Rule;
use crate::search::Model;
use node::bits;
use state::{Column, Heard, Link, Phase, Sent, TOKENS};

/// Some nodes, and tokens that want these names.
#[derive(Debug, Clone, Copy)]
pub struct Sets {
    /// Number of nodes, at most 3. A majority is the quorum.
    pub nodes: usize,
    /// Number of tokens, at most 3.
    pub tokens: usize,
    /// Names that each token wants. A smaller token is older.
    pub wishes: [Wish; TOKENS],
    /// If `true`, waiters may give up.
    pub give_up: bool,
    /// Number of names that are taken away at a node from a holder of several: an operator breaks the lock of one name.
    pub taken_away: u8,
    /// If `true`, holders may downgrade to readers.
    pub lower: bool,
    /// Number of connections that break, at most 3.
    pub cuts: u8,
    /// Number of processes that end, at most 3.
    pub deaths: u8,
    /// The rule that is switched off.
    pub without: Option<Rule>,
}

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the same two numbers everywhere")]
pub enum Action {
    /// A node executes the oldest command of a token.
    Execute { token: usize, node: usize },
    /// The oldest reply or push reaches a token.
    Deliver { token: usize, node: usize },
    /// A name of a holder is taken away at a node. The grant there no longer counts.
    TakeAway { token: usize, node: usize, name: usize },
    /// A holder extends its lease at a node. This step exists only if a name was taken away there, or if the connection may break before
    /// a downgrade: otherwise it has no effect.
    Extend { token: usize, node: usize },
    /// A holder downgrades to a reader.
    Lower { token: usize },
    /// A holder releases, or a waiter gives up.
    Leave { token: usize },
    /// The connection of a token to a node breaks.
    Cut { token: usize, node: usize },
    /// A node executes a command from a cut connection.
    ExecuteStale { token: usize, node: usize },
    /// The process of a token ends.
    Die { token: usize },
    /// The entries of an ended token at a node expire.
    Expire { token: usize, node: usize },
    /// A waiter asks a node again after a silence.
    Poll { token: usize, node: usize },
}

impl Model for Sets {
    type State = State;
    type Action = Action;

    fn initial(&self) -> Vec<State> {
        let mut state = State::default();
        for column in &mut state.columns[..self.nodes] {
            for link in &mut column.links[..self.tokens] {
                link.commands.push(Sent::Acquire as u8);
            }
        }
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for token in 0..self.tokens {
            for (node, column) in state.columns[..self.nodes].iter().enumerate() {
                let Link { commands, replies, .. } = column.links[token];
                actions.extend((!commands.is_empty()).then_some(Action::Execute { token, node }));
                actions.extend((!replies.is_empty()).then_some(Action::Deliver { token, node }));
                self.losses(state, token, node, actions);
                self.breaks(state, token, node, actions);
            }
            let may_leave = match state.phases[token] {
                Phase::Holds => true,
                Phase::Waits => self.give_up,
                Phase::HasLeft | Phase::Dead => false,
            };
            let has_alone = self.wishes[token].iter().flatten().any(|class| *class != class.lowered());
            let may_lower = self.lower && has_alone && state.lowered >> token & 1 == 0;
            actions.extend((may_lower && state.phases[token] == Phase::Holds).then_some(Action::Lower { token }));
            let may_die = state.phases[token].is_alive() && state.deaths < self.deaths;
            actions.extend(may_die.then_some(Action::Die { token }));
            actions.extend(may_leave.then_some(Action::Leave { token }));
        }
    }

    fn apply(&self, state: &State, action: Action) -> State {
        let mut state = *state;
        match action {
            Action::Execute { token, node } => {
                let commands = &mut state.columns[node].links[token].commands;
                let code = commands.first();
                commands.pop();
                self.execute(&mut state, token, node, code, true);
            }
            Action::Deliver { token, node } => self.deliver(&mut state, token, node),
            Action::TakeAway { token, node, name } => self.take_away(&mut state, token, node, name),
            Action::Extend { token, node } => state.columns[node].links[token].commands.push(Sent::Extend as u8),
            Action::Lower { token } => {
                state.lowered |= 1 << token;
                for column in &mut state.columns[..self.nodes] {
                    column.links[token].commands.push(Sent::Lower as u8);
                }
            }
            Action::Leave { token } => self.leave(&mut state, token),
            Action::Cut { token, node } => self.cut(&mut state, token, node),
            Action::ExecuteStale { token, node } => {
                let code = std::mem::take(&mut state.columns[node].links[token].stale);
                self.execute(&mut state, token, node, code, false);
            }
            Action::Die { token } => self.die(&mut state, token),
            Action::Expire { token, node } => state.columns[node].node.expire(token as u8),
            Action::Poll { token, node } => state.columns[node].links[token].commands.push(Sent::Acquire as u8),
        }
        state
    }

    fn canonical(&self, mut state: State) -> State {
        state.columns[..self.nodes].sort_unstable();
        state
    }

    fn encode(&self, state: &State, bytes: &mut Vec<u8>) {
        state.encode(self.nodes, self.tokens, bytes);
    }

    fn decode(&self, bytes: &mut &[u8]) -> State {
        State::decode(self.nodes, self.tokens, bytes)
    }

    fn violation(&self, state: &State, stuck: bool) -> Option<String> {
        let holders: Vec<_> = self.those(state, Phase::Holds).collect();
        let pairs = holders.iter().flat_map(|one| holders.iter().map(move |other| (*one, *other)));
        let mut conflicts = pairs.filter(|(one, other)| one < other && self.exclude(state, *one, *other));
        if let Some((one, other)) = conflicts.next() {
            return Some(format!("t{one} and t{other} hold the lock at once"));
        }
        let is_quiet = |link: &Link| link.commands.is_empty() && link.replies.is_empty();
        let is_calm = state.columns[..self.nodes].iter().all(|column| column.links.iter().all(is_quiet));
        if !is_calm || self.is_awaited(state) {
            return None;
        }
        let is_kept_out = |token: &usize| {
            let earlier = self.those(state, Phase::Waits).filter(|other| other < token);
            holders.iter().copied().chain(earlier).any(|other| self.exclude(state, other, *token))
        };
        if let Some(token) = self.those(state, Phase::Waits).find(|token| !is_kept_out(token)) {
            return Some(format!("nothing is on its way, and t{token} waits for nobody"));
        }
        let is_empty = state.columns[..self.nodes].iter().all(|column| column.node == Node::default());
        (stuck && !is_empty).then(|| "nothing can happen any more, and a node is not empty".to_owned())
    }

    fn show(&self, state: &State) -> String {
        let phases = state.phases[..self.tokens].iter().enumerate().map(|(token, phase)| format!("t{token} {phase:?}"));
        let nodes = state.columns[..self.nodes].iter().enumerate().map(|(at, column)| {
            let tokens = |set: u8| bits(set).map(|token| format!("t{token}")).collect::<Vec<_>>().join("+");
            let names = column.node.holders.iter().zip(column.node.queue);
            let names: Vec<_> =
                names.map(|(holders, queue)| format!("[{}] {}", tokens(*holders), tokens(queue))).collect();
            format!("n{at} {}", names.join(", "))
        });
        phases.chain(nodes).collect::<Vec<_>>().join(" | ")
    }
}

impl Sets {
    /// Returns the tokens in a phase.
    fn those(&self, state: &State, phase: Phase) -> impl Iterator<Item = usize> {
        let phases = state.phases;
        (0..self.tokens).filter(move |token| phases[*token] == phase)
    }

    /// Returns `true` if two tokens conflict in their requested modes, or in the present modes of downgraded ones.
    fn exclude(&self, state: &State, one: usize, other: usize) -> bool {
        let of = |token: usize| {
            let is_lowered = state.lowered >> token & 1 == 1;
            self.wishes[token].map(|class| if is_lowered { class.map(Class::lowered) } else { class })
        };
        let pairs = of(one).into_iter().zip(of(other));
        pairs.filter_map(|(one, other)| Some((one?, other?))).any(|(one, other)| one.conflicts_with(other))
    }

    fn keeps(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    /// Adds the names that may be taken away from a holder at a node, and the extension by which it notices.
    fn losses(&self, state: &State, token: usize, node: usize, actions: &mut Vec<Action>) {
        let Column { node: at, links } = &state.columns[node];
        let Link { commands, replies, is_denied, .. } = links[token];
        if state.phases[token] != Phase::Holds || self.taken_away == 0 {
            return;
        }
        let wanted = (0..NAMES).filter(|name| self.wishes[token][*name].is_some());
        let (had, lost): (Vec<_>, Vec<_>) = wanted.partition(|name| at.holders[*name] >> token & 1 == 1);
        if state.taken_away < self.taken_away {
            actions.extend(had.into_iter().map(|name| Action::TakeAway { token, node, name }));
        }
        let is_quiet = commands.is_empty() && replies.is_empty();
        let is_new = is_quiet && !is_denied && !lost.is_empty();
        actions.extend(is_new.then_some(Action::Extend { token, node }));
    }

    fn take_away(&self, state: &mut State, token: usize, at: usize, name: usize) {
        state.taken_away += 1;
        let column = &mut state.columns[at];
        let mut notices = Vec::new();
        let publish = &mut |to: u8, notice| notices.push((usize::from(to), notice));
        column.node.take_away(token as u8, name, &self.wishes, publish);
        column.links[token].counts = false;
        column.hear(state.phases, notices);
        if !self.has_majority(state, token) {
            self.leave(state, token);
        }
    }

    fn has_majority(&self, state: &State, token: usize) -> bool {
        state.columns[..self.nodes].iter().filter(|column| column.links[token].counts).count() > self.nodes / 2
    }

    /// Adds the possible faults of a connection, and the expiry of entries of ended tokens.
    fn breaks(&self, state: &State, token: usize, node: usize, actions: &mut Vec<Action>) {
        let Column { node: at, links } = &state.columns[node];
        let Link { commands, replies, is_tainted, stale, .. } = links[token];
        let is_quiet = commands.is_empty() && replies.is_empty();
        let phase = state.phases[token];
        let may_rise = self.lower && self.cuts > state.cuts && state.lowered >> token & 1 == 0;
        if may_rise && is_quiet && phase == Phase::Holds {
            actions.push(Action::Extend { token, node });
        }
        if !is_quiet && stale == 0 && phase != Phase::Dead && state.cuts < self.cuts {
            actions.push(Action::Cut { token, node });
        }
        actions.extend((stale != 0).then_some(Action::ExecuteStale { token, node }));
        let is_over = !phase.is_alive() && is_quiet && stale == 0 && at.knows(token as u8);
        if is_over && (self.cuts > 0 || self.deaths > 0) {
            actions.push(Action::Expire { token, node });
        }
        if phase == Phase::Waits && is_quiet && !is_tainted && state.cuts + state.deaths > 0 {
            let reply = { *at }.execute(token as u8, Verb::Acquire, &self.wishes, self.without, &mut |_, _| ());
            let is_new = matches!(reply, Reply::Granted { .. }) && !links[token].counts;
            actions.extend(is_new.then_some(Action::Poll { token, node }));
        }
    }

    /// Returns `true` if steps without messages are still possible. The entries of ended tokens block others until they expire, and
    /// waiters poll then.
    fn is_awaited(&self, state: &State) -> bool {
        let mut actions = Vec::new();
        for token in 0..self.tokens {
            (0..self.nodes).for_each(|node| self.breaks(state, token, node, &mut actions));
        }
        let comes = |action: &Action| !matches!(action, Action::Cut { .. } | Action::Extend { .. });
        actions.iter().any(comes)
    }

    /// Replaces the connection at once. On the new one, a waiter asks again, and a token that has left releases.
    fn cut(&self, state: &mut State, token: usize, at: usize) {
        state.cuts += 1;
        let phase = state.phases[token];
        let link = &mut state.columns[at].links[token];
        if phase.is_alive() && link.has_yield_out() && self.keeps(Rule::CutYieldTaints) {
            (link.is_tainted, link.counts) = (true, false);
        }
        link.stale = link.commands.first();
        (link.commands, link.replies) = Default::default();
        match phase {
            Phase::Waits if !link.is_tainted => link.commands.push(Sent::Acquire as u8),
            Phase::HasLeft => link.commands.push(Sent::Release as u8),
            Phase::Holds if state.lowered >> token & 1 == 1 => link.commands.push(Sent::Lower as u8),
            Phase::Waits | Phase::Holds | Phase::Dead => {}
        }
        let tainted = state.columns[..self.nodes].iter().filter(|column| column.links[token].is_tainted).count();
        if phase == Phase::Waits && self.nodes - tainted <= self.nodes / 2 {
            // Another token continues in its place.
            self.leave(state, token);
        }
    }

    fn die(&self, state: &mut State, token: usize) {
        state.deaths += 1;
        state.phases[token] = Phase::Dead;
        for column in &mut state.columns[..self.nodes] {
            let link = &mut column.links[token];
            let left = if link.stale == 0 { link.commands.first() } else { link.stale };
            *link = Link { stale: left, ..Link::default() };
        }
    }

    /// Executes a command of a token at a node. `heard` tells if the reply arrives.
    fn execute(&self, state: &mut State, token: usize, at: usize, code: u8, heard: bool) {
        let column = &mut state.columns[at];
        let Some(sent) = Sent::of(code) else { return };
        let verb = match sent {
            Sent::Acquire => Verb::Acquire,
            Sent::Yield => Verb::Yield,
            Sent::Extend => Verb::Extend,
            Sent::Lower => Verb::Lower,
            Sent::Release => Verb::Release,
        };
        let (mut node, mut notices) = (column.node, Vec::new());
        let publish = &mut |to: u8, notice| notices.push((usize::from(to), notice));
        let reply = node.execute(token as u8, verb, &self.wishes, self.without, publish);
        column.node = node;
        column.hear(state.phases, notices);
        let reply = match reply {
            Reply::Granted { smaller: false } => Heard::Granted,
            Reply::Granted { smaller: true } => Heard::GrantedBefore,
            Reply::Queued => Heard::Queued,
            Reply::Kept => Heard::Kept,
            Reply::Yielded => Heard::Yielded,
            Reply::Extended => Heard::Extended,
            Reply::NotOwner => Heard::NotOwner,
            Reply::Released => return,
        };
        if heard && state.phases[token].is_alive() {
            column.links[token].replies.push(reply as u8);
        }
    }

    fn deliver(&self, state: &mut State, token: usize, at: usize) {
        let link = &mut state.columns[at].links[token];
        let Some(heard) = Heard::of(link.replies.first()) else { return };
        // Read before the reply is removed, because it may be the answer to the `Yield` itself.
        let is_void = link.has_yield_out() && self.keeps(Rule::YieldVoids);
        link.replies.pop();
        match heard {
            Heard::Granted | Heard::GrantedBefore | Heard::Given => link.counts |= !is_void && !link.is_tainted,
            Heard::Kept => link.counts = !link.is_tainted,
            Heard::Queued | Heard::Yielded => link.counts = false,
            Heard::Free
                if state.phases[token] == Phase::Waits
                    && !link.is_tainted
                    && !link.commands.contains(Sent::Acquire as u8) =>
            {
                link.commands.push(Sent::Acquire as u8);
            }
            Heard::NotOwner => link.is_denied = true,
            Heard::Free | Heard::Contended | Heard::Extended => {}
        }
        if state.phases[token] != Phase::Waits {
            return;
        }
        let is_won = self.has_majority(state, token);
        let link = &mut state.columns[at].links[token];
        if is_won {
            state.phases[token] = Phase::Holds;
        } else if matches!(heard, Heard::GrantedBefore | Heard::Contended) && link.counts && !link.has_yield_out() {
            link.counts &= !self.keeps(Rule::YieldVoids);
            link.commands.push(Sent::Yield as u8);
        }
    }

    /// Sends `Release` behind all earlier commands, on every connection.
    fn leave(&self, state: &mut State, token: usize) {
        state.phases[token] = Phase::HasLeft;
        for column in &mut state.columns[..self.nodes] {
            let link = &mut column.links[token];
            (link.counts, link.replies) = (false, crate::fifo::Fifo::default());
            if !link.is_denied || self.keeps(Rule::PartsLeftAreReleased) {
                link.commands.push(Sent::Release as u8);
            }
        }
    }
}

impl Column {
    /// Delivers published notices to the tokens that they concern.
    fn hear(&mut self, phases: [Phase; TOKENS], notices: Vec<(usize, Notice)>) {
        for (to, notice) in notices {
            push(phases[to], &mut self.links[to], to, notice);
        }
    }
}

/// Queues a push for a token, unless it would have no effect.
fn push(phase: Phase, link: &mut Link, to: usize, notice: Notice) {
    let push = match notice {
        Notice::Granted => Heard::Given,
        Notice::Free => Heard::Free,
        // Only waiters yield, and only to smaller tokens.
        Notice::Contended { by } if usize::from(by) < to => Heard::Contended,
        Notice::Contended { .. } => return,
    };
    let is_again = push != Heard::Given && (phase == Phase::Holds || link.hears(push));
    // A request that is already in transit behind it has the same effect.
    let is_asked = push == Heard::Free && link.commands.contains(Sent::Acquire as u8);
    if phase.is_alive() && !is_again && !is_asked {
        link.replies.push(push as u8);
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Execute { token, node } => write!(f, "node {node} executes the oldest command of t{token}"),
            Self::Deliver { token, node } => write!(f, "t{token} hears of node {node}"),
            Self::TakeAway { token, node, name } => write!(f, "name {name} of t{token} is taken away at node {node}"),
            Self::Extend { token, node } => write!(f, "t{token} extends at node {node}"),
            Self::Lower { token } => write!(f, "t{token} goes on as a reader"),
            Self::Leave { token } => write!(f, "t{token} leaves"),
            Self::Cut { token, node } => write!(f, "the connection of t{token} to node {node} breaks"),
            Self::ExecuteStale { token, node } => write!(f, "node {node} executes what was cut of t{token}"),
            Self::Die { token } => write!(f, "the process of t{token} ends"),
            Self::Expire { token, node } => write!(f, "what node {node} has of t{token} is over"),
            Self::Poll { token, node } => write!(f, "t{token} asks node {node} again"),
        }
    }
}
