//! Intervals in which bodies could prove their locks, and the search for violations.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Lock mode of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Alone,
    Shared,
    /// One of the given number of permits.
    Permit(usize),
}

impl Mode {
    /// Parses the mode in a line.
    fn read(text: &str) -> Self {
        match text.strip_prefix('p') {
            Some(permits) => Self::Permit(permits.parse().unwrap()),
            None if text == "s" => Self::Shared,
            None => Self::Alone,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alone => f.write_str("x"),
            Self::Shared => f.write_str("s"),
            Self::Permit(permits) => write!(f, "p{permits}"),
        }
    }
}

/// Time from the first to the last moment at which a body saw its lock held, in nanoseconds. All processes of the machine share this
/// clock.
/// The real holding time is longer, so two overlapping intervals prove a real overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) key: String,
    pub(super) mode: Mode,
    pub(super) number: Option<u64>,
    pub(super) from: u64,
    pub(super) until: u64,
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, mode, number, from, until } = self;
        write!(f, "{key} {mode} {from}..{until}")?;
        number.map_or(Ok(()), |number| write!(f, " with number {number}"))
    }
}

/// Log of the processes: a line at the start of a body, and a line at its end. A killed process does not write the second line.
///
/// The formats are `+ <id> <key>,<key>.. <s|x|p2> <number|-> <from>` and `- <id> <until>`. A line without a line break was cut off
/// when its process was killed. A body with a path also names everything below the path.
/// So two bodies exclude each other exactly if they have a name in common, independently of the names of keys at the nodes.
#[derive(Debug, Default)]
pub(super) struct History {
    /// One interval for each name of a body.
    pub(super) bodies: Vec<Interval>,
    /// Number of bodies that began.
    pub(super) begun: usize,
    /// Number of calls without a body and of stopped bodies, by outcome.
    pub(super) others: BTreeMap<String, u64>,
}

impl History {
    /// Adds the log of one process.
    pub(super) fn add(&mut self, text: &str) {
        let mut begun = BTreeMap::new();
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["+", id, keys, mode, number, from] => {
                    let (mode, number, from) = (Mode::read(mode), number.parse().ok(), from.parse().unwrap());
                    let of = |key: &str| Interval { key: key.to_owned(), mode, number, from, until: from };
                    self.begun += 1;
                    begun.insert(id.to_owned(), keys.split(',').map(of).collect::<Vec<_>>());
                }
                ["-", id, until] => {
                    let body = begun.remove(id).unwrap_or_else(|| panic!("it ends and has not begun: {line}"));
                    let until = until.parse().unwrap();
                    self.bodies.extend(body.into_iter().map(|interval| Interval { until, ..interval }));
                }
                ["!", what] => *self.others.entry(what.to_owned()).or_default() += 1,
                _ => panic!("no line of a worker: {line}"),
            }
        }
        self.bodies.extend(begun.into_values().flatten());
    }

    /// Returns the names of the locks in the log of one process.
    pub(super) fn names(text: &str) -> BTreeSet<&str> {
        text.lines().filter_map(keys_of).flat_map(|keys| keys.split(',')).collect()
    }

    /// Returns the violations: an exclusive body that overlaps with another one, more bodies than permits, or a fencing number that is
    /// not larger than the previous ones.
    pub(super) fn violations(&self) -> Vec<String> {
        let mut bodies: Vec<_> = self.bodies.iter().collect();
        bodies.sort_by_key(|body| (&body.key, body.from));
        bodies.chunk_by(|one, other| one.key == other.key).flat_map(of_one_key).collect()
    }
}

/// Returns the keys of a line for the start of a body.
fn keys_of(line: &str) -> Option<&str> {
    match line.split(' ').collect::<Vec<_>>()[..] {
        ["+", _, keys, _, _, _] => Some(keys),
        _ => None,
    }
}

/// Returns the violations among the bodies of one key, in the order of their start.
fn of_one_key(bodies: &[&Interval]) -> Vec<String> {
    let mut violations = Vec::new();
    let (mut last, mut last_alone, mut numbered): (Option<&Interval>, Option<&Interval>, Option<&Interval>) =
        (None, None, None);
    let mut inside: Vec<&Interval> = Vec::new();
    for body in bodies {
        let rival = if body.mode == Mode::Alone { last } else { last_alone };
        if let Some(rival) = rival.filter(|rival| rival.until > body.from) {
            violations.push(format!("at once: {rival}, and {body}"));
        }
        if let Some(before) = numbered.filter(|before| body.number.is_some() && body.number <= before.number) {
            violations.push(format!("no larger number: {before}, then {body}"));
        }
        inside.retain(|other| other.until > body.from);
        violations.extend(too_many(&inside, body));
        inside.push(body);
        let later = |known: Option<&Interval>| known.is_none_or(|known| known.until < body.until);
        last = if later(last) { Some(body) } else { last };
        last_alone = if body.mode == Mode::Alone && later(last_alone) { Some(body) } else { last_alone };
        numbered = if body.number.is_some() { Some(body) } else { numbered };
    }
    violations
}

/// Returns a violation if `body` has a permit, and `others` already use all permits.
fn too_many(others: &[&Interval], body: &Interval) -> Option<String> {
    let is_full = matches!(body.mode, Mode::Permit(permits) if others.len() >= permits);
    is_full.then(|| format!("too many: {body}, beside {others:?}"))
}

fn found(lines: &[&str]) -> usize {
    let mut history = History::default();
    history.add(&lines.concat());
    history.violations().len()
}

#[test]
fn checker_finds_each_kind_of_violation() {
    let table: [(&[&str], usize); 15] = [
        (&["+ 1 a x - 10\n", "- 1 20\n", "+ 2 a x - 20\n", "- 2 30\n"], 0),
        (&["+ 1 a x - 10\n", "- 1 20\n", "+ 2 a x - 19\n", "- 2 30\n"], 1),
        (&["+ 1 a x - 10\n", "- 1 20\n", "+ 2 b x - 19\n", "- 2 30\n"], 0),
        (&["+ 1 a s - 10\n", "- 1 20\n", "+ 2 a s - 15\n", "- 2 30\n"], 0),
        (&["+ 1 a s - 10\n", "- 1 40\n", "+ 2 a s - 15\n", "- 2 30\n", "+ 3 a x - 35\n", "- 3 36\n"], 1),
        (&["+ 1 a x - 10\n", "- 1 40\n", "+ 2 a s - 15\n", "- 2 16\n", "+ 3 a s - 17\n", "- 3 18\n"], 2),
        // Killed in its body: it was there for a moment.
        (&["+ 1 a x - 10\n", "- 1 40\n", "+ 2 a x - 15\n"], 1),
        (&["+ 1 a x - 10\n", "- 1 40\n", "+ 2 a x - 15"], 0),
        (&["+ 1 a x 7 10\n", "- 1 20\n", "+ 2 a x 8 20\n", "- 2 30\n", "! timed_out\n"], 0),
        (&["+ 1 a x 7 10\n", "- 1 20\n", "+ 2 a x 7 20\n", "- 2 30\n"], 1),
        (&["+ 1 a,b x - 10\n", "- 1 20\n", "+ 2 b,c x - 19\n", "- 2 30\n"], 1),
        (&["+ 1 a,b x - 10\n", "- 1 20\n", "+ 2 c x - 19\n", "- 2 30\n", "+ 3 a,b s - 19\n", "- 3 30\n"], 2),
        (&["+ 1 a p2 - 10\n", "- 1 20\n", "+ 2 a p2 - 15\n", "- 2 30\n", "+ 3 a p2 - 20\n", "- 3 30\n"], 0),
        (&["+ 1 a p2 - 10\n", "- 1 20\n", "+ 2 a p2 - 15\n", "- 2 30\n", "+ 3 a p2 - 19\n", "- 3 30\n"], 1),
        (&["+ 1 a p2 - 10\n", "- 1 20\n", "+ 2 a x - 15\n", "- 2 16\n", "+ 3 a p2 - 17\n", "- 3 18\n"], 1),
    ];
    for (lines, expected) in table {
        assert_eq!(found(lines), expected, "{lines:?}");
    }
}
