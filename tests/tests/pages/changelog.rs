//! Until a version is published, `CHANGELOG.md` describes a first release: it names no differences from an earlier version.

use crate::page::Page;
use std::collections::BTreeSet;

/// Words and phrases that describe a difference from an earlier version.
const DIFFERENCES: [&str; 26] = [
    "any more",
    "anymore",
    "as before",
    "changed",
    "deprecated",
    "earlier version",
    "earlier versions",
    "faster",
    "fixed",
    "formerly",
    "improved",
    "instead of",
    "moved",
    "no longer",
    "now",
    "previous version",
    "previous versions",
    "previously",
    "removed",
    "renamed",
    "replaced",
    "slower",
    "so far",
    "used to",
    "was",
    "were",
];

/// Returns the differences in the text, each with its line.
fn differences(text: &str) -> Vec<(&'static str, &str)> {
    let in_line = |line: &str| {
        let is_separator = |c: char| !c.is_alphanumeric() && c != '_';
        let words: Vec<_> = line.split(is_separator).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
        let line = format!(" {} ", words.join(" "));
        DIFFERENCES.into_iter().filter(move |difference| line.contains(&format!(" {difference} ")))
    };
    text.lines().flat_map(|line| in_line(line).map(move |difference| (difference, line))).collect()
}

/// Returns the headings of versions, such as `[0.1.0] - 2026-12-01`.
fn versions(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("## ")).collect()
}

#[test]
fn changelog_of_a_first_release_names_no_differences() {
    let page = Page::read("CHANGELOG.md");
    let versions = versions(&page.text);
    assert!(versions.iter().any(|version| version.contains("0.1.0")), "{versions:?}");
    // The description of a second version consists of differences.
    if versions.len() == 1 {
        assert_eq!(differences(&page.text), []);
    }
}

#[test]
fn differences_are_found_as_whole_words() {
    let table: [(&str, &[&str]); 6] = [
        ("- `wait` is now a duration.", &["now"]),
        ("- The option is called `linger`\ninstead of `keep`.", &["instead of"]),
        ("- **Renamed**: `hold`. It no longer blocks.", &["renamed", "no longer"]),
        ("- Calls wait as before, and a release was faster.", &["as before", "faster", "was"]),
        ("- `redact_keys` removes keys; unknown, known, `Washer`, Rust 1.89 or newer.", &[]),
        ("- Calls that wait before others. `was_lost` and `now_or_never`.", &[]),
    ];
    for (text, expected) in table {
        let found: BTreeSet<_> = differences(text).into_iter().map(|(difference, _)| difference).collect();
        assert_eq!(found, expected.iter().copied().collect(), "{text}");
    }
}

#[test]
fn each_version_has_a_heading() {
    let text = "# Changelog\n## [0.2.0] - 2027-01-01\n### Attribute\n## [0.1.0] - 2026-12-01\n";
    assert_eq!(versions(text), ["[0.2.0] - 2027-01-01", "[0.1.0] - 2026-12-01"]);
}
