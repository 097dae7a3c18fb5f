//! README.md is short, its program and its compile error are real, and its statements about the crate match the manifest. The first
//! functions and the services on all pages are correct about their locks.

use crate::page::{Page, all};

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

/// Pages that begin with a locked function, which says when it begins. "Only while the call holds the lock" would be wrong: with
/// `on_lost = continue`, the function continues after a loss, and otherwise it continues until its next `.await`.
const FIRST_FUNCTIONS: [&str; 5] = [
    "README.md",
    "redlock-runtime/README.md",
    "redlock-runtime/docs/distributed_lock.md",
    "redlock-runtime/docs/guide/start/quick_start.md",
    "redlock-runtime/src/lib.rs",
];

#[test]
fn first_functions_state_when_they_begin() {
    for page in FIRST_FUNCTIONS {
        let is_stated =
            Page::read(page).text.contains("// Begins only when this call holds the lock \"order:<id>\".\n");
        assert!(is_stated, "{page} does not state when its function begins");
    }
    let pages = all().into_iter().chain([Page::read("redlock-runtime/src/lib.rs")]);
    let wrong = pages.filter(|page| page.text.to_lowercase().contains("runs only while")).map(|page| page.name);
    assert_eq!(wrong.collect::<Vec<_>>(), [""; 0]);
}

/// A service manager stops a program by SIGTERM. Ctrl-C alone would leave locks until they expire.
#[test]
fn programs_that_wait_for_a_signal_end_on_sigterm() {
    let mut programs = 0;
    for page in all() {
        for (_, code) in page.code() {
            if code.contains("tokio::signal") || code.contains("axum::serve(") {
                programs += 1;
                assert!(code.contains("signal(SignalKind::terminate())"), "{}:\n{code}", page.name);
            }
        }
    }
    assert!(programs >= 6, "{programs} programs");
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

/// Questions of users who have a blocking program, or a client of Redis already.
#[test]
fn recipe_for_blocking_code_covers_clients_and_programs() {
    let page = Page::read("redlock-runtime/docs/guide/recipes/blocking_code.md");
    for section in ["Synchronous programs", "Threads", "Existing Redis clients and pools"] {
        let (_, text) =
            page.text.split_once(&format!("# {section}\n")).unwrap_or_else(|| panic!("no section {section}"));
        let (text, _) = text.split_once("\n# Other").unwrap();
        assert!(text.contains("```"), "{section} shows no program");
    }
}
