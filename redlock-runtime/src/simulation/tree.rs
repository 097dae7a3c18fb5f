//! A tree of folders: its places, their conflicts, and circumstances in which calls want places.
//!
//! Conflicts are derived here only from the texts of paths, without the classes of their names.

use super::circumstances::{fenced_with_cuts, slow_crowd};
use super::faults::Faults;
use super::network::{Network, World};
use super::profile::Profile;
use super::sharing::{bank, readers_and_writers, readers_crowd, readers_with_cancels};
use crate::LockPart;
use crate::lock::OwnerToken;
use crate::protocol::command::{Command, Notice, Subject, Verb, Wakeup};
use crate::protocol::node_state::Limits;
use crate::request::Wait;
use fastrand::Rng;
use std::collections::HashMap;

/// All names: two keys, and then the places of a tree.
pub(super) const NAMES: [&str; 8] = ["a", "b", "/{t}", "/{t}/x", "/{t}/y", "/{t}/x/1", "/{t}/x/2", "/{t}/y/1"];
/// Index of the first place.
const ROOT: usize = 2;
/// Relative frequency of each place.
const WEIGHTS: [u32; NAMES.len() - ROOT] = [1, 2, 2, 4, 4, 4];

/// Returns the path of a place, or `None` for a key.
pub(super) fn path(index: usize) -> Option<String> {
    (index >= ROOT).then(|| NAMES[index].replace(['{', '}'], ""))
}

/// Returns the part of a request for a key or place.
pub(super) fn part(index: usize) -> LockPart {
    path(index).map_or_else(|| LockPart::key(NAMES[index]), LockPart::path)
}

/// Draws a place.
pub(super) fn place(random: &mut Rng) -> usize {
    let mut drawn = random.u32(0..WEIGHTS.iter().sum());
    let is_it = |weight: &u32| match drawn.checked_sub(*weight) {
        Some(rest) => {
            drawn = rest;
            false
        }
        None => true,
    };
    ROOT + WEIGHTS.iter().position(is_it).unwrap()
}

/// Returns `true` if both are one name, or one place is above the other.
pub(super) fn overlap(one: usize, other: usize) -> bool {
    are_related(NAMES[one], NAMES[other])
}

fn are_related(one: &str, other: &str) -> bool {
    uses(one, other) || uses(other, one)
}

/// Returns `true` if a call for `place` has an entry under `name`, which is the same place or one above it.
fn uses(place: &str, name: &str) -> bool {
    let is_below = |rest: &str| rest.starts_with('/') && name.starts_with("/{");
    place.strip_prefix(name).is_some_and(|rest| rest.is_empty() || is_below(rest))
}

/// Returns all names under which a call for the place or key has an entry.
pub(super) fn names(index: usize) -> impl Iterator<Item = usize> {
    (0..NAMES.len()).filter(move |name| uses(NAMES[index], NAMES[*name]))
}

/// Names that a token wants, with `true` for a shared name. Names on the way to them are omitted.
struct Wish(Vec<(String, bool)>);

impl Wish {
    fn of(subject: &Subject) -> Self {
        let wanted = subject.wanted().filter(|(_, class)| !class.is_intent());
        Self(wanted.map(|(key, class)| (key.name().to_owned(), !class.conflicts_with(class))).collect())
    }

    fn excludes(&self, other: &Self) -> bool {
        let excludes = |(one, is_shared): &(String, bool), (other, other_is_shared): &(String, bool)| {
            are_related(one, other) && !(*is_shared && *other_is_shared)
        };
        self.0.iter().any(|one| other.0.iter().any(|other| excludes(one, other)))
    }
}

/// First wishes of all tokens, and the first needless notification.
#[derive(Default)]
pub(super) struct Wishes {
    all: HashMap<OwnerToken, Wish>,
    /// Tokens that have left a name of a server where waiters must still be notified.
    left: HashMap<(usize, String), Vec<OwnerToken>>,
    needless: Option<String>,
}

impl Wishes {
    pub(super) fn note(&mut self, subject: &Subject) {
        self.all.entry(subject.token).or_insert_with(|| Wish::of(subject));
    }

    /// Returns `true` if the wishes of two tokens exclude each other, or if one token is unknown.
    pub(super) fn exclude(&self, one: OwnerToken, other: OwnerToken) -> bool {
        let pair = self.all.get(&one).zip(self.all.get(&other));
        pair.is_none_or(|(one, other)| one.excludes(other))
    }
}

impl World {
    /// Checks a notification of a name that `token` leaves. Its receiver must have been excluded by `token`, or by an
    /// earlier token with pending notifications.
    pub(super) fn note_free(&mut self, server: usize, token: OwnerToken, wakeup: &Wakeup) {
        let (told, place) = (wakeup.subject.token, (server, wakeup.subject.key.name().to_owned()));
        let mut gone = self.wishes.left.get(&place).into_iter().flatten().chain([&token]);
        if wakeup.notice == Notice::Free && !gone.any(|other| self.wishes.exclude(*other, told)) {
            let (leaves, told) = (self.trace.name(token), self.trace.name(told));
            let text = format!("{told} is told of {}, from which {leaves} has not kept it", wakeup.subject.key);
            self.wishes.needless.get_or_insert(text);
        }
    }

    /// Records that waiters may still have to be notified of the names that the command has left.
    pub(super) fn note_untold(&mut self, server: usize, command: &Command) {
        let leaves = !matches!(command.verb, Verb::Acquire { .. } | Verb::SetNx { .. });
        for (key, _) in command.subject.wanted() {
            let place = (server, key.name().to_owned());
            if !self.servers[server].has_untold(key.name()) {
                self.wishes.left.remove(&place);
            } else if leaves {
                self.wishes.left.entry(place).or_default().push(command.subject.token);
            }
        }
    }
}

impl Network {
    /// Returns a description of a needless notification.
    pub(super) fn needless(&self) -> Option<String> {
        self.world().wishes.needless.take()
    }
}

/// Number of waiters that one command notifies: fewer than all waiters, and more than one.
const GROUP: usize = 2;

/// Folders and their contents, exclusive and shared, and moves between two of them. No faults. Every waiter must be
/// served soon.
pub(super) fn tree() -> Profile {
    Profile {
        limits: Limits { steps: GROUP, ..Limits::default() },
        tree: 100,
        sets: 20,
        sharing: 30,
        ..readers_and_writers()
    }
}

/// All calls start at once.
pub(super) fn tree_crowd() -> Profile {
    Profile { tree: 100, sets: 20, sharing: 20, ..readers_crowd() }
}

/// Waiters give up.
pub(super) fn tree_with_cancels() -> Profile {
    Profile { tree: 100, sets: 20, sharing: 20, ..readers_with_cancels() }
}

/// Connections break.
pub(super) fn tree_with_cuts() -> Profile {
    let faults = Faults { cuts: 6, until: 900, ..Faults::NONE };
    Profile { tree: 100, sets: 20, sharing: 20, faults, ..slow_crowd() }
}

/// Other programs lock names of the tree as keys, and some waiting processes crash.
pub(super) fn tree_among_others() -> Profile {
    let faults = Faults { crashes: 1, until: 900, ..Faults::NONE };
    Profile { tree: 100, sets: 20, sharing: 20, foreign: 100, faults, bound: 4000, ..readers_crowd() }
}

/// Both keys, which have a register each, with one number.
pub(super) fn fenced_bank() -> Profile {
    Profile { keys: 2..=2, sets: 50, ..fenced_with_cuts() }
}

/// Places, which share one register.
pub(super) fn fenced_tree() -> Profile {
    Profile { tree: 100, sets: 20, sharing: 20, ..fenced_with_cuts() }
}

/// Calls for both keys among many that do not wait. At any time, one of the keys is held.
pub(super) fn bank_among_tries() -> Profile {
    Profile {
        nodes: vec![1, 3],
        clients: 4..=5,
        tasks: 2..=3,
        calls: 200..=250,
        pauses: 0..=6,
        bodies: 15..=40,
        ttls: vec![20_000],
        waits: vec![Wait::None],
        sets: 2,
        sharing: 0,
        bound: 5000,
        fair_within: Some(1200),
        ..bank()
    }
}

#[test]
fn paths_overlap_with_their_ancestors_and_descendants() {
    let all = |index| (0..NAMES.len()).filter(|other| overlap(index, *other)).collect::<Vec<_>>();
    assert_eq!([all(0), all(2), all(3), all(7)], [vec![0], vec![2, 3, 4, 5, 6, 7], vec![2, 3, 5, 6], vec![2, 4, 7]]);
    assert_eq!(names(6).collect::<Vec<_>>(), [2, 3, 6]);
    assert_eq!([path(1), path(5)], [None, Some("/t/x/1".to_owned())]);
}
