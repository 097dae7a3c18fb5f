//! Every test that a page cites exists.

use crate::page::{Page, all, workspace};
use std::fs;
use std::path::Path;

/// Smallest number of words in the name of a test. Shorter names are those of options, fields and files.
const LEAST_WORDS: usize = 6;

/// Returns the names of tests in the prose of a page, without their files.
fn cited(page: &Page) -> Vec<String> {
    let prose = page.prose().collect::<Vec<_>>().join(" ");
    let codes = prose.split('`').skip(1).step_by(2);
    let names = codes.map(|code| code.rsplit("::").next().unwrap());
    let is_test = |name: &&str| {
        let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        is_name && name.split('_').count() >= LEAST_WORDS
    };
    names.filter(is_test).map(ToOwned::to_owned).collect()
}

/// Returns all sources below a folder, one after the other.
fn sources(folder: &Path) -> String {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let text = |path: std::path::PathBuf| match path.extension() {
        _ if path.is_dir() => sources(&path),
        Some(extension) if extension == "rs" => fs::read_to_string(&path).unwrap(),
        _ => String::new(),
    };
    entries.map(text).collect()
}

#[test]
fn every_cited_test_exists() {
    let folders =
        ["examples", "redlock-cli", "redlock-macros/src", "redlock-runtime/src", "tests/model", "tests/tests"];
    let sources: String = folders.map(|folder| sources(&workspace().join(folder))).concat();
    let pages = all();
    let cited: Vec<_> = pages.iter().flat_map(|page| cited(page).into_iter().map(move |test| (page, test))).collect();
    assert!(cited.len() > 80, "{} tests are cited", cited.len());
    let is_there = |test: &str| ['(', '<'].iter().any(|end| sources.contains(&format!("fn {test}{end}")));
    let gone: Vec<_> =
        cited.iter().filter(|(_, test)| !is_there(test)).map(|(page, test)| format!("{}: {test}", page.name)).collect();
    assert!(gone.is_empty(), "cited, and not there:\n{}", gone.join("\n"));
}
