//! Table of the results, and the ratios with a goal.

use crate::build::Mode;
use crate::result_file::{self, verdict};
use crate::source::Variant;
use std::fmt;
use std::time::Duration;

pub(crate) struct Report {
    functions: usize,
    times: Vec<(Variant, Mode, Duration)>,
    sizes: Vec<(Variant, Option<u64>, Vec<usize>)>,
}

const MOST_TIME: f64 = 0.75;
const MOST_GROWTH: usize = 96;

impl Report {
    pub(crate) const fn new(functions: usize) -> Self {
        Self { functions, times: Vec::new(), sizes: Vec::new() }
    }

    pub(crate) fn add(&mut self, variant: Variant, mode: Mode, time: Duration) {
        self.times.push((variant, mode, time));
    }

    pub(crate) fn sizes(&mut self, variant: Variant, text: Option<u64>, futures: &[usize]) {
        self.sizes.push((variant, text, futures.to_vec()));
    }

    pub(crate) fn write(&self) {
        result_file::write("expansion", "The attribute at compile time", self);
    }

    /// Returns the median of all turns in seconds.
    fn time(&self, variant: Variant, mode: Mode) -> f64 {
        let of_this = self.times.iter().filter(|(v, m, _)| (*v, *m) == (variant, mode));
        let mut times: Vec<Duration> = of_this.map(|(_, _, time)| *time).collect();
        times.sort_unstable();
        times.get(times.len() / 2).expect("everything was measured").as_secs_f64()
    }

    fn futures(&self, variant: Variant) -> &[usize] {
        self.sizes.iter().find(|(v, _, _)| *v == variant).map_or(&[], |(_, _, futures)| futures)
    }

    fn growth(&self) -> usize {
        let pairs = self.futures(Variant::Ours).iter().zip(self.futures(Variant::Plain));
        pairs.map(|(ours, plain)| ours.saturating_sub(*plain)).max().unwrap_or_default()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "CPU seconds of one compiler on {} functions, the median of the turns, in one run.\n",
            self.functions
        )?;
        writeln!(f, "| | check | dev | release | text, bytes | futures, bytes |")?;
        writeln!(f, "|---|---:|---:|---:|---:|---|")?;
        for (variant, text, futures) in &self.sizes {
            let [check, dev, release] = Mode::ALL.map(|mode| self.time(*variant, mode));
            let text = text.map_or("?".to_owned(), |text| text.to_string());
            let futures = futures.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            writeln!(f, "| {} | {check:.2} | {dev:.2} | {release:.2} | {text} | {futures} |", variant.name())?;
        }
        writeln!(f, "\n| ratio | measured | to reach | |\n|---|---:|---:|---|")?;
        for mode in Mode::ALL {
            let ratio = self.time(Variant::Ours, mode) / self.time(Variant::Instrument, mode);
            let verdict = verdict(ratio <= MOST_TIME);
            writeln!(f, "| {}: ours / instrument | {ratio:.2} | at most {MOST_TIME} | {verdict} |", mode.name())?;
        }
        let growth = self.growth();
        let verdict = verdict(growth <= MOST_GROWTH);
        writeln!(f, "| largest growth of a future over plain | +{growth} | at most +{MOST_GROWTH} | {verdict} |")
    }
}
