//! One contender's distribution: the share of the waits that took no longer than a time.

use super::scale::{Decades, Frame};
use crate::contender::Kind;
use std::fmt::Write as _;
use std::time::Duration;

/// Steps that are drawn of each curve, however many waits there are.
const STEPS: usize = 200;
/// The least room for a label beside its curve.
const LABEL_WIDTH: f64 = 210.0;

pub(crate) struct Curve {
    pub(crate) kind: Kind,
    sorted: Vec<Duration>,
    /// May be longer than all others, when it had not ended.
    worst: Duration,
}

impl Curve {
    /// `None` if there is nothing to draw.
    pub(crate) fn new(kind: Kind, waits: &[Duration], worst: Option<Duration>) -> Option<Self> {
        let mut sorted = waits.to_vec();
        sorted.sort_unstable();
        let longest = *sorted.last()?;
        Some(Self { kind, sorted, worst: worst.unwrap_or(longest) })
    }

    pub(crate) fn waits(&self) -> impl Iterator<Item = &Duration> {
        self.sorted.iter().chain([&self.worst])
    }

    pub(crate) fn median(&self) -> Duration {
        self.not_exceeded_by(50, 100)
    }

    /// The steps, as the data of a path.
    pub(crate) fn path(&self, frame: Frame, decades: Decades) -> String {
        let steps = self.sorted.len().min(STEPS);
        let mut path = String::new();
        for step in 1..=steps {
            let (x, y) = self.point(frame, decades, step, steps);
            let _ = if step == 1 {
                write!(path, "M{x:.1} {:.1}V{y:.1}", frame.bottom())
            } else {
                write!(path, "H{x:.1}V{y:.1}")
            };
        }
        path
    }

    /// The curve's name beside it: the first of several is high at the left, the last low at the right, so that neither
    /// covers another curve.
    pub(crate) fn label(&self, frame: Frame, decades: Decades, rank: usize) -> String {
        let (x, y) = self.point(frame, decades, [80, 50, 20][rank.min(2)], 100);
        let is_left = match rank {
            0 => x - frame.left > LABEL_WIDTH,
            _ => frame.right() - x < LABEL_WIDTH,
        };
        let (anchor, text_x) = if is_left { ("end", x - 10.0) } else { ("start", x + 10.0) };
        let (class, name) = (class(self.kind), self.kind.name());
        let text = format!("{name}: p50 {:.1?}, worst {:.1?}", self.median(), self.worst);
        format!(
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>\n\
             <text class=\"label\" x=\"{text_x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{text}</text>\n",
            y + 4.0
        )
    }

    /// Where the curve reaches `part` of `whole`.
    #[allow(clippy::cast_precision_loss, reason = "a few hundred")]
    fn point(&self, frame: Frame, decades: Decades, part: usize, whole: usize) -> (f64, f64) {
        let seconds = self.not_exceeded_by(part, whole).as_secs_f64();
        (frame.x(decades, seconds), frame.y(part as f64 / whole as f64))
    }

    /// The shortest time that `part` of `whole` of the waits do not exceed.
    fn not_exceeded_by(&self, part: usize, whole: usize) -> Duration {
        self.sorted[(self.sorted.len() * part).div_ceil(whole).max(1) - 1]
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
