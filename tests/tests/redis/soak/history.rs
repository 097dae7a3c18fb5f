//! When which body could prove its lock, and what must not be among that.

use std::collections::BTreeMap;
use std::fmt;

/// From when until when a body has seen that its lock was held, in nanoseconds of the clock that all processes of the
/// machine share. What it had before and after is not in it, so that two that overlap have really had the lock together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) key: String,
    pub(super) is_shared: bool,
    pub(super) number: Option<u64>,
    pub(super) from: u64,
    pub(super) until: u64,
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, is_shared, number, from, until } = self;
        let shared = if *is_shared { " shared" } else { "" };
        write!(f, "{key}{shared} {from}..{until}")?;
        number.map_or(Ok(()), |number| write!(f, " with number {number}"))
    }
}

/// What the processes have written: a line when a body begins, and one when it ends, which that of a killed process lacks.
///
/// `+ <id> <key> <s|x> <number|-> <from>` and `- <id> <until>`. A line without its end was cut off with its process.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) bodies: Vec<Interval>,
    /// What became of calls that have had no body, and of bodies that were stopped, by name.
    pub(super) others: BTreeMap<String, u64>,
}

impl History {
    /// Adds what one process has written.
    pub(super) fn add(&mut self, text: &str) {
        let mut begun = BTreeMap::new();
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["+", id, key, mode, number, from] => {
                    let (key, from) = (key.to_owned(), from.parse().unwrap());
                    let number = number.parse().ok();
                    let interval = Interval { key, is_shared: mode == "s", number, from, until: from };
                    begun.insert(id.to_owned(), interval);
                }
                ["-", id, until] => {
                    let interval = begun.remove(id).unwrap_or_else(|| panic!("it ends and has not begun: {line}"));
                    self.bodies.push(Interval { until: until.parse().unwrap(), ..interval });
                }
                ["!", what] => *self.others.entry(what.to_owned()).or_default() += 1,
                _ => panic!("no line of a worker: {line}"),
            }
        }
        self.bodies.extend(begun.into_values());
    }

    /// What must not be: two bodies at once of which one has the lock alone, or a number that is not larger than those before.
    pub(super) fn violations(&self) -> Vec<String> {
        let mut bodies: Vec<_> = self.bodies.iter().collect();
        bodies.sort_by_key(|body| (&body.key, body.from));
        bodies.chunk_by(|one, other| one.key == other.key).flat_map(of_one_key).collect()
    }
}

/// Those of one key, in the order in which they began.
fn of_one_key(bodies: &[&Interval]) -> Vec<String> {
    let mut violations = Vec::new();
    let (mut last, mut last_alone, mut numbered): (Option<&Interval>, Option<&Interval>, Option<&Interval>) =
        (None, None, None);
    for body in bodies {
        let rival = if body.is_shared { last_alone } else { last };
        if let Some(rival) = rival.filter(|rival| rival.until > body.from) {
            violations.push(format!("at once: {rival}, and {body}"));
        }
        if let Some(before) = numbered.filter(|before| body.number.is_some() && body.number <= before.number) {
            violations.push(format!("no larger number: {before}, then {body}"));
        }
        let later = |known: Option<&Interval>| known.is_none_or(|known| known.until < body.until);
        last = if later(last) { Some(body) } else { last };
        last_alone = if !body.is_shared && later(last_alone) { Some(body) } else { last_alone };
        numbered = if body.number.is_some() { Some(body) } else { numbered };
    }
    violations
}

fn found(lines: &[&str]) -> usize {
    let mut history = History::default();
    history.add(&lines.concat());
    history.violations().len()
}

#[test]
fn what_must_not_be_is_found() {
    let table: [(&[&str], usize); 10] = [
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
    ];
    for (lines, expected) in table {
        assert_eq!(found(lines), expected, "{lines:?}");
    }
}
