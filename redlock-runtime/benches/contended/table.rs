//! Table with one row per figure: ours, the others, the ratio, and the goal.

use crate::contender::{Kind, POLL};
use crate::result_file::verdict;
use std::fmt;
use std::time::Duration;

#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Seconds,
    PerSecond,
    Count,
    /// Fraction of 1. A larger value is better.
    Share,
}

/// Goal for our figure.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    Under(f64),
    AtMost(f64),
    AtLeast(f64),
    /// At least this many times as good as rslock.
    Times(f64),
    /// No goal: the figure is for comparison only.
    None,
}

pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) unit: Unit,
    /// Figures in the order of [`Kind::ALL`]. `None` if a contender did not finish.
    pub(crate) figures: Vec<Option<f64>>,
    pub(crate) goal: Goal,
}

impl Unit {
    fn show(self, figure: f64) -> String {
        match self {
            Self::Seconds => format!("{:.2?}", Duration::from_secs_f64(figure)),
            Self::PerSecond => format!("{figure:.0}/s"),
            Self::Count => format!("{figure:.2}"),
            Self::Share => format!("{figure:.4}"),
        }
    }

    fn limit(self, figure: f64) -> String {
        match self {
            Self::Seconds => format!("{:?}", Duration::from_secs_f64(figure)),
            Self::PerSecond => format!("{figure}/s"),
            Self::Count | Self::Share => format!("{figure}"),
        }
    }

    const fn is_more_better(self) -> bool {
        matches!(self, Self::PerSecond | Self::Share)
    }
}

impl Row {
    fn figure(&self, kind: Kind) -> Option<f64> {
        let position = Kind::ALL.iter().position(|other| *other == kind)?;
        self.figures.get(position).copied().flatten()
    }

    fn shown(&self, kind: Kind) -> String {
        self.figure(kind).map_or_else(|| "not finished".to_owned(), |figure| self.unit.show(figure))
    }

    /// Returns our figure relative to rslock's. A value above 1 means that ours is better.
    fn ratio(&self) -> Option<f64> {
        let (ours, rslock) = (self.figure(Kind::Ours)?, self.figure(Kind::Rslock)?);
        Some(if self.unit.is_more_better() { ours / rslock } else { rslock / ours })
    }

    fn to_reach(&self) -> String {
        match self.goal {
            Goal::Under(limit) => format!("under {}", self.unit.limit(limit)),
            Goal::AtMost(limit) => format!("at most {}", self.unit.limit(limit)),
            Goal::AtLeast(limit) => format!("at least {}", self.unit.limit(limit)),
            Goal::Times(times) => format!("{times}x rslock"),
            Goal::None => String::new(),
        }
    }

    /// Returns whether the goal is met. A measurement of ours that did not finish meets no goal. If rslock did not
    /// finish, a relative goal has no verdict.
    fn outcome(&self) -> Option<bool> {
        let ours = self.figure(Kind::Ours);
        match self.goal {
            Goal::Under(limit) => Some(ours.is_some_and(|ours| ours < limit)),
            Goal::AtMost(limit) => Some(ours.is_some_and(|ours| ours <= limit)),
            Goal::AtLeast(limit) => Some(ours.is_some_and(|ours| ours >= limit)),
            Goal::Times(times) => ours.map_or(Some(false), |_| self.ratio().map(|ratio| ratio >= times)),
            Goal::None => None,
        }
    }
}

/// Writes the header of the table.
pub(crate) fn heading(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let [ours, rslock, poller] = Kind::ALL.map(Kind::name);
    writeln!(f, "| | {ours} | {rslock} | {poller}, {POLL:?} ± 50 % | times rslock | to reach | |")?;
    writeln!(f, "|---|---:|---:|---:|---:|---|---|")
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [ours, rslock, poller] = Kind::ALL.map(|kind| self.shown(kind));
        let ratio = self.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}x"));
        let verdict = self.outcome().map_or("", verdict);
        writeln!(f, "| {} | {ours} | {rslock} | {poller} | {ratio} | {} | {verdict} |", self.what, self.to_reach())
    }
}
