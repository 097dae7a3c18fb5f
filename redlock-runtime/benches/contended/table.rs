//! One row per figure: ours, the others, the ratio, and what was to be reached.

use crate::contender::{Kind, POLL};
use crate::result_file::verdict;
use std::fmt;
use std::time::Duration;

#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Seconds,
    PerSecond,
    Count,
    /// Of 1; the more the better.
    Share,
}

/// What ours has to reach.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    Under(f64),
    AtMost(f64),
    AtLeast(f64),
    /// So many times as good as rslock.
    Times(f64),
    /// For comparison only.
    None,
}

pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) unit: Unit,
    /// In the order of [`Kind::ALL`]; `None` for what did not finish.
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

    /// How many times as good as rslock ours is.
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

    /// What did not finish reached nothing, and a ratio to what did not finish proves nothing.
    fn is_met(&self) -> Option<bool> {
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

/// The heading that fits the rows.
pub(crate) fn heading(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let [ours, rslock, poller] = Kind::ALL.map(Kind::name);
    writeln!(f, "| | {ours} | {rslock} | {poller}, {POLL:?} ± 50 % | times rslock | to reach | |")?;
    writeln!(f, "|---|---:|---:|---:|---:|---|---|")
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [ours, rslock, poller] = Kind::ALL.map(|kind| self.shown(kind));
        let ratio = self.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}x"));
        let verdict = self.is_met().map_or("", verdict);
        writeln!(f, "| {} | {ours} | {rslock} | {poller} | {ratio} | {} | {verdict} |", self.what, self.to_reach())
    }
}
