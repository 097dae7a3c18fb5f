//! Measures the compile time of the attribute. 1000 annotated functions are compared with the same functions without an
//! attribute and with `tracing::instrument(skip_all)`.
//!
//! `cargo bench -p redlock-runtime --bench expansion` prints the table and writes it to `benches/expansion.md`.
#![allow(clippy::expect_used, clippy::panic, reason = "a benchmark that cannot run should say so and stop")]

mod build;
mod report;
#[path = "../common/result_file.rs"]
mod result_file;
mod source;

use build::{Mode, Scratch};
use report::Report;
use source::Variant;

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let (functions, turns) = if quick { (100, 1) } else { (1000, 1) };

    let scratch = Scratch::create(functions);
    scratch.build_dependencies();
    let mut report = Report::new(functions);
    for _ in 0..turns {
        // Alternate the variants, so that a change of the machine's speed affects all of them equally.
        for mode in Mode::ALL {
            for variant in Variant::ALL {
                report.add(variant, mode, scratch.cpu_time(variant, mode));
            }
        }
    }
    for variant in Variant::ALL {
        report.sizes(variant, scratch.text_size(variant), &scratch.future_sizes(variant));
    }
    print!("{report}");
    if !quick {
        report.write();
    }
}
