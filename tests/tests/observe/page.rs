//! `docs/observability.md` lists each span and event of the source, with its level and fields.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Levels and fields of an event, or of a span.
type Said = (BTreeSet<String>, BTreeSet<String>);

fn runtime() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("redlock-runtime")
}

/// Adds the arguments of one macro: a level, a name, then fields.
fn add(all: &mut BTreeMap<String, Said>, level: &str, name: &str, fields: &str) {
    let fields = fields.split(',').map(str::trim).filter(|field| !field.is_empty() && !field.starts_with('"'));
    let said = all.entry(name.to_owned()).or_default();
    said.0.insert(level.to_owned());
    said.1.extend(fields.map(|field| field.split_whitespace().next().unwrap().to_owned()));
}

fn between<'t>(text: &'t str, from: &str, to: &str) -> Option<(&'t str, &'t str)> {
    text.split_once(from)?.1.split_once(to)
}

/// Returns the spans and events of the source.
fn in_source() -> BTreeMap<String, Said> {
    let source = |file: &str| fs::read_to_string(runtime().join("src/observe").join(file)).unwrap();
    let (mut all, events, spans) = (BTreeMap::new(), source("events.rs"), source("spans.rs"));
    let mut rest = events.as_str();
    while let Some((told, after)) = between(rest, "    tell!(", "}") {
        let (head, fields) = told.split_once('{').unwrap();
        let mut words = head.split(',').map(str::trim);
        add(&mut all, words.next().unwrap(), words.next().unwrap().trim_matches('"'), fields);
        rest = after;
    }
    let mut rest = spans.as_str();
    while let Some((told, after)) = between(rest, "tracing::span!(", "\n    )") {
        let (_, told) = told.split_once("Level::").unwrap();
        let mut parts = told.splitn(3, ',').map(str::trim);
        add(&mut all, parts.next().unwrap(), parts.next().unwrap().trim_matches('"'), parts.next().unwrap());
        rest = after;
    }
    all
}

/// Returns the spans and events on the page: rows with a name, levels and fields.
fn on_page() -> BTreeMap<String, Said> {
    let page = fs::read_to_string(runtime().join("docs/observability.md")).unwrap();
    let words = |cell: &str| cell.split(['`', ',', ' ']).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let rows = rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>()).filter(|cells| cells.len() >= 5);
    rows.map(|cells| (cells[0].trim_end_matches('`').to_owned(), (words(cells[1]), words(cells[2])))).collect()
}

#[test]
fn every_span_and_event_is_documented_with_level_and_fields() {
    let (source, page) = (in_source(), on_page());
    assert!(source.len() > 20, "{source:#?}");
    let names = |all: &BTreeMap<String, Said>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&source), names(&page));
    for (name, said) in source {
        assert_eq!(said, page[&name], "{name}");
    }
}

/// Checks that each row of the runbook contains the names of events, their levels, and an action.
#[test]
fn runbook_has_a_row_for_every_event() {
    let page = fs::read_to_string(runtime().parent().unwrap().join("docs/operations.md")).unwrap();
    let (section, _) = between(&page, "\n## Events\n", "\n## ").unwrap();
    let words = |cell: &str| -> Vec<String> {
        cell.split(['`', ',', ' ']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let mut on_page = BTreeMap::new();
    for row in section.lines().filter_map(|line| line.strip_prefix("| `")) {
        let cells: Vec<_> = row.split(" | ").collect();
        assert!(cells.len() == 3 && !cells[2].trim_matches(['|', ' ']).is_empty(), "{row}");
        let levels: BTreeSet<_> = words(cells[1]).iter().map(|level| level.to_uppercase()).collect();
        for name in words(cells[0]) {
            assert!(on_page.insert(name, levels.clone()).is_none(), "twice: {row}");
        }
    }
    let spans = ["redlock.acquire", "redlock.hold"];
    let events = in_source().into_iter().filter(|(name, _)| !spans.contains(&name.as_str()));
    let events: BTreeMap<_, _> = events.collect();
    let names = |of: Vec<&String>| of.into_iter().cloned().collect::<Vec<_>>();
    assert_eq!(names(on_page.keys().collect()), names(events.keys().collect()));
    for (name, (levels, _)) in events {
        assert!(levels.is_subset(&on_page[&name]), "{name}: {levels:?} and {:?}", on_page[&name]);
    }
}

#[test]
fn only_the_observe_module_emits_events() {
    let mut folders = vec![runtime().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                if !path.ends_with("src/observe") {
                    folders.push(path);
                }
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            for call in [
                "tracing::event!",
                "tracing::error!",
                "tracing::warn!",
                "tracing::info!",
                "tracing::debug!",
                "tracing::trace!",
                "_span!(",
                "::span!(",
            ] {
                assert!(!text.contains(call), "{} has {call}", path.display());
            }
        }
    }
}

/// Checks that no external text reaches a subscriber unescaped. `key`, `site` and tokens are safe by their types, and `line` escapes.
/// `outcome` is a fixed word, and `reason` is escaped earlier.
#[test]
fn every_event_field_is_escaped() {
    let events = fs::read_to_string(runtime().join("src/observe/events.rs")).unwrap();
    let (mut rest, mut count) = (events.as_str(), 0);
    while let Some((told, after)) = between(rest, "    tell!(", "}") {
        let (_, fields) = told.split_once('{').unwrap();
        for field in fields.split(',').map(str::trim).filter(|field| !field.is_empty()) {
            let is_number = |name: &str| {
                name.ends_with("_ms") || ["times", "has_pushes", "window", "outcome", "reason"].contains(&name)
            };
            let (name, value) = field.split_once(" = ").unwrap_or((field, ""));
            let is_safe = matches!(value, "%lock.key()" | "%key" | "%lock.site()" | "%token" | "%by" | "lock.template")
                || value == "lock.mode()"
                || value == "path.name()"
                || value.starts_with("%line(")
                || is_number(name);
            assert!(is_safe, "{field}");
            count += 1;
        }
        rest = after;
    }
    assert!(count > 50, "{count}");
}
