//! Distribution of one contender's waits: the share of the waits, or of the waiting time, up to each length.

use super::scale::{Decades, Frame};
use crate::contender::Kind;
use std::fmt::Write as _;
use std::time::Duration;

/// Number of steps that are drawn of each curve, independent of the number of waits.
const STEPS: u32 = 200;
/// Minimum width of the free space for a label beside its curve.
const LABEL_WIDTH: f64 = 220.0;

/// Weight of a wait in the distribution.
#[derive(Clone, Copy)]
pub(crate) enum Weight {
    One,
    /// Weight by duration: the curve then shows the length of the waits that are running at a random moment.
    Length,
}

pub(crate) struct Curve {
    pub(crate) kind: Kind,
    /// Lengths in ascending order, each with the share of the waits up to it. Not empty.
    points: Vec<(Duration, f64)>,
}

impl Weight {
    fn of(self, wait: Duration) -> f64 {
        match self {
            Self::One => 1.0,
            Self::Length => wait.as_secs_f64(),
        }
    }
}

impl Curve {
    /// Returns `None` if there are no waits.
    pub(crate) fn new(kind: Kind, mut waits: Vec<Duration>, weight: Weight) -> Option<Self> {
        waits.sort_unstable();
        let whole: f64 = waits.iter().map(|wait| weight.of(*wait)).sum();
        let mut sum = 0.0;
        let share = |wait: Duration| {
            sum += weight.of(wait);
            (wait, sum / whole)
        };
        let points: Vec<_> = waits.into_iter().map(share).collect();
        (!points.is_empty()).then_some(Self { kind, points })
    }

    /// Returns the shortest and the longest drawn length.
    pub(crate) fn ends(&self) -> [Duration; 2] {
        [self.at(1.0 / f64::from(STEPS)), self.at(1.0)]
    }

    /// Returns the steps as the data of an SVG path.
    pub(crate) fn path(&self, frame: Frame, decades: Decades) -> String {
        let [shortest, _] = self.ends();
        let mut path = format!("M{:.1} {:.1}", frame.x(decades, shortest), frame.bottom());
        for step in 1..=STEPS {
            let share = f64::from(step) / f64::from(STEPS);
            let _ = write!(path, "H{:.1}V{:.1}", frame.x(decades, self.at(share)), frame.y(share));
        }
        path
    }

    /// Returns the label beside the curve. The leftmost curve has its label on the left and the rightmost on the right,
    /// where no other curve is.
    pub(crate) fn label(&self, frame: Frame, decades: Decades, rank: usize) -> String {
        let x = |share| frame.x(decades, self.at(share));
        let (share, is_left) = match rank {
            0 => (0.8, x(0.8) - frame.left > LABEL_WIDTH),
            1 => (0.5, frame.right() - x(0.5) < LABEL_WIDTH),
            _ if frame.right() - x(0.8) < LABEL_WIDTH => (0.2, true),
            _ => (0.8, false),
        };
        let (x, y, class) = (x(share), frame.y(share), class(self.kind));
        let (anchor, text_x) = if is_left { ("end", x - 10.0) } else { ("start", x + 10.0) };
        let text = format!("{}: p50 {:.1?}, worst {:.1?}", self.kind.name(), self.at(0.5), self.at(1.0));
        format!(
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>\n\
             <text class=\"label\" x=\"{text_x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{text}</text>\n",
            y + 4.0
        )
    }

    /// Returns the length at which the distribution reaches `share`.
    pub(crate) fn at(&self, share: f64) -> Duration {
        let reached = self.points.partition_point(|(_, up_to)| *up_to < share);
        self.points[reached.min(self.points.len() - 1)].0
    }
}

/// Returns the CSS class of a contender's line.
pub(crate) const fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::Ours => "ours",
        Kind::Rslock => "rslock",
        Kind::Poller => "poller",
    }
}
