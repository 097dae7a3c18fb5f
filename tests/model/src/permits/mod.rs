//! Permits: a majority vote cannot count, so each token counts the others while it holds the admission lock.
//!
//! The admission lock is a minimal lock. It has no queue, and its key may expire at any node at any time.
//! The client's proof ends with the key, because a client's lease ends before the key does. An answer arrives at once, or never after its
//! connection has broken. A node gives a permit to the owner of its admission lock. A permit may expire likewise.
//!
//! Calls of one process may hand the admission lock to each other. Then it has the same owner for the nodes, and these calls share one
//! connection.
//!
//! A client here asks earlier than the code does: it asks a node for a permit as soon as it has the admission lock there. In addition:
//!
//! - The holder of the admission lock may yield it at a node, and take it again.
//! - A call may be dropped at any time. Its process still hands the admission lock over.
//! - A node may lose its data, if the quorum tolerates it.
//!
//! A holder of a permit wins missing votes back in three steps:
//!
//! 1. It asks each node without its permit for the admission lock, by a second token.
//! 2. After it has the admission lock, it asks all its voters if they still have its permit.
//! 3. After a quorum has confirmed it, it asks for the missing permit.
//!
//! A quorum of three nodes needs the admission lock at one node for that. A quorum of more nodes needs it at a majority.
//!
//! A permit may be deleted at a node without the knowledge of any client. Its token counts on it until it learns of the loss.
//! Meanwhile, this model regards the token as a holder only if a quorum still knows its permit.

mod action;
mod node;

pub use action::Action;
pub use node::{Node, Reply, Verb};

use crate::bytes::{push_packed, take, take_packed};
use crate::rule::Rule;
use crate::search::Model;

const NODES: usize = 3;
const TOKENS: usize = 4;
/// Number of commands that may be in transit on one connection. No scenario has more: a search that reaches the limit panics.
const MOST_ON_THE_WAY: usize = 6;

/// Deviation from the protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Variant {
    /// None.
    #[default]
    Protocol,
    /// A rule is switched off.
    Without(Rule),
    /// A node gives a permit to every call, and the admission lock is not used.
    NoAdmissionLock,
    /// An extension counts wherever there is a permit, even if its grant is unknown.
    ExtensionsCount,
    /// A repeated request for a permit, behind other commands, still creates one.
    LateEntersCreate,
    /// An extension creates a missing permit.
    ExtensionsCreate,
    /// An extension counts wherever a permit was given once, even if its lease has expired since.
    LapsedExtensionsCount,
    /// Holders that a node may have forgotten, and that may be missing in its list, are not counted.
    NobodyForgets,
    /// Votes are won back without the admission lock.
    VotesReturnOutside,
}

/// Three nodes, and tokens that each want a permit.
#[derive(Debug, Clone, Copy)]
pub struct Permits {
    /// Number of tokens, at most 4.
    pub tokens: usize,
    /// Number of permits.
    pub permits: usize,
    /// Process of each token.
    pub processes: [u8; TOKENS],
    /// Largest number of expired keys.
    pub expiries: u8,
    /// Largest number of cut connections and lost scripts.
    pub cuts: u8,
    /// Largest number of yields of an admission lock at a node.
    pub yields: u8,
    /// Largest number of times that a node loses its data.
    pub wipes: u8,
    /// Largest number of deleted permits.
    pub thefts: u8,
    /// Largest number of tokens that win votes back, each of them once.
    pub returns: u8,
    /// Number of nodes that must agree.
    pub quorum: usize,
    /// If `true`, calls may be dropped before they are admitted.
    pub drops: bool,
    /// Deviation from the protocol.
    pub variant: Variant,
}

/// Complete state of the model.
#[derive(Debug, Clone, Copy, Default)]
pub struct State {
    columns: [Column; NODES],
    phases: [Phase; TOKENS],
    /// Tokens that have left the admission lock, or handed it over.
    opened: u8,
    /// Tokens that have returned to the admission lock for votes, and tokens that are in it again.
    returned: u8,
    stands_again: u8,
    expiries: u8,
    cuts: u8,
    yields: u8,
    wipes: u8,
    thefts: u8,
    /// Tokens from which a permit was stolen.
    robbed: u8,
}

/// Node with its connections to the processes, and the knowledge of each token about it. Sorting the columns removes the symmetry of
/// the nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Column {
    /// The node. A process owns the admission lock by its number plus one. A returned token owns it by a separate number.
    node: Node,
    connections: [Connection; TOKENS],
    links: [Link; TOKENS],
}

/// The commands of one process, each a code, the oldest first; and one command of a cut connection, which may be executed at any time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Connection {
    commands: [u8; MOST_ON_THE_WAY],
    stale: u8,
}

/// Facts that a token can prove of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Link {
    has_turn: bool,
    has_entry: bool,
    /// `true` if a permit was given there, which may have expired since.
    was_given: bool,
    /// `true` if a yield was cut off that may still be executed.
    is_tainted: bool,
    /// `true` if the token owns the admission lock there again.
    stands_again: bool,
    /// `true` if the node has confirmed the permit since the return of the token.
    is_confirmed: bool,
    /// Holders that the node has listed, with the highest bit set, as long as the list counts.
    roll: u8,
}

const SAID: u8 = 0x80;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Idle,
    Entering,
    Holding,
    Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    Take,
    Enter,
    /// Sent again behind others.
    LateEnter,
    Open,
    Extend,
    Leave,
    Yield,
    /// The first of the four commands of a returned token.
    TakeBack,
    Confirm,
    EnterBack,
    OpenBack,
}

const ALL: [Sent; 11] = [
    Sent::Take,
    Sent::Enter,
    Sent::LateEnter,
    Sent::Open,
    Sent::Extend,
    Sent::Leave,
    Sent::Yield,
    Sent::TakeBack,
    Sent::Confirm,
    Sent::EnterBack,
    Sent::OpenBack,
];

const fn code(sent: Sent, token: usize) -> u8 {
    (sent as u8) << 2 | token as u8 | 0x40
}

fn decoded(code: u8) -> (Sent, usize) {
    (ALL[usize::from(code >> 2 & 15)], usize::from(code & 3))
}

/// Returns the number by which a returned token owns the admission lock.
const fn back(token: usize) -> u8 {
    8 + token as u8
}

impl Connection {
    fn len(self) -> usize {
        self.commands.iter().filter(|code| **code != 0).count()
    }

    fn push(&mut self, code: u8) {
        let len = self.len();
        self.commands[len] = code;
    }

    fn pop(&mut self) -> u8 {
        let first = self.commands[0];
        self.commands.rotate_left(1);
        self.commands[MOST_ON_THE_WAY - 1] = 0;
        first
    }

    fn has_any_of(self, token: usize) -> bool {
        self.commands.iter().any(|code| *code != 0 && decoded(*code).1 == token)
    }
}

impl Model for Permits {
    type State = State;
    type Action = Action;

    fn initial(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for token in 0..self.tokens {
            self.client_actions(state, token, actions);
        }
        for node in 0..NODES {
            self.node_actions(state, node, actions);
        }
    }

    fn apply(&self, state: &State, action: Action) -> State {
        let mut state = *state;
        match action {
            Action::Begin { token } => {
                state.phases[token] = Phase::Entering;
                let sent = if self.variant == Variant::NoAdmissionLock { Sent::Enter } else { Sent::Take };
                (0..NODES).for_each(|node| self.send(&mut state, sent, token, node));
            }
            Action::Pass { from, to } => self.pass(&mut state, from, to),
            Action::Yield { token, node } => {
                state.yields += 1;
                let link = &mut state.columns[node].links[token];
                (link.has_turn, link.roll) = (false, 0);
                self.send(&mut state, Sent::Yield, token, node);
            }
            Action::TakeAgain { token, node } => self.send(&mut state, Sent::Take, token, node),
            Action::Wipe { node } => {
                state.wipes += 1;
                state.columns[node].node = Node::default();
            }
            Action::Enter { token, node } => self.send(&mut state, Sent::Enter, token, node),
            Action::Admit { token } => {
                state.phases[token] = Phase::Holding;
                state.columns.iter_mut().for_each(|column| column.links[token].roll = 0);
            }
            Action::Open { token } => self.open(&mut state, token),
            Action::Return { token } => {
                (state.returned, state.stands_again) = (state.returned | 1 << token, state.stands_again | 1 << token);
                for node in 0..NODES {
                    if !state.columns[node].links[token].has_entry {
                        self.send(&mut state, Sent::TakeBack, token, node);
                    }
                }
            }
            Action::Confirm { token } => {
                for node in 0..NODES {
                    if state.columns[node].links[token].has_entry {
                        self.send(&mut state, Sent::Confirm, token, node);
                    }
                }
            }
            Action::EnterBack { token, node } => self.send(&mut state, Sent::EnterBack, token, node),
            Action::Close { token } => self.close(&mut state, token),
            Action::Extend { token, node } => self.send(&mut state, Sent::Extend, token, node),
            Action::Execute { process, node } => {
                let code = state.columns[node].connections[process].pop();
                self.execute(&mut state, code, node, true);
            }
            Action::ExecuteStale { process, node } => {
                let code = std::mem::take(&mut state.columns[node].connections[process].stale);
                self.execute(&mut state, code, node, false);
            }
            Action::Cut { process, node } => {
                state.cuts += 1;
                let connection = &mut state.columns[node].connections[process];
                let first = connection.commands[0];
                *connection = Connection { stale: first, ..Connection::default() };
                if let (Sent::Yield, token) = decoded(first) {
                    state.columns[node].links[token].is_tainted = true;
                }
                self.lose_releases(&mut state, process, node);
            }
            Action::SendAgain { process, node } => {
                state.cuts += 1;
                let connection = &mut state.columns[node].connections[process];
                let (_, token) = decoded(connection.pop());
                connection.push(code(Sent::LateEnter, token));
            }
            Action::ExpireTurn { node } => {
                state.expiries += 1;
                self.expire_turn(&mut state, node);
            }
            Action::ExpireEntry { node, token } => {
                state.expiries += 1;
                let column = &mut state.columns[node];
                column.node.entries &= !(1 << token);
                column.links[token].has_entry = false;
                column.links[token].is_confirmed = false;
            }
            Action::Steal { node, token } => {
                state.thefts += 1;
                state.robbed |= 1 << token;
                state.columns[node].node.entries &= !(1 << token);
            }
            Action::End { token } => self.end(&mut state, token),
        }
        self.note_losses(&mut state);
        state
    }

    fn canonical(&self, mut state: State) -> State {
        state.columns.sort_unstable();
        state
    }

    fn encode(&self, state: &State, bytes: &mut Vec<u8>) {
        let phases: u8 = (0..TOKENS).map(|token| (state.phases[token] as u8) << (2 * token)).sum();
        let back = state.returned << 4 | state.stands_again;
        let lost = [state.expiries << 4 | state.wipes, state.thefts << 4 | state.robbed];
        bytes.extend([phases, state.opened, back, lost[0], lost[1], state.cuts << 4 | state.yields]);
        for column in &state.columns {
            bytes.extend([column.node.turn, column.node.entries]);
            for (token, link) in column.links.iter().enumerate().take(self.tokens) {
                let of_return = [link.stands_again, link.is_confirmed];
                let flags =
                    [link.has_turn, link.has_entry, link.was_given, link.is_tainted].into_iter().chain(of_return);
                bytes.push(flags.rev().fold(0, |bits, flag| bits << 1 | u8::from(flag)));
                let Connection { commands, stale } = column.connections[token];
                let mut word = [0; 8];
                word[..MOST_ON_THE_WAY].copy_from_slice(&commands);
                word[MOST_ON_THE_WAY..].copy_from_slice(&[stale, link.roll]);
                push_packed(u64::from_le_bytes(word), bytes);
            }
        }
    }

    fn decode(&self, bytes: &mut &[u8]) -> State {
        let phases = take(bytes);
        let [opened, back, lost, stolen, broken] = [(); 5].map(|()| take(bytes));
        let mut state = State {
            opened,
            returned: back >> 4,
            stands_again: back & 15,
            expiries: lost >> 4,
            wipes: lost & 15,
            thefts: stolen >> 4,
            robbed: stolen & 15,
            cuts: broken >> 4,
            yields: broken & 15,
            ..State::default()
        };
        for (token, phase) in state.phases.iter_mut().enumerate() {
            let all = [Phase::Idle, Phase::Entering, Phase::Holding, Phase::Ended];
            *phase = all[usize::from(phases >> (2 * token) & 3)];
        }
        for column in &mut state.columns {
            column.node = Node { turn: take(bytes), entries: take(bytes) };
            for token in 0..self.tokens {
                let flags = take(bytes);
                let [commands @ .., left, roll] = take_packed(bytes).to_le_bytes();
                column.connections[token] = Connection { commands, stale: left };
                let [has_turn, has_entry, was_given, is_tainted] = [1, 2, 4, 8].map(|flag| flags & flag != 0);
                let [stands_again, is_confirmed] = [16, 32].map(|flag| flags & flag != 0);
                column.links[token] =
                    Link { has_turn, has_entry, was_given, is_tainted, stands_again, is_confirmed, roll };
            }
        }
        state
    }

    fn violation(&self, state: &State, _stuck: bool) -> Option<String> {
        let holders = (0..self.tokens).filter(|token| self.holds(state, *token)).count();
        (holders > self.permits).then(|| format!("{holders} have one of {} permits", self.permits))
    }

    fn show(&self, state: &State) -> String {
        let tokens = (0..self.tokens).map(|token| {
            let of = |column: &Column| {
                let Link { has_turn, has_entry, roll, .. } = column.links[token];
                let words = [(has_turn, "t"), (has_entry, "e"), (roll != 0, "r")];
                words.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect::<String>()
            };
            format!("t{token} {:?} {:?}", state.phases[token], state.columns.each_ref().map(of))
        });
        let nodes =
            state.columns.iter().map(|Column { node, .. }| format!("turn {} entries {:03b}", node.turn, node.entries));
        tokens.chain(nodes).collect::<Vec<_>>().join(" | ")
    }
}

impl State {
    fn entries(&self, token: usize) -> usize {
        self.columns.iter().filter(|column| column.links[token].has_entry).count()
    }

    fn has_opened(&self, token: usize) -> bool {
        self.opened >> token & 1 == 1
    }
}

impl Permits {
    fn lacks(&self, rule: Rule) -> bool {
        self.variant == Variant::Without(rule)
    }

    fn holds(&self, state: &State, token: usize) -> bool {
        let is_robbed = state.robbed >> token & 1 == 1;
        let is_known = |column: &&Column| column.node.entries >> token & 1 == 1 && column.links[token].has_entry;
        let is_there = || state.columns.iter().filter(is_known).count() >= self.quorum;
        let counts = state.phases[token] == Phase::Holding && state.entries(token) >= self.quorum;
        counts && (!is_robbed || is_there())
    }

    /// Hands the admission lock of a token to the next call of its process. The token has a permit, or is dropped.
    fn pass(&self, state: &mut State, from: usize, to: usize) {
        let has_turn = state.columns.map(|column| column.links[from].has_turn);
        let is_dropped = state.phases[from] == Phase::Entering;
        state.phases[to] = Phase::Entering;
        state.opened |= 1 << from;
        if is_dropped {
            // Releases its permit before another call of its process asks.
            self.end(state, from);
        }
        for (node, has_turn) in has_turn.into_iter().enumerate() {
            let links = &mut state.columns[node].links;
            links[to].has_turn = has_turn;
            links[to].is_tainted = links[from].is_tainted;
            Self::leaves_admission(&mut links[from]);
            if has_turn {
                self.send(state, Sent::Enter, to, node);
            }
        }
    }

    fn process(&self, token: usize) -> usize {
        usize::from(self.processes[token])
    }

    fn client_actions(&self, state: &State, token: usize, actions: &mut Vec<Action>) {
        let opened = state.has_opened(token);
        match state.phases[token] {
            // The first token of a process takes the admission lock. The others get it from their predecessor.
            Phase::Idle => {
                let before = token.checked_sub(1).filter(|before| self.process(*before) == self.process(token));
                match before {
                    None => actions.push(Action::Begin { token }),
                    Some(from) if !state.has_opened(from) && self.may_pass(state.phases[from]) => {
                        actions.push(Action::Pass { from, to: token });
                    }
                    Some(_) => {}
                }
            }
            Phase::Entering => {
                for node in 0..NODES {
                    let Column { links, connections, .. } = &state.columns[node];
                    let (link, connection) = (links[token], connections[self.process(token)]);
                    // A token without an answer, or without an admitting list, asks again.
                    if link.has_turn && link.roll != SAID && !connection.has_any_of(token) {
                        actions.push(Action::Enter { token, node });
                    }
                    let is_idle = !opened && !connection.has_any_of(token);
                    if link.has_turn && is_idle && state.yields < self.yields {
                        actions.push(Action::Yield { token, node });
                    }
                    // After a yield, the token waits there, and gets the admission lock again.
                    if !link.has_turn && is_idle && state.yields > 0 && !link.is_tainted {
                        actions.push(Action::TakeAgain { token, node });
                    }
                }
                if self.drops {
                    actions.push(Action::End { token });
                }
                if self.is_admitted(state, token) {
                    actions.push(Action::Admit { token });
                }
            }
            Phase::Holding => {
                if !opened {
                    actions.push(Action::Open { token });
                }
                for node in 0..NODES {
                    let Column { links, connections, .. } = &state.columns[node];
                    let connection = connections[self.process(token)];
                    if !links[token].has_entry && opened && connection.commands[0] == 0 && state.cuts > 0 {
                        actions.push(Action::Extend { token, node });
                    }
                }
                self.returning_actions(state, token, actions);
                actions.push(Action::End { token });
            }
            Phase::Ended => {}
        }
    }

    /// Adds the steps by which a holder may win missing votes back.
    fn returning_actions(&self, state: &State, token: usize, actions: &mut Vec<Action>) {
        let has_returned = state.returned >> token & 1 == 1;
        let may_return = state.has_opened(token) && state.returned.count_ones() < u32::from(self.returns);
        // Behind other commands, it would only come later.
        let is_idle = state.columns.iter().all(|column| column.connections[self.process(token)].len() == 0);
        if may_return && !has_returned && is_idle && state.entries(token) < NODES {
            actions.push(Action::Return { token });
        }
        if state.stands_again >> token & 1 == 1 {
            actions.push(Action::Close { token });
            self.actions_of_returned(state, token, actions);
        }
    }

    /// Adds the steps of a returned holder, once at each node.
    fn actions_of_returned(&self, state: &State, token: usize, actions: &mut Vec<Action>) {
        let links = state.columns.map(|column| column.links[token]);
        let is_idle = |node: usize| !state.columns[node].connections[self.process(token)].has_any_of(token);
        let confirmed = links.iter().filter(|link| link.is_confirmed).count();
        let is_asked = confirmed > 0 || !(0..NODES).all(is_idle);
        if links.iter().any(|link| link.stands_again) && !is_asked {
            actions.push(Action::Confirm { token });
        }
        let is_confirmed = confirmed >= self.quorum || self.lacks(Rule::VotersAreAskedFirst);
        for (node, link) in links.iter().enumerate() {
            if link.stands_again && !link.has_entry && is_confirmed && is_idle(node) {
                actions.push(Action::EnterBack { token, node });
            }
        }
    }

    fn node_actions(&self, state: &State, node: usize, actions: &mut Vec<Action>) {
        let column = &state.columns[node];
        for (process, connection) in column.connections.iter().enumerate() {
            let first = connection.commands[0];
            if first != 0 {
                let (sent, _) = decoded(first);
                actions.push(Action::Execute { process, node });
                if state.cuts < self.cuts {
                    if connection.stale == 0 {
                        actions.push(Action::Cut { process, node });
                    }
                    if sent == Sent::Enter {
                        actions.push(Action::SendAgain { process, node });
                    }
                }
            }
            if connection.stale != 0 {
                actions.push(Action::ExecuteStale { process, node });
            }
        }
        for token in
            (0..self.tokens).filter(|token| state.thefts < self.thefts && column.node.entries >> token & 1 == 1)
        {
            actions.push(Action::Steal { node, token });
        }
        if state.wipes < self.wipes && (column.node.turn != 0 || column.node.entries != 0) {
            actions.push(Action::Wipe { node });
        }
        if state.expiries < self.expiries {
            if column.node.turn != 0 {
                actions.push(Action::ExpireTurn { node });
            }
            for token in (0..self.tokens).filter(|token| column.node.entries >> token & 1 == 1) {
                actions.push(Action::ExpireEntry { node, token });
            }
        }
    }

    fn send(&self, state: &mut State, sent: Sent, token: usize, node: usize) {
        state.columns[node].connections[self.process(token)].push(code(sent, token));
    }

    fn may_pass(&self, phase: Phase) -> bool {
        phase == Phase::Holding || self.drops && phase == Phase::Entering
    }

    /// Records that the client no longer counts on the admission lock at a node.
    const fn leaves_admission(link: &mut Link) {
        link.has_turn = false;
        link.roll = 0;
    }

    fn open(&self, state: &mut State, token: usize) {
        state.opened |= 1 << token;
        for node in 0..NODES {
            Self::leaves_admission(&mut state.columns[node].links[token]);
            self.send(state, Sent::Open, token, node);
        }
    }

    fn close(&self, state: &mut State, token: usize) {
        state.stands_again &= !(1 << token);
        for node in 0..NODES {
            let link = &mut state.columns[node].links[token];
            (link.stands_again, link.is_confirmed) = (false, false);
            self.send(state, Sent::OpenBack, token, node);
        }
    }

    fn end(&self, state: &mut State, token: usize) {
        if state.stands_again >> token & 1 == 1 {
            self.close(state, token);
        }
        // The release also releases the admission lock.
        state.opened |= 1 << token;
        state.phases[token] = Phase::Ended;
        for node in 0..NODES {
            state.columns[node].links[token] = Link::default();
            self.send(state, Sent::Leave, token, node);
        }
    }

    /// Repeats the releases that a cut connection may have lost.
    fn lose_releases(&self, state: &mut State, process: usize, node: usize) {
        for token in (0..self.tokens).filter(|token| self.process(*token) == process) {
            if state.phases[token] != Phase::Ended && state.has_opened(token) && !self.is_passed(state, token) {
                self.send(state, Sent::Open, token, node);
            }
            if (state.returned & !state.stands_again) >> token & 1 == 1 {
                self.send(state, Sent::OpenBack, token, node);
            }
            if state.phases[token] == Phase::Ended {
                self.send(state, Sent::Leave, token, node);
            }
        }
    }

    /// Returns `true` if another token of the process has taken the admission lock over.
    fn is_passed(&self, state: &State, token: usize) -> bool {
        let next = token + 1;
        next < self.tokens && self.process(next) == self.process(token) && state.phases[next] != Phase::Idle
    }

    /// Executes a command at a node. `heard` tells if its answer arrives.
    fn execute(&self, state: &mut State, code: u8, node: usize, heard: bool) {
        let (sent, token) = decoded(code);
        let owner = self.process(token) as u8 + 1;
        let is_lost = self.is_lost(state, token);
        let (phase, stands_again) = (state.phases[token], state.stands_again >> token & 1 == 1);
        let is_holding = phase == Phase::Holding && !is_lost;
        let heard_in_admission = heard && phase == Phase::Holding && stands_again;
        let Column { node: at, links, .. } = &mut state.columns[node];
        let link = &mut links[token];
        match sent {
            Sent::Take => {
                let is_ours = at.execute(Verb::Take, owner, token, self.variant) == Reply::Granted || at.turn == owner;
                if heard && is_ours && phase == Phase::Entering && state.opened >> token & 1 == 0 {
                    link.has_turn = true;
                    self.send(state, Sent::Enter, token, node);
                }
            }
            Sent::Enter | Sent::LateEnter => {
                // This variant concerns only returned tokens.
                let variant =
                    if self.variant == Variant::VotesReturnOutside { Variant::Protocol } else { self.variant };
                let verb = Verb::Enter { is_late: sent == Sent::LateEnter };
                let Reply::Entered { others } = at.execute(verb, owner, token, variant) else { return };
                if heard && phase != Phase::Ended && !is_lost {
                    (link.has_entry, link.was_given) = (true, true);
                    let counts = link.has_turn || self.variant == Variant::NoAdmissionLock;
                    if phase == Phase::Entering && counts {
                        link.roll = SAID | others;
                    }
                }
            }
            Sent::Open | Sent::Yield => {
                at.execute(Verb::Open, owner, token, self.variant);
            }
            Sent::Extend => {
                let is_there = at.execute(Verb::Extend, owner, token, self.variant) == Reply::Extended;
                let counts = self.variant == Variant::ExtensionsCount
                    || self.variant == Variant::ExtensionsCreate
                    || self.variant == Variant::LapsedExtensionsCount && link.was_given;
                link.has_entry |= heard && counts && is_holding && is_there;
            }
            Sent::TakeBack => {
                let is_granted = at.execute(Verb::Take, back(token), token, self.variant) == Reply::Granted;
                let has_turn = is_granted || at.turn == back(token) || self.variant == Variant::VotesReturnOutside;
                link.stands_again |= heard_in_admission && has_turn;
            }
            Sent::Confirm => {
                let is_there = at.execute(Verb::Extend, back(token), token, self.variant) == Reply::Extended;
                // A permit that the node does not have is not a vote.
                link.has_entry &= is_there || !heard;
                link.is_confirmed |= heard_in_admission && is_there && link.has_entry;
            }
            Sent::EnterBack => {
                let reply = at.execute(Verb::Enter { is_late: false }, back(token), token, self.variant);
                link.has_entry |= heard && is_holding && reply != Reply::NotOwner;
            }
            Sent::OpenBack => {
                at.execute(Verb::Open, back(token), token, self.variant);
            }
            Sent::Leave => {
                at.execute(Verb::Leave, owner, token, self.variant);
                if !self.is_passed(state, token) {
                    state.columns[node].node.execute(Verb::Open, owner, token, self.variant);
                }
            }
        }
    }

    fn expire_turn(&self, state: &mut State, node: usize) {
        let column = &mut state.columns[node];
        let owner = std::mem::take(&mut column.node.turn);
        for token in (0..self.tokens).filter(|token| self.process(*token) as u8 + 1 == owner) {
            column.links[token].has_turn = false;
            if !self.lacks(Rule::ListsEndWithTheAdmissionLock) {
                column.links[token].roll = 0;
            }
        }
    }

    /// Ends the tokens whose permits were not proven for a moment.
    fn note_losses(&self, state: &mut State) {
        for token in 0..self.tokens {
            if self.is_lost(state, token) {
                self.end(state, token);
            }
        }
    }

    fn is_lost(&self, state: &State, token: usize) -> bool {
        state.phases[token] == Phase::Holding && state.entries(token) < self.quorum
    }

    fn is_admitted(&self, state: &State, token: usize) -> bool {
        let links = state.columns.map(|column| column.links[token]);
        let rolls: Vec<u8> =
            links.iter().filter(|link| link.has_entry && link.roll != 0).map(|link| link.roll & !SAID).collect();
        if rolls.len() < self.quorum {
            return false;
        }
        let counted = if self.lacks(Rule::ListsAreUnited) {
            rolls.iter().map(|roll| roll.count_ones() as usize).max().unwrap_or(0)
        } else {
            let forgets = self.variant != Variant::NobodyForgets;
            let least = if forgets { rolls.len() + 1 - self.quorum } else { self.quorum + rolls.len() - NODES };
            let times = |other: usize| rolls.iter().filter(|roll| **roll >> other & 1 == 1).count();
            (0..self.tokens).filter(|other| times(*other) >= least).count()
        };
        counted < self.permits
    }
}
