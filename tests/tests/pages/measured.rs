//! What README.md says of measurements is what the tables say that the benchmarks have written.

use crate::page::{Page, cells, workspace};
use std::fmt::Write as _;
use std::fs;

const BEGIN: &str = "<!-- from the tables: UPDATE_EXPECT=1 cargo test -p redlock-tests --test pages measured -->";
const END: &str = "<!-- until here -->";

/// Contended locks, by the first cell of their rows.
const CONTENDED: [&str; 5] = [
    "hand-off to one waiter in another process, 1 node, p50",
    "16 waiters in as many managers drained, 5 nodes, 0 ms body",
    "500 tasks in one process on one key, 1 node: critical sections",
    "32 managers on one key, 5 nodes, 2ms body: worst wait / mean wait",
    "holder killed, 2s ttl, 1 node: expiry to waiter, worst",
];

/// The median of one task alone, for a pair of acquisition and release.
fn pair(page: &Page, nodes: &str, contestant: &str) -> String {
    let rows = page.prose().map(cells);
    let mut row = rows.filter(|cells| cells.len() == 8 && (cells[0], cells[1], cells[2]) == (nodes, contestant, "1"));
    row.next().map_or_else(|| "-".to_owned(), |cells| cells[3].to_owned())
}

/// What became of locks over three nodes by a fault: how many were lost, and for how long both owners were at work.
fn kept(page: &Page, fault: &str) -> [String; 2] {
    let mut rows = page.prose().map(cells).filter(|cells| cells.len() == 6 && (cells[0], cells[1]) == (fault, "3"));
    let row = rows.next().unwrap_or_else(|| panic!("no row for {fault}"));
    [row[2], row[5]].map(|cell| cell.replace("**", ""))
}

/// A cell of two values, ours and that of rslock.
fn both(cell: &str) -> [&str; 2] {
    let (ours, theirs) = cell.split_once(" / ").unwrap();
    [ours, theirs]
}

fn table() -> String {
    let page = |name: &str| Page::read(&format!("redlock-runtime/benches/{name}.md"));
    let (uncontended, contended, keeping) = (page("uncontended"), page("contended"), page("keeping"));
    let mut table = "| November 2026 | here | rslock 0.10.0 | by hand |\n|---|---:|---:|---:|\n".to_owned();
    for nodes in ["1 node", "5 nodes", "5 nodes, one frozen"] {
        let [ours, theirs, raw] = ["ours, through the attribute", "rslock", "raw pair, release awaited"]
            .map(|contestant| pair(&uncontended, nodes, contestant));
        writeln!(table, "| lock and release alone, {nodes}, p50 | {ours} | {theirs} | {raw} |").unwrap();
    }
    for name in CONTENDED {
        let row = contended.row(name).unwrap_or_else(|| panic!("no row for {name}"));
        let [_, ours, theirs, raw, ..] = row[..] else { panic!("{row:?}") };
        writeln!(table, "| {name} | {ours} | {theirs} | {raw} |").unwrap();
    }
    let fault = "every node killed and back empty, one after the other";
    let [lost, overlap] = kept(&keeping, fault);
    for (what, cell) in [("locks lost", lost), ("two owners at once", overlap)] {
        let [ours, theirs] = both(&cell);
        writeln!(table, "| {fault}, 3 nodes: {what} | {ours} | {theirs} | - |").unwrap();
    }
    table
}

#[test]
fn the_numbers_in_front_are_those_of_the_tables() {
    let readme = Page::read("README.md").text;
    let (before, rest) = readme.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    let expected = format!("\n\n{}\n", table());
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(workspace().join("README.md"), [before, BEGIN, &expected, END, after].concat()).unwrap();
        return;
    }
    assert_eq!(found, expected, "the tables have other numbers: run this with UPDATE_EXPECT=1");
}
