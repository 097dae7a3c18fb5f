//! The page of errors contains exactly the messages that a call, a builder or `check` can return.
//!
//! Messages are the texts in the source that read like sentences. The page has `..` for each placeholder in braces.

use crate::page::{Page, workspace};
use std::fs;
use std::path::Path;

/// Files whose texts are shown elsewhere, come from the compiler, or are not messages.
const ELSEWHERE: [&str; 22] = [
    "client/",                     // reasons of `must_use`
    "error/from_lock_error.rs",    // shown by the compiler
    "error/public_error.rs",       // answers to network clients
    "error/redacted.rs",           // texts of redacted logs
    "fuzzed.rs",                   // a test
    "guard/",                      // reasons of `must_use`
    "manager/locks_page.rs",       // an HTML page
    "node/differential",           // a test
    "node/inspection/",            // reports of an inspection
    "node/mod.rs",                 // reports of an inspection
    "node/redis/acl_hint.rs",      // answers of servers
    "node/redis/fuzzed.rs",        // a test
    "node/redis/inspect.rs",       // reports of an inspection
    "node/redis/list.rs",          // reports of an inspection
    "node/redis/script.rs",        // Lua source
    "node/report/capabilities.rs", // capabilities of a node
    "observe/",                    // the page of observability
    "private/",                    // shown by the compiler
    "simulation/",                 // a test
    "stats/journal.rs",            // the log of a test
    "testing/",                    // a test
    "text.rs",                     // the end of a shortened text
];

/// Texts that are part of a message on the page, are answers of a server, or never occur separately.
const PARTS: [&str; 53] = [
    "no permissions to run",
    ": the call at .. in this process",
    ", and the like for every lock",
    "ERR Error running script",
    "n=.. q=.. d=.. restart=..",
    "ERR max number of clients",
    "append-only file",
    "does not begin with `/`",
    "has an empty segment",
    "has the segment `.` or `..`",
    "has too many parts",
    "has too many segments",
    "is not a single key",
    "forgets the locks",
    "master with ",
    "the Sentinel at ..: ..",
    ".. has not ended within ..: ..",
    ".. failed: ..: ..",
    ".. (announced as ..)",
    ".. and .. more",
    ", with args beginning with",
    "the certificate of the server ..",
    "a builder does nothing until",
    "a configuration does nothing until",
    "a non local key",
    "a request does nothing until",
    "options do nothing until",
    "asking again for a lock",
    "extending a ",
    "giving a ",
    "at .. while the lock of .. is held",
    "no map to CLUSTER SLOTS",
    "no time to TIME",
    "something else than a digest",
    "something else than an id",
    "no id to CLUSTER MYID",
    "taking a fenced lock",
    "the Sentinels have made .. the master",
    "the URL of node ..",
    "the key of this client",
    "the certificates ..: ..",
    "the number of a lock whose slot has left",
    "the server takes no writes any more",
    "the slot of the key is on its way",
    "the task of the connection has",
    "waiting for a lock",
    "whoever has asked waits",
    "without it, the lock cannot be attached",
    "nothing is acquired until it is awaited",
    "a setting has no effect until",
    ". Such calls can wait for each other",
    "with slots .. and ..",
    ".. in .. at ..:..",
];

/// Remedies for answers of servers. They are shown together with the answer.
const CURES: &str = "node/report/remedy.rs";

/// Returns the string literals of a source. Skips its tests, comments and attributes.
fn texts(source: &str) -> Vec<String> {
    let is_code = |line: &&str| {
        let is_comment = line.trim_start().starts_with("//");
        !is_comment && !["reason = \"", "doc = \""].iter().any(|attribute| line.contains(attribute))
    };
    let source = source.lines().filter(is_code).collect::<Vec<_>>().join("\n");
    let code = source.split("#[cfg(test)]\nmod ").next().unwrap();
    let code = code.split("#[cfg(test)]\npub(").next().unwrap();
    let mut texts = Vec::new();
    let mut rest = code;
    while let Some((before, after)) = rest.split_once('"') {
        // A quotation mark as a character literal does not begin a string.
        if before.ends_with('\'') {
            rest = after;
            continue;
        }
        let end = end_of_text(after);
        texts.push(plain(&after[..end]));
        rest = after.get(end + 1..).unwrap_or_default();
    }
    texts
}

/// Returns the end of a string literal whose start has been read.
fn end_of_text(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.char_indices().find(|(_, c)| {
        let is_end = *c == '"' && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |(at, _)| at)
}

/// Returns the printed text, with `..` for each variable part.
fn plain(text: &str) -> String {
    let joined: Vec<_> =
        text.split("\\\n").enumerate().map(|(n, part)| if n == 0 { part } else { part.trim_start() }).collect();
    let text = joined.concat().replace("\\\"", "\"").replace("{{", "\u{1}").replace("}}", "\u{2}");
    let mut plain = String::new();
    for (n, part) in text.split('{').enumerate() {
        let rest = part.split_once('}').map(|(_, rest)| rest).filter(|_| n > 0);
        plain.push_str(if rest.is_some() { ".." } else { "" });
        plain.push_str(rest.unwrap_or(part));
    }
    plain.replace('\u{1}', "{").replace('\u{2}', "}").replace("....", "..")
}

/// Returns `true` if the text is long enough for a sentence: at least four words.
fn is_message(text: &str) -> bool {
    text.split_whitespace().count() >= 4
}

/// Returns all messages of the runtime with their files. Skips the files of `ELSEWHERE`.
fn messages() -> Vec<(String, String)> {
    let root = workspace().join("redlock-runtime/src");
    let mut files = Vec::new();
    collect(&root, &mut files);
    let mut messages = Vec::new();
    for file in files {
        let name = file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        let is_test = name.contains("test") || name.contains("conformance");
        let asked = ["client/acquire.rs", "client/acquire/nested.rs", "client/window.rs"];
        let is_asked = asked.contains(&name.as_str());
        if !is_test && (is_asked || !ELSEWHERE.iter().any(|other| name.starts_with(other))) {
            let texts = texts(&fs::read_to_string(&file).unwrap());
            messages.extend(texts.into_iter().map(|text| (name.clone(), text)));
        }
    }
    messages
}

fn collect(folder: &Path, files: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            collect(&entry, files);
        } else if entry.extension() == Some("rs".as_ref()) {
            files.push(entry);
        }
    }
}

/// Returns the first cells of the tables on the page that are messages.
fn entries() -> Vec<String> {
    let page = Page::read("redlock-runtime/docs/guide/reference/errors.md");
    let (_, messages) = page.text.split_once("\n# Run-time messages\n").unwrap();
    let (messages, _) = messages.split_once("\n# Symptoms without a message\n").unwrap();
    let cells = messages.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    cells.flat_map(quoted).collect()
}

/// Returns the one or two texts in backticks at the beginning of a cell.
fn quoted(cell: &str) -> Vec<String> {
    if let Some(rest) = cell.strip_prefix("`` ") {
        return vec![rest.trim_end_matches('`').trim_end().to_owned()];
    }
    let codes = if cell.starts_with('`') { cell.split('`').skip(1).step_by(2).collect() } else { Vec::new() };
    codes.into_iter().map(ToOwned::to_owned).collect()
}

/// Returns `true` if `entry` is the text of `message`, or its beginning.
fn is_about(entry: &str, message: &str) -> bool {
    message.contains(entry.strip_suffix("..").unwrap_or(entry).trim_end_matches([' ', ':']))
}

#[test]
fn every_documented_message_exists_in_the_source() {
    let (messages, entries) = (messages(), entries());
    assert!(entries.len() > 120, "{} entries", entries.len());
    // An empty entry would match every message.
    let short: Vec<_> = entries.iter().filter(|entry| entry.trim_matches([' ', '.', ':']).len() < 3).collect();
    assert!(short.is_empty(), "too short to find a message by: {short:?}");
    let unknown: Vec<_> =
        entries.iter().filter(|entry| !messages.iter().any(|(_, message)| is_about(entry, message))).collect();
    assert!(unknown.is_empty(), "on the page, and not in the source:\n{unknown:#?}");
}

#[test]
fn every_message_is_documented() {
    let entries = entries();
    let is_explained = |message: &str| entries.iter().any(|entry| is_about(entry, message));
    let is_part = |message: &str| PARTS.iter().any(|part| message.contains(part));
    let all = messages();
    let missing: Vec<_> = all
        .iter()
        .filter(|(file, message)| file != CURES && is_message(message) && !is_explained(message) && !is_part(message))
        .map(|(file, message)| format!("{file}: {message}"))
        .collect();
    assert!(missing.is_empty(), "without a line in errors.md:\n{}", missing.join("\n"));
}

#[test]
fn string_literals_are_read_as_printed() {
    let source = "fn f() { g(format!(\"a ttl of {ttl:?} is too \\\n        short: {{}}\"), '\"', \"b \\\"c\\\"\") }\n\
                  // \"no\"\n#[cfg(test)]\nmod tests { fn f() { \"no\" } }";
    assert_eq!(texts(source), ["a ttl of .. is too short: {}", "b \"c\""]);
}
