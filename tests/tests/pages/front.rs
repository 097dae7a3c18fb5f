//! README.md is short, its program and its compile error are real, and its statements about the crate match the manifest.

use crate::page::Page;

#[test]
fn readme_is_short() {
    let lines = Page::read("README.md").text.lines().count();
    assert!(lines <= 130, "README.md has {lines} lines: details belong in the guide");
}

/// Pages whose programs are run by the tests of the examples, with the sources of these programs.
const PROGRAMS: [(&str, &str); 3] = [
    ("README.md", "first_program"),
    ("redlock-runtime/docs/guide/start/quick_start.md", "first_service"),
    ("redlock-runtime/docs/guide/production/start_and_stop.md", "start_and_stop"),
];

#[test]
fn programs_on_the_pages_match_the_tested_sources() {
    for (page, program) in PROGRAMS {
        let source = Page::read(&format!("examples/src/bin/{program}.rs")).text;
        let (_, code) = source.split_once("\n\n").unwrap();
        let is_shown = Page::read(page).text.contains(&format!("\n{code}```\n"));
        assert!(is_shown, "{page} does not show the code of {program}.rs:\n{code}");
    }
}

#[test]
fn compile_error_in_the_readme_matches_the_compiler() {
    let readme = Page::read("README.md").text;
    let (_, message) = readme.split_once("\nerror: ").unwrap();
    let message = message.lines().next().unwrap();
    let expected = Page::read("tests/ui/ours/unknown_option.stderr").text;
    assert!(expected.contains(&format!("error: {message}\n")), "no such message: {message}");
}

/// Returns the features in the manifest of the runtime, without `default`.
fn features() -> Vec<String> {
    let manifest = Page::read("redlock-runtime/Cargo.toml").text;
    let (_, rest) = manifest.split_once("[features]\n").unwrap();
    let lines = rest.lines().take_while(|line| !line.starts_with('['));
    let names =
        lines.filter(|line| !line.starts_with('#')).filter_map(|line| Some(line.split_once(" = ")?.0.to_owned()));
    names.filter(|name| name != "default").collect()
}

#[test]
fn every_feature_is_listed_in_readme_and_crate_docs() {
    let features = features();
    assert!(features.len() >= 8, "{features:?}");
    for page in ["redlock-runtime/README.md", "redlock-runtime/src/lib.rs"] {
        let text = Page::read(page).text;
        for feature in &features {
            assert!(text.contains(&format!("`{feature}`")), "{page} does not name the feature {feature}");
        }
    }
}

#[test]
fn minimum_rust_version_is_the_same_on_all_pages() {
    let manifest = Page::read("Cargo.toml").text;
    let (_, rest) = manifest.split_once("rust-version = \"").unwrap();
    let version = rest.split('"').next().unwrap();
    for page in ["README.md", "redlock-runtime/docs/guide/reference/versions.md"] {
        assert!(Page::read(page).text.contains(version), "{page} does not say {version}");
    }
}
