//! SVG of the distribution of the waits: one panel per scenario, one step curve per contender.

mod curve;
mod scale;

use crate::contender::Kind;
pub(crate) use curve::Weight;
use curve::{Curve, class};
use scale::{Decades, Frame};
use std::fmt;
use std::time::Duration;

const WIDTH: f64 = 800.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 24.0;
const LEGEND: f64 = 56.0;
const PANEL: f64 = 180.0;
const ABOVE_PANEL: f64 = 34.0;
const BELOW_PANEL: f64 = 48.0;

/// Line styles for light and dark colour schemes. Readers with colour blindness can distinguish the colours, and the
/// dashes do not depend on colour.
///
/// Source: M. Okabe, K. Ito, "Color Universal Design", 2008.
const STYLE: &str = include_str!("style.css");

pub(crate) struct Picture {
    panels: Vec<Panel>,
}

pub(crate) struct Panel {
    title: String,
    /// Label of the vertical axis.
    of: &'static str,
    /// Curves in ascending order of their waits.
    curves: Vec<Curve>,
}

impl Panel {
    /// Creates a panel from waits in the order of [`Kind::ALL`].
    pub(crate) fn new(title: String, weight: Weight, waits: impl Iterator<Item = Vec<Duration>>) -> Self {
        let curves = Kind::ALL.into_iter().zip(waits).filter_map(|(kind, waits)| Curve::new(kind, waits, weight));
        let mut curves: Vec<Curve> = curves.collect();
        curves.sort_by_key(|curve| curve.at(0.8));
        let of = match weight {
            Weight::One => "share of waits",
            Weight::Length => "share of waiting time",
        };
        Self { title, of, curves }
    }

    fn draw(&self, f: &mut fmt::Formatter<'_>, frame: Frame, decades: Decades) -> fmt::Result {
        let (left, above) = (frame.left, frame.top - 12.0);
        writeln!(f, "<text class=\"title\" x=\"{left}\" y=\"{above}\">{}</text>", self.title)?;
        draw_times(f, frame, decades)?;
        draw_shares(f, frame, self.of)?;
        for curve in &self.curves {
            writeln!(f, "<path class=\"line {}\" d=\"{}\"/>", class(curve.kind), curve.path(frame, decades))?;
        }
        for (rank, curve) in self.curves.iter().enumerate() {
            f.write_str(&curve.label(frame, decades, rank))?;
        }
        Ok(())
    }
}

impl Picture {
    pub(crate) const fn new(panels: Vec<Panel>) -> Self {
        Self { panels }
    }

    /// Returns one time axis for all panels, so that they can be compared.
    fn decades(&self) -> Decades {
        Decades::around(self.panels.iter().flat_map(|panel| &panel.curves).flat_map(Curve::ends))
    }
}

impl fmt::Display for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = ABOVE_PANEL + PANEL + BELOW_PANEL;
        let tops = std::iter::successors(Some(LEGEND + ABOVE_PANEL), |top| Some(top + step));
        let bottom = self.panels.iter().fold(LEGEND, |bottom, _| bottom + step);
        writeln!(
            f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {bottom}\" width=\"{WIDTH}\" \
             height=\"{bottom}\" role=\"img\">"
        )?;
        writeln!(f, "<title>How long waits take: the share of waits over time, on a logarithmic axis</title>")?;
        writeln!(f, "<style>\n{STYLE}</style>")?;
        writeln!(f, "<rect class=\"paper\" width=\"{WIDTH}\" height=\"{bottom}\"/>")?;
        draw_legend(f)?;
        for (panel, top) in self.panels.iter().zip(tops) {
            let frame = Frame { left: LEFT, top, width: WIDTH - LEFT - RIGHT, height: PANEL };
            panel.draw(f, frame, self.decades())?;
        }
        writeln!(f, "</svg>")
    }
}

fn draw_legend(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(f, "<text class=\"heading\" x=\"{LEFT}\" y=\"24\">How long waits take</text>")?;
    let places = std::iter::successors(Some(LEFT), |x| Some(x + 140.0));
    for (kind, x) in Kind::ALL.into_iter().zip(places) {
        writeln!(f, "<path class=\"line {}\" d=\"M{x} 46h34\"/>", class(kind))?;
        writeln!(f, "<text x=\"{}\" y=\"50\">{}</text>", x + 42.0, kind.name())?;
    }
    Ok(())
}

/// Draws the axis of times, with a line at each power of ten.
fn draw_times(f: &mut fmt::Formatter<'_>, frame: Frame, decades: Decades) -> fmt::Result {
    let (top, bottom) = (frame.top, frame.bottom());
    for exponent in decades.ticks() {
        let (x, label) = (frame.x(decades, Duration::from_secs_f64(10_f64.powi(exponent))), Decades::label(exponent));
        writeln!(f, "<path class=\"grid\" d=\"M{x:.1} {top}V{bottom}\"/>")?;
        writeln!(f, "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>", bottom + 18.0)?;
    }
    let (x, y) = (frame.left + frame.width / 2.0, bottom + 36.0);
    writeln!(f, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">length of the wait</text>")?;
    writeln!(f, "<path class=\"axis\" d=\"M{} {bottom}H{}\"/>", frame.left, frame.right())
}

/// Draws the axis of shares.
fn draw_shares(f: &mut fmt::Formatter<'_>, frame: Frame, of: &str) -> fmt::Result {
    let (left, right) = (frame.left, frame.right());
    for percent in [0, 50, 100] {
        let y = frame.y(f64::from(percent) / 100.0);
        writeln!(f, "<path class=\"grid\" d=\"M{left} {y:.1}H{right}\"/>")?;
        writeln!(f, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{percent} %</text>", left - 8.0, y + 4.0)?;
    }
    let (x, y) = (16.0, frame.top + frame.height / 2.0);
    writeln!(f, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" transform=\"rotate(-90 {x} {y})\">{of}</text>")
}
