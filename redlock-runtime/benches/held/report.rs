//! Table of the results.

use crate::renewal::{BURST, Held, LOCKS, Renewal, TTL};
use crate::result_file::verdict;
use crate::short_call::ShortCall;
use std::fmt;
use std::time::Duration;

const METHOD: &str = include_str!("method.md");

const MOST_OF_A_CORE: f64 = 0.01;
const MOST_BYTES: f64 = 1024.0;
const LONGEST_CHECK: Duration = Duration::from_nanos(100);

pub(crate) struct Report {
    pub(crate) renewal: Renewal,
    pub(crate) check: Duration,
    pub(crate) short_call: ShortCall,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { renewal, check, short_call } = self;
        writeln!(f, "| | measured | to reach | |\n|---|---:|---:|---|")?;
        let locks = format!("{LOCKS} held locks, 3 nodes, ttl {TTL:?}");
        for (scene, held) in [(locks.clone(), &renewal.answered), (format!("{locks}, 1 node frozen"), &renewal.frozen)]
        {
            held.write(&scene, f)?;
        }
        writeln!(f, "| {locks}, without renewal: CPU | {:.2} % of a core | | |", renewal.of_a_core_idle * 100.0)?;
        writeln!(f, "| {locks}: lost | {} | 0 | {} |", renewal.lost, verdict(renewal.lost == 0))?;
        let (stays, is_added) = (renewal.stays / 1024, renewal.is_added / 1024);
        writeln!(f, "| {BURST} locks that were held at once: memory that stays | {stays} KiB | | |")?;
        writeln!(f, "| as many once more: memory that is added | {is_added} KiB | | |")?;
        writeln!(f, "| `ensure_held` | {check:.0?} | under {LONGEST_CHECK:?} | {} |", verdict(*check < LONGEST_CHECK))?;
        let ratio = short_call.renewed.as_secs_f64() / short_call.unrenewed.as_secs_f64();
        writeln!(f, "| uncontended call, p50: with renewal / without | {ratio:.2} | | |")?;
        write!(f, "\n{METHOD}")
    }
}

impl Held {
    fn write(&self, scene: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { of_a_core, bytes_per_lock, renewals_per_second } = *self;
        let (percent, most) = (of_a_core * 100.0, MOST_OF_A_CORE * 100.0);
        let met = verdict(of_a_core <= MOST_OF_A_CORE);
        writeln!(f, "| {scene}: CPU of this process | {percent:.2} % of a core | at most {most:.0} % | {met} |")?;
        writeln!(f, "| {scene}: renewals | {renewals_per_second:.0}/s | | |")?;
        let met = verdict(bytes_per_lock <= MOST_BYTES);
        writeln!(f, "| {scene}: memory of each | {bytes_per_lock:.0} bytes | at most {MOST_BYTES:.0} | {met} |")
    }
}
