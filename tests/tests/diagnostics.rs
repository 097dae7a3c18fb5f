//! The page of diagnostics explains every message of the attribute.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::fs;
use std::path::Path;

#[test]
fn every_message_has_an_entry() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(tests.join("../redlock-runtime/docs/diagnostics.md")).unwrap();
    let entries: Vec<String> = page.lines().filter_map(entry).collect();
    assert!(entries.len() > 70, "{entries:#?}");
    let mut missing = Vec::new();
    for file in fs::read_dir(tests.join("ui/ours")).unwrap().map(|file| file.unwrap().path()) {
        if file.extension() != Some("stderr".as_ref()) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let messages = text.lines().filter_map(message);
        missing.extend(messages.filter(|message| !entries.iter().any(|entry| message.contains(entry))));
    }
    assert!(missing.is_empty(), "without an entry in diagnostics.md:\n{}", missing.join("\n"));
}

/// Returns the first cell of a row.
fn entry(line: &str) -> Option<String> {
    let cell = line.strip_prefix("| ")?.split(" | ").next()?.trim();
    Some(general(cell)).filter(|entry| entry.len() > 10 && entry != "message")
}

/// Returns the text after the position and the level.
fn message(line: &str) -> Option<String> {
    let (place, rest) = line.split_once(": ")?;
    place.starts_with(|c: char| c.is_ascii_digit()).then_some(())?;
    Some(general(rest.split_once(": ")?.1))
}

/// Replaces the parts that differ in each case: quoted code and numbers.
fn general(text: &str) -> String {
    let code = text.split('`').enumerate().map(|(index, part)| if index % 2 == 1 { "_" } else { part });
    let mut general = String::new();
    for c in code.collect::<Vec<_>>().join("`").chars() {
        match c {
            '0'..='9' if general.ends_with('0') => {}
            '0'..='9' => general.push('0'),
            c => general.push(c),
        }
    }
    general
}
