//! One node with requests for several names, on plain data. It equals the runtime's `protocol/node_state/sharing` and `promotion`,
//! except that all processes are alive and respond, and other programs take no names.

use super::class::Class;
use crate::rule::Rule;

/// Largest number of names.
pub const NAMES: usize = 3;

/// Wishes of a token: a class for each name that it wants.
pub type Wish = [Option<Class>; NAMES];

/// Holders and waiters of each name, one bit for each token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// Holders of each name.
    pub holders: [u8; NAMES],
    /// Waiters for each name.
    pub queue: [u8; NAMES],
    /// Holders of all their names that have downgraded to readers.
    pub lowered: u8,
}

/// Operation of a node for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Takes all names, or waits for all of them.
    Acquire,
    /// Hands the names over, if this token blocks a smaller one.
    Yield,
    /// Keeps the names, if the token has all of them.
    Extend,
    /// Keeps the names, if the token has all of them, and admits readers from now on.
    Lower,
    /// Leaves the queues, and releases the names of the token.
    Release,
}

/// Answer of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// `Acquire`: the token has all names.
    Granted {
        /// `true` if it had them before, and a smaller token in conflict waits.
        smaller: bool,
    },
    /// `Acquire`: the token waits.
    Queued,
    /// `Yield`: the token keeps its names.
    Kept,
    /// `Yield`: the token waits.
    Yielded,
    /// `Extend`, `Lower`: the token has all names.
    Extended,
    /// `Extend`: the token does not have a name, or not in the requested class. It may have some of the other names.
    NotOwner,
    /// `Release`: done.
    Released,
}

/// Published message about a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// The only name that the token wants was granted to it.
    Granted,
    /// One of several names that the token wants may be free.
    Free,
    /// The token has a name for which another token waits.
    Contended {
        /// The waiting token.
        by: u8,
    },
}

impl Node {
    /// Runs `verb` for `token`, with all rules except `without`. `wishes` has the names that each token wants.
    pub fn execute(
        &mut self,
        token: u8,
        verb: Verb,
        wishes: &[Wish],
        without: Option<Rule>,
        publish: &mut dyn FnMut(u8, Notice),
    ) -> Reply {
        let mut execution = Execution { node: self, token, wishes, without, publish };
        match verb {
            Verb::Acquire => execution.acquire(),
            Verb::Yield => execution.yield_all(),
            Verb::Extend => execution.extend(),
            Verb::Lower => execution.lower(),
            Verb::Release => execution.release(),
        }
    }

    /// Takes a name away from its holder, and grants it to waiters.
    pub fn take_away(&mut self, token: u8, name: usize, wishes: &[Wish], publish: &mut dyn FnMut(u8, Notice)) {
        let mut execution = Execution { node: self, token, wishes, without: None, publish };
        execution.node.holders[name] &= !(1 << token);
        let class = execution.class(token, name);
        execution.promote(name, false, class);
    }

    /// Expires the leases and the queue entries of a token, without a notice.
    pub fn expire(&mut self, token: u8) {
        let all = self.holders.iter_mut().chain(&mut self.queue).chain([&mut self.lowered]);
        all.for_each(|tokens| *tokens &= !(1 << token));
    }

    /// Returns `true` if a token has an entry here.
    #[must_use]
    pub fn knows(&self, token: u8) -> bool {
        self.holders.iter().chain(&self.queue).any(|names| names >> token & 1 == 1)
    }
}

/// Execution of one command.
struct Execution<'a> {
    node: &'a mut Node,
    token: u8,
    wishes: &'a [Wish],
    without: Option<Rule>,
    publish: &'a mut dyn FnMut(u8, Notice),
}

impl Execution<'_> {
    fn acquire(&mut self) -> Reply {
        let token = self.token;
        if self.wanted(token).all(|(name, _)| self.has(token, name)) {
            let smaller = (0..NAMES).any(|name| self.is_asked_behind(name));
            self.take_all();
            return Reply::Granted { smaller };
        }
        if !self.is_blocked() {
            self.take_all();
            return Reply::Granted { smaller: false };
        }
        let lost: Vec<_> = self.wanted(token).filter(|(name, _)| self.has(token, *name)).collect();
        for (name, _) in &lost {
            self.node.holders[*name] &= !(1 << token);
        }
        for (name, _) in self.wanted(token) {
            self.node.queue[name] |= 1 << token;
            self.tell_holders(name);
        }
        for (name, class) in lost {
            self.promote(name, false, Some(class));
        }
        if self.admit_waiters() { Reply::Granted { smaller: false } } else { Reply::Queued }
    }

    /// Admits the waiters that can have the names. Returns `true` if the token of the command is among them.
    fn admit_waiters(&mut self) -> bool {
        let mut has_own = false;
        for (name, _) in self.wanted(self.token) {
            has_own |= self.promote(name, !self.has_several(self.token), None);
        }
        let is_free = self.has_several(self.token) && !self.is_blocked();
        if is_free {
            self.take_all();
        }
        has_own || is_free
    }

    fn yield_all(&mut self) -> Reply {
        let token = self.token;
        if !self.wanted(token).all(|(name, _)| self.has(token, name)) {
            return Reply::Yielded;
        }
        if !self.wanted(token).any(|(name, _)| self.is_behind(token, name)) {
            return Reply::Kept;
        }
        for (name, _) in self.wanted(token) {
            self.node.holders[name] &= !(1 << token);
            self.node.queue[name] |= 1 << token;
        }
        let mut is_own = false;
        for (name, class) in self.wanted(token) {
            is_own = self.promote(name, !self.has_several(token), Some(class));
        }
        if self.has_several(token) && !self.is_blocked() {
            self.take_all();
            is_own = true;
        }
        if is_own { Reply::Kept } else { Reply::Yielded }
    }

    fn extend(&mut self) -> Reply {
        if !self.wanted(self.token).all(|(name, _)| self.has(self.token, name)) {
            return Reply::NotOwner;
        } else if self.node.lowered >> self.token & 1 == 0 {
            return Reply::Extended;
        } else if self.keeps(Rule::DowngradeNeverRises) || self.has_several(self.token) {
            return Reply::NotOwner;
        }
        self.node.lowered &= !(1 << self.token);
        self.take_all();
        let held = self.node.holders.iter().fold(0, |held, holders| held | holders);
        self.node.lowered &= held;
        Reply::Extended
    }

    fn lower(&mut self) -> Reply {
        let token = self.token;
        if !self.wanted(token).all(|(name, _)| self.has(token, name)) {
            return Reply::NotOwner;
        }
        let before: Vec<_> = self.wanted(token).collect();
        self.node.lowered |= 1 << token;
        for (name, class) in before.into_iter().filter(|(_, class)| *class != class.lowered()) {
            self.promote(name, false, Some(class));
        }
        Reply::Extended
    }

    fn release(&mut self) -> Reply {
        let (token, mut freed) = (self.token, Vec::new());
        for (name, class) in self.wanted(token) {
            let waited = self.node.queue[name] >> token & 1 == 1;
            if self.has(token, name) || waited && self.keeps(Rule::LeavingUnblocks) {
                freed.push((name, Some(class)));
            } else if !waited {
                // The runtime repeats a release that has found too many absent waiters.
                freed.push((name, None));
            }
            self.node.queue[name] &= !(1 << token);
            self.node.holders[name] &= !(1 << token);
        }
        self.node.lowered &= !(1 << token);
        for (name, class) in freed {
            self.promote(name, false, class);
        }
        Reply::Released
    }

    fn take_all(&mut self) {
        for (name, class) in self.wanted(self.token) {
            self.take(self.token, name, class);
        }
        for (name, _) in self.wanted(self.token).filter(|(_, class)| *class == Class::Shared) {
            self.promote(name, false, None);
        }
    }

    /// Moves a token from the queue to the holders of the name. An exclusive holder replaces all others, and a holder of another
    /// class replaces an exclusive one.
    fn take(&mut self, token: u8, name: usize, class: Class) {
        let stays = |other: &u8| class != Class::Exclusive && self.class(*other, name) != Some(Class::Exclusive);
        let others = bits(self.node.holders[name]).filter(stays).fold(0, |others, other| others | 1 << other);
        self.node.queue[name] &= !(1 << token);
        self.node.holders[name] = others | 1 << token;
    }

    /// Notifies the holders that block the token at a name.
    fn tell_holders(&mut self, name: usize) {
        let against = bits(self.node.holders[name]).filter(|holder| self.excludes(*holder, self.token, name));
        let mut against: Vec<_> = against.collect();
        // In the order of their classes.
        against.sort_by_key(|holder| self.class(*holder, name).map(|class| class as u8));
        let most = if self.keeps(Rule::AllHoldersHear) { against.len() } else { 1 };
        for holder in against.into_iter().take(most) {
            (self.publish)(holder, Notice::Contended { by: self.token });
        }
    }

    /// Grants the name to waiters that can have it and want no other name. Notifies waiters for several names that could have it, if they
    /// conflict with the class that has `freed` it. With `own_turn`, the token of the command is granted the name without a notice.
    /// Returns `true` if it was granted.
    fn promote(&mut self, name: usize, own_turn: bool, freed: Option<Class>) -> bool {
        let (mut passed, mut has_own) = (0_u8, false);
        while let Some(next) = self.next(name, passed, freed) {
            let Some(class) = self.wishes[usize::from(next)][name] else { break };
            if bits(self.node.holders[name]).any(|holder| self.class(holder, name) == Some(Class::Exclusive)) {
                break;
            }
            if self.has(next, name) {
                self.node.queue[name] &= !(1 << next);
                continue;
            }
            let is_kept_out = self.is_held_against(next, name) || self.is_behind(next, name);
            if !is_kept_out && !self.has_several(next) {
                self.take(next, name, class);
                if own_turn && next == self.token {
                    has_own = true;
                } else {
                    (self.publish)(next, Notice::Granted);
                }
                continue;
            }
            if !is_kept_out && next != self.token {
                (self.publish)(next, Notice::Free);
            }
            passed |= 1 << next;
            if class == Class::Exclusive {
                break;
            }
        }
        has_own
    }

    /// Returns the first token in the queue that must be considered.
    fn next(&self, name: usize, passed: u8, freed: Option<Class>) -> Option<u8> {
        let is_concerned = |token: u8| {
            let against = |freed: Class| self.class(token, name).is_some_and(|class| freed.conflicts_with(class));
            !self.has_several(token) || freed.is_some_and(against)
        };
        bits(self.node.queue[name] & !passed).find(|token| is_concerned(*token))
    }

    fn is_blocked(&self) -> bool {
        let token = self.token;
        self.wanted(token).any(|(name, _)| self.is_held_against(token, name) || self.is_behind(token, name))
    }

    fn is_held_against(&self, token: u8, name: usize) -> bool {
        let minds = self.keeps(Rule::IntentsKeepOut) || !self.class(token, name).is_some_and(Class::is_intent);
        minds && bits(self.node.holders[name]).any(|holder| holder != token && self.excludes(holder, token, name))
    }

    fn is_behind(&self, token: u8, name: usize) -> bool {
        bits(self.node.queue[name]).any(|other| other < token && self.excludes(other, token, name))
    }

    /// Returns `true` if an earlier waiter conflicts with the requested class, which may be stronger than the present one.
    fn is_asked_behind(&self, name: usize) -> bool {
        let Some(asked) = self.wishes[usize::from(self.token)][name] else { return false };
        let is_kept_out = |other: u8| self.class(other, name).is_some_and(|class| class.conflicts_with(asked));
        bits(self.node.queue[name]).any(|other| other < self.token && is_kept_out(other))
    }

    fn excludes(&self, one: u8, other: u8, name: usize) -> bool {
        let pair = self.class(one, name).zip(self.class(other, name));
        pair.is_some_and(|(one, other)| one.conflicts_with(other))
    }

    fn has(&self, token: u8, name: usize) -> bool {
        self.node.holders[name] >> token & 1 == 1
    }

    fn class(&self, token: u8, name: usize) -> Option<Class> {
        let class = self.wishes[usize::from(token)][name];
        if self.node.lowered >> token & 1 == 1 { class.map(Class::lowered) } else { class }
    }

    fn has_several(&self, token: u8) -> bool {
        self.wanted(token).count() > 1
    }

    /// Returns the names that a token wants, with their classes.
    fn wanted(&self, token: u8) -> impl Iterator<Item = (usize, Class)> + use<> {
        let wish: Wish = std::array::from_fn(|name| self.class(token, name));
        wish.into_iter().enumerate().filter_map(|(name, class)| Some((name, class?)))
    }

    fn keeps(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }
}

/// Returns the tokens with a bit, the smallest first.
pub(super) fn bits(tokens: u8) -> impl Iterator<Item = u8> {
    (0..8).filter(move |token| tokens >> token & 1 == 1)
}
