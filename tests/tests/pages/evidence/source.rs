//! Rules, cases and promises, as read from the sources.

use crate::page::workspace;
use std::fs;
use std::path::Path;

/// A variant of an enum, with its documentation.
pub(super) struct Variant {
    pub(super) name: String,
    pub(super) words: String,
}

/// A case of the simulation: the rule that is switched off, the circumstances, and the promises that may be broken then.
pub(super) struct Case {
    pub(super) rule: String,
    pub(super) circumstances: String,
    pub(super) promises: Vec<String>,
}

fn source(name: &str) -> String {
    fs::read_to_string(workspace().join("redlock-runtime/src").join(name)).unwrap()
}

/// Returns the variants of the enum that begins with `head` in the file called `name`.
pub(super) fn variants(name: &str, head: &str) -> Vec<Variant> {
    let source = source(name);
    let (_, rest) = source.split_once(head).unwrap_or_else(|| panic!("{name} has no `{head}`"));
    let (mut variants, mut words) = (Vec::new(), Vec::new());
    for line in rest.lines().map(str::trim).skip(1).take_while(|line| *line != "}") {
        if let Some(said) = line.strip_prefix("/// ") {
            words.push(said.to_owned());
        } else {
            let name = line.trim_end_matches(',').to_owned();
            variants.push(Variant { name, words: std::mem::take(&mut words).join(" ") });
        }
    }
    variants
}

/// Returns the cases of the simulation, in their order.
pub(super) fn cases() -> Vec<Case> {
    let source = source("simulation/mutations.rs");
    let (_, rest) = source.split_once("const CASES:").unwrap();
    let (rows, _) = rest.split_once("\n];").unwrap();
    rows.split("(Rule::").skip(1).map(case).collect()
}

fn case(row: &str) -> Case {
    let mut parts = row.splitn(3, ", ");
    let (rule, circumstances, rest) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
    let name = |text: &str| text.chars().take_while(char::is_ascii_alphabetic).collect::<String>();
    let promises = rest.split("Promise::").skip(1).map(name).collect();
    Case { rule: rule.to_owned(), circumstances: circumstances.rsplit("::").next().unwrap().to_owned(), promises }
}

/// Returns the unit tests of the protocol that switch `rule` off, as paths below `redlock-runtime/src`.
pub(super) fn tests_without(rule: &str) -> Vec<String> {
    let mut found = Vec::new();
    let folder = workspace().join("redlock-runtime/src");
    for tests in ["protocol/candidate/tests", "protocol/node_state/tests_of_sets.rs"] {
        look(&folder, &folder.join(tests), &format!("Rule::{rule}"), &mut found);
    }
    found.sort();
    found
}

fn look(root: &Path, path: &Path, needle: &str, found: &mut Vec<String>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            look(root, &entry.unwrap().path(), needle, found);
        }
    } else if fs::read_to_string(path).unwrap().contains(needle) {
        found.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
    }
}

/// Returns the rows of a table with tabs between its cells, without the first row.
pub(super) fn rows(name: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(workspace().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    text.lines().skip(1).map(|line| line.split('\t').map(ToOwned::to_owned).collect()).collect()
}

#[test]
fn simulation_case_is_parsed() {
    let row = "HoldsAreCapped, Profile::calm, &[Promise::BodyStops, Promise::Clean]),\n    ";
    let Case { rule, circumstances, promises } = case(row);
    assert_eq!((&*rule, &*circumstances), ("HoldsAreCapped", "calm"));
    assert_eq!(promises, ["BodyStops", "Clean"]);
}
