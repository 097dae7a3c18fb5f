//! Breadth-first search over all states of a model, with the shortest trace to a violation.

use std::fmt::Display;
use std::fmt::Write as _;

use crate::fingerprints::{Fingerprints, fingerprint};

/// A finite transition system with properties of its states.
pub trait Model {
    /// One state. [`canonical`](Self::canonical) selects the representative of states that differ only by a symmetry.
    type State: Copy;
    /// One step, as the trace prints it.
    type Action: Copy + Display;

    /// Returns the initial states of all runs.
    fn initial(&self) -> Vec<Self::State>;
    /// Adds every step that is possible in `state`, in an order that depends on `state` alone.
    fn actions(&self, state: &Self::State, actions: &mut Vec<Self::Action>);
    /// Returns the state after `action`.
    fn apply(&self, state: &Self::State, action: Self::Action) -> Self::State;
    /// Returns the representative of all states that are equal except for a symmetry of the model.
    fn canonical(&self, state: Self::State) -> Self::State;
    /// Appends the state as bytes. States are equal if their bytes are.
    fn encode(&self, state: &Self::State, bytes: &mut Vec<u8>);
    /// Reads the bytes that `encode` has written, and moves `bytes` behind them.
    fn decode(&self, bytes: &mut &[u8]) -> Self::State;
    /// Returns the violated property of `state`, if there is one. `stuck` is `true` if no step is possible in it.
    fn violation(&self, state: &Self::State, stuck: bool) -> Option<String>;
    /// Formats the state in one line, for traces.
    fn show(&self, state: &Self::State) -> String;
}

/// Limits of a search.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Largest number of states to visit. The set of their fingerprints takes 11 to 22 bytes for each, half as much again while it
    /// grows, and the way back another 5.
    pub states: usize,
    /// If `true`, prints a line on standard error for every level of the search.
    pub progress: bool,
}

/// Result of a search.
#[derive(Debug)]
pub struct Outcome {
    /// Number of different states, after the reduction by symmetry.
    pub states: usize,
    /// Length of the longest shortest path: every state is reached within this number of steps.
    pub depth: usize,
    /// `true` if every reachable state was visited.
    pub exhausted: bool,
    /// Shortest way to break a property.
    pub violation: Option<Violation>,
}

/// A broken property, and the steps to it.
#[derive(Debug)]
pub struct Violation {
    /// Description of the property.
    pub what: String,
    /// Trace with one line per step.
    pub trace: String,
}

impl Outcome {
    /// Returns `true` if the whole model was searched without a violation.
    #[must_use]
    pub fn is_safe(&self) -> bool {
        self.exhausted && self.violation.is_none()
    }
}

impl Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let extent = if self.exhausted { "all" } else { "the first" };
        write!(f, "{extent} {} states, depth {}: ", self.states, self.depth)?;
        match &self.violation {
            None => f.write_str("no violation"),
            Some(violation) => write!(f, "VIOLATION: {}\n{}", violation.what, violation.trace),
        }
    }
}

/// Visits the states of `model` in the order of their distance, until one is wrong or all are visited.
pub fn search<M: Model>(model: &M, limits: Limits) -> Outcome {
    let mut search = Search::new(model, limits);
    search.add_initial();
    let mut depth = 0_usize;
    while search.verdict.is_none() && !search.next.is_empty() && !search.is_full() {
        search.expand_level();
        if limits.progress {
            eprintln!("  depth {depth}: {} states", search.parents.len());
        }
        depth += 1;
    }
    let exhausted = search.verdict.is_none() && search.next.is_empty();
    let violation = search.verdict.take().map(|(at, what)| Violation { trace: search.trace(at), what });
    // The last level found nothing new.
    let depth = if exhausted { depth.saturating_sub(1) } else { depth };
    Outcome { states: search.parents.len(), depth, exhausted, violation }
}

struct Search<'a, M: Model> {
    model: &'a M,
    limits: Limits,
    seen: Fingerprints,
    /// Predecessor of each state in the order of discovery. `choices` has the number of the action. A state itself is kept only
    /// until it is expanded, so the trace is replayed.
    parents: Vec<u32>,
    choices: Vec<u8>,
    /// States of the next level, encoded, and the number of the first one.
    next: Vec<u8>,
    level_start: usize,
    roots: usize,
    verdict: Option<(usize, String)>,
}

impl<'a, M: Model> Search<'a, M> {
    fn new(model: &'a M, limits: Limits) -> Self {
        Self {
            model,
            limits,
            seen: Fingerprints::new(),
            // Allocated at once: growing would need both allocations for a moment, and untouched pages cost nothing.
            parents: Vec::with_capacity(limits.states),
            choices: Vec::with_capacity(limits.states),
            next: Vec::new(),
            level_start: 0,
            roots: 0,
            verdict: None,
        }
    }

    fn is_full(&self) -> bool {
        self.parents.len() >= self.limits.states
    }

    fn add_initial(&mut self) {
        for (choice, state) in (0..).zip(self.model.initial()) {
            self.add(&self.model.canonical(state), 0, choice);
        }
        self.roots = self.parents.len();
    }

    fn add(&mut self, state: &M::State, parent: u32, choice: u8) {
        let start = self.next.len();
        self.model.encode(state, &mut self.next);
        if self.is_full() || !self.seen.insert(fingerprint(&self.next[start..])) {
            self.next.truncate(start);
            return;
        }
        self.parents.push(parent);
        self.choices.push(choice);
        if let Some(what) = self.model.violation(state, false) {
            self.verdict.get_or_insert((self.parents.len() - 1, what));
        }
    }

    fn expand_level(&mut self) {
        let level = std::mem::take(&mut self.next);
        let mut bytes = level.as_slice();
        // States are numbered in the order of their discovery.
        let mut index = std::mem::replace(&mut self.level_start, self.parents.len());
        let mut actions = Vec::new();
        while !bytes.is_empty() && self.verdict.is_none() {
            let state = self.model.decode(&mut bytes);
            actions.clear();
            self.model.actions(&state, &mut actions);
            self.expand(&state, index, &actions);
            index += 1;
        }
    }

    fn expand(&mut self, state: &M::State, index: usize, actions: &[M::Action]) {
        if actions.is_empty() {
            if let Some(what) = self.model.violation(state, true) {
                self.verdict.get_or_insert((index, what));
            }
            return;
        }
        let parent = u32::try_from(index).unwrap_or(u32::MAX);
        for (choice, action) in (0..).zip(actions) {
            let state = self.model.canonical(self.model.apply(state, *action));
            self.add(&state, parent, choice);
        }
    }

    fn trace(&self, violating: usize) -> String {
        let choices = self.choices_to(violating);
        let Some((first, rest)) = choices.split_first() else { return String::new() };
        let Some(mut concrete) = self.model.initial().into_iter().nth(*first) else { return String::new() };
        let mut canonical = self.model.canonical(concrete);
        let mut trace = format!("       {}\n", self.model.show(&concrete));
        for (step, choice) in (1..).zip(rest) {
            let mut actions = Vec::new();
            self.model.actions(&canonical, &mut actions);
            canonical = self.model.canonical(self.model.apply(&canonical, actions[*choice]));
            let Some((action, state)) = self.same_step(&concrete, &canonical) else { break };
            concrete = state;
            let _ = writeln!(trace, "{step:>4}.  {action}\n       {}", self.model.show(&concrete));
        }
        trace
    }

    fn choices_to(&self, mut index: usize) -> Vec<usize> {
        let mut choices = vec![usize::from(self.choices[index])];
        while index >= self.roots {
            index = self.parents[index] as usize;
            choices.push(usize::from(self.choices[index]));
        }
        choices.reverse();
        choices
    }

    /// Returns the step from `state` itself whose result has `canonical` as its representative. So nodes keep their names in a trace.
    fn same_step(&self, state: &M::State, canonical: &M::State) -> Option<(M::Action, M::State)> {
        let wanted = self.bytes(canonical);
        let mut actions = Vec::new();
        self.model.actions(state, &mut actions);
        let results = actions.into_iter().map(|action| (action, self.model.apply(state, action)));
        results.into_iter().find(|(_, state)| self.bytes(&self.model.canonical(*state)) == wanted)
    }

    fn bytes(&self, state: &M::State) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.model.encode(state, &mut bytes);
        bytes
    }
}
