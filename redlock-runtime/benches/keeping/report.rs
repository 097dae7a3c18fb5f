//! Table of the results.

use crate::contestant::Kind;
use crate::fault::Fault;
use crate::outcome::Outcome;
use crate::percentile::percentile;
use crate::plan::TTL;
use crate::result_file::verdict;
use std::fmt;
use std::time::Duration;

const METHOD: &str = include_str!("method.md");

#[derive(Default)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Row>,
}

/// Results of one fault with one number of nodes.
pub(crate) struct Row {
    pub(crate) fault: Fault,
    pub(crate) nodes: usize,
    /// Outcomes in the order of [`Kind::ALL`].
    pub(crate) outcomes: [Vec<Outcome>; Kind::ALL.len()],
}

impl Row {
    fn ours(&self) -> &[Outcome] {
        &self.outcomes[Kind::Ours as usize]
    }
}

impl Report {
    fn count(&self, rows: impl Fn(&Row) -> bool, outcomes: impl Fn(&Outcome) -> bool) -> usize {
        let ours = self.rows.iter().filter(|row| rows(row)).flat_map(Row::ours);
        ours.filter(|outcome| outcomes(outcome)).count()
    }

    fn goals(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let several = |row: &Row| row.nodes > 1;
        let survived = |row: &Row| row.fault.is_to_be_survived(row.nodes);
        let lost = self.count(survived, |outcome| outcome.is_lost);
        let both = self.count(several, |outcome| !outcome.both.is_zero());
        let late = self.count(|_| true, |outcome| outcome.is_lost && outcome.known.is_none_or(|known| known > TTL));
        let never = self.count(|_| true, |outcome| outcome.next.is_none());
        writeln!(f, "| ours | measured | to reach | |\n|---|---:|---:|---|")?;
        let mut goal = |what, count| writeln!(f, "| {what} | {count} | 0 | {} |", verdict(count == 0));
        goal("locks lost although a majority of the nodes has kept them", lost)?;
        goal("locks with two owners at once, several nodes", both)?;
        goal("lost locks whose owner did not know by the end of its lease", late)?;
        goal("locks that nobody could have any more", never)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "What becomes of held locks when nodes fail. Each cell: ours / rslock.\n")?;
        writeln!(f, "| fault | nodes | lost | its owner knows after | the next one begins after | both at once |")?;
        writeln!(f, "|---|---:|---:|---:|---:|---:|")?;
        for row in &self.rows {
            writeln!(f, "{row}")?;
        }
        writeln!(f)?;
        self.goals(f)?;
        write!(f, "\n{METHOD}")
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "| {} | {} |", self.fault.name(), self.nodes)?;
        for cell in [lost, known, next, both] {
            write!(f, " {} |", self.outcomes.each_ref().map(|outcomes| cell(outcomes)).join(" / "))?;
        }
        Ok(())
    }
}

fn lost(outcomes: &[Outcome]) -> String {
    format!("{} of {}", outcomes.iter().filter(|outcome| outcome.is_lost).count(), outcomes.len())
}

fn known(outcomes: &[Outcome]) -> String {
    let lost: Vec<_> = outcomes.iter().filter(|outcome| outcome.is_lost).collect();
    match median(lost.iter().filter_map(|outcome| outcome.known)) {
        Some(median) => millis(median),
        None if lost.is_empty() => "-".to_owned(),
        None => "**never**".to_owned(),
    }
}

fn next(outcomes: &[Outcome]) -> String {
    let never = outcomes.iter().filter(|outcome| outcome.next.is_none()).count();
    if never > 0 {
        return format!("**never ({never})**");
    }
    match median(outcomes.iter().filter(|outcome| outcome.is_lost).filter_map(|outcome| outcome.next)) {
        Some(median) => millis(median),
        None => "its release".to_owned(),
    }
}

/// Formats the longest overlap.
fn both(outcomes: &[Outcome]) -> String {
    let worst = outcomes.iter().map(|outcome| outcome.both).max().unwrap_or_default();
    match worst.as_millis() {
        0 if worst.is_zero() => "0".to_owned(),
        0 => "**under 1 ms**".to_owned(),
        _ => format!("**{}**", millis(worst)),
    }
}

fn median(durations: impl Iterator<Item = Duration>) -> Option<Duration> {
    let durations: Vec<_> = durations.collect();
    (!durations.is_empty()).then(|| percentile(&durations, 50))
}

fn millis(duration: Duration) -> String {
    format!("{} ms", duration.as_millis())
}
