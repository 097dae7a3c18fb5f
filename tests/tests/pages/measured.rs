//! The measurements in README.md match the tables that the benchmarks have written.

use crate::page::{Page, cells, workspace};
use std::fmt::Write as _;
use std::fs;

const BEGIN: &str = "<!-- from the tables: UPDATE_EXPECT=1 cargo test -p redlock-tests --test pages measured -->\n";
const END: &str = "<!-- until here -->";

/// Returns the median time to acquire and release a lock, with one task; `-` if the contestant was not measured.
fn median(page: &Page, nodes: &str, contestant: &str) -> String {
    let rows = page.prose().map(cells);
    let mut row = rows.filter(|cells| cells.len() == 8 && (cells[0], cells[1], cells[2]) == (nodes, contestant, "1"));
    row.next().map_or_else(|| "-".to_owned(), |cells| cells[3].to_owned())
}

/// Returns the number of lost locks and the time of double locks under a fault, for us and for rslock.
fn losses(page: &Page, fault: &str) -> [(String, String); 2] {
    let mut rows = page.prose().map(cells).filter(|cells| cells.len() == 6 && (cells[0], cells[1]) == (fault, "3"));
    let row = rows.next().unwrap_or_else(|| panic!("no row for {fault}"));
    let [lost, overlap] = [row[2], row[5]].map(|cell| cell.split_once(" / ").unwrap());
    [(lost.0, overlap.0), (lost.1, overlap.1)].map(|(lost, overlap)| (lost.to_owned(), overlap.replace("**", "")))
}

fn table() -> String {
    let page = |name: &str| Page::read(&format!("redlock-runtime/benches/{name}.md"));
    let (uncontended, contended, keeping) = (page("uncontended"), page("contended"), page("keeping"));
    let mut table =
        "| November 2026, all on two cores ([method](redlock-runtime/benches)) | redlock | rslock 0.10 | `SET NX`, retried every 50 ms |\n\
         |---|---:|---:|---:|\n"
            .to_owned();
    let [ours, theirs] =
        ["ours, through the attribute", "rslock"].map(|who| median(&uncontended, "5 nodes, one frozen", who));
    writeln!(
        table,
        "| acquire and release with one of 5 servers frozen, median | {ours} | {theirs} | one server only |"
    )
    .unwrap();
    let name = "hand-off to one waiter in another process, 1 node, p50";
    let row = contended.row(name).unwrap_or_else(|| panic!("no row for {name}"));
    let [_, ours, theirs, raw, ..] = row[..] else { panic!("{row:?}") };
    writeln!(table, "| hand-off to a waiter in another process, median | {ours} | {theirs} | {raw} |").unwrap();
    let [ours, theirs] = losses(&keeping, "every node killed and back empty, one after the other");
    for (what, ours, theirs) in [("locks lost", ours.0, theirs.0), ("time with two holders", ours.1, theirs.1)] {
        writeln!(
            table,
            "| 3 servers restarted empty, one after the other: {what} | {ours} | {theirs} | one server only |"
        )
        .unwrap();
    }
    table
}

#[test]
fn measurements_in_the_readme_match_the_tables() {
    let readme = Page::read("README.md").text;
    let (before, rest) = readme.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    let expected = table();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(workspace().join("README.md"), [before, BEGIN, &expected, END, after].concat()).unwrap();
        return;
    }
    assert_eq!(found, expected, "the tables have changed: run this with UPDATE_EXPECT=1");
}
