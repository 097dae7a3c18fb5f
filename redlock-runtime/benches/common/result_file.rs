//! Output that all benchmarks share: the verdict for each goal, and the result file of a full run.

use std::fmt;
use std::path::{Path, PathBuf};

pub(crate) const fn verdict(is_met: bool) -> &'static str {
    if is_met { "reached" } else { "**missed**" }
}

/// Writes `benches/<bench>.md`.
pub(crate) fn write(bench: &str, title: &str, body: &impl fmt::Display) {
    let text = format!("# {title}\n\nWritten by `cargo bench -p redlock-runtime --bench {bench}`.\n\n{body}");
    std::fs::write(path(&format!("{bench}.md")), text).expect("the table can be written");
}

/// Returns the path of a file in the folder of the benchmarks.
pub(crate) fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches").join(file)
}
