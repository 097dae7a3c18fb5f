//! One contender's distribution: the share of the waits, or of the time spent in them, up to each length.

use super::scale::{Decades, Frame};
use crate::contender::Kind;
use std::fmt::Write as _;
use std::time::Duration;

/// Steps that are drawn of each curve, however many waits there are.
const STEPS: u32 = 200;
/// The least room for a label beside its curve.
const LABEL_WIDTH: f64 = 220.0;

/// What a wait counts for.
#[derive(Clone, Copy)]
pub(crate) enum Weight {
    One,
    /// As much as it lasts: the curve is then that of the waits one meets at a random moment.
    Length,
}

pub(crate) struct Curve {
    pub(crate) kind: Kind,
    /// Each length, the shortest first, with the share up to it; at least one.
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
    /// `None` if there is nothing to draw.
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

    /// Between which lengths it is drawn.
    pub(crate) fn ends(&self) -> [Duration; 2] {
        [self.at(1.0 / f64::from(STEPS)), self.at(1.0)]
    }

    /// The steps, as the data of a path.
    pub(crate) fn path(&self, frame: Frame, decades: Decades) -> String {
        let [shortest, _] = self.ends();
        let mut path = format!("M{:.1} {:.1}", frame.x(decades, shortest), frame.bottom());
        for step in 1..=STEPS {
            let share = f64::from(step) / f64::from(STEPS);
            let _ = write!(path, "H{:.1}V{:.1}", frame.x(decades, self.at(share)), frame.y(share));
        }
        path
    }

    /// The curve's name beside it: the first of several at the left and the last at the right, where no other curve is.
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

    /// The length up to which the share reaches `share`.
    pub(crate) fn at(&self, share: f64) -> Duration {
        let reached = self.points.partition_point(|(_, up_to)| *up_to < share);
        self.points[reached.min(self.points.len() - 1)].0
    }
}

/// The class of a contender's line in the style sheet.
pub(crate) const fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::Ours => "ours",
        Kind::Rslock => "rslock",
        Kind::Poller => "poller",
    }
}
