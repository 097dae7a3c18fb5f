//! The table.

use crate::renewal::{LOCKS, Renewal, TTL};
use crate::result_file::verdict;
use crate::short_call::ShortCall;
use std::fmt;
use std::time::Duration;

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
        let locks = format!("{LOCKS} held locks, 1 node, ttl {TTL:?}");
        let of_a_core = renewal.of_a_core;
        writeln!(
            f,
            "| {locks}: CPU of this process | {:.2} % of a core | at most {:.0} % | {} |",
            of_a_core * 100.0,
            MOST_OF_A_CORE * 100.0,
            verdict(of_a_core <= MOST_OF_A_CORE)
        )?;
        writeln!(f, "| the same without renewal | {:.2} % of a core | | |", renewal.of_a_core_idle * 100.0)?;
        writeln!(f, "| {locks}: renewals | {:.0}/s | | |", renewal.renewals_per_second)?;
        writeln!(
            f,
            "| {locks}: memory of each | {:.0} bytes | under {MOST_BYTES:.0} | {} |",
            renewal.bytes_per_lock,
            verdict(renewal.bytes_per_lock < MOST_BYTES)
        )?;
        writeln!(f, "| {locks}: lost | {} | 0 | {} |", renewal.lost, verdict(renewal.lost == 0))?;
        writeln!(f, "| `ensure_held` | {check:.0?} | under {LONGEST_CHECK:?} | {} |", verdict(*check < LONGEST_CHECK))?;
        let ratio = short_call.renewed.as_secs_f64() / short_call.unrenewed.as_secs_f64();
        writeln!(f, "| uncontended call, p50: with renewal / without | {ratio:.2} | | |")?;
        writeln!(
            f,
            "\nMemory is the growth of the resident set while the locks are taken, with the connection's buffers and the\n\
             names of the keys. A call that is over before a third of its ttl sends nothing for its renewal."
        )
    }
}
