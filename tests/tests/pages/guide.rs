//! Every page of the guide is shown, is found, and has its examples run.

use crate::page::{Page, workspace};
use std::fs;

/// The pages but the first one, which leads to them.
fn pages() -> Vec<String> {
    let folder = workspace().join("redlock-runtime/docs/guide");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut pages: Vec<_> = files.map(|file| file.strip_suffix(".md").unwrap().to_owned()).collect();
    pages.retain(|page| page != "index");
    pages.sort_unstable();
    pages
}

#[test]
fn every_page_is_shown_and_led_to() {
    let pages = pages();
    assert!(pages.len() >= 16, "{pages:?}");
    let library = Page::read("redlock-runtime/src/lib.rs");
    let index = Page::read("redlock-runtime/docs/guide/index.md");
    assert!(Page::read("README.md").text.contains("(redlock-runtime/docs/guide/index.md)"));
    for page in pages {
        let shown = format!("#[doc = include_str!(\"../docs/guide/{page}.md\")]\n    pub mod {page} {{}}");
        assert!(library.text.contains(&shown), "lib.rs does not show {page}");
        assert!(index.text.contains(&format!("(crate::guide::{page})")), "index.md does not lead to {page}");
    }
}

/// rustdoc runs what is Rust; whatever should not be run has to say what it is.
#[test]
fn no_example_is_left_out() {
    let mut examples = 0;
    for page in pages() {
        let page = Page::read(&format!("redlock-runtime/docs/guide/{page}.md"));
        for language in page.languages() {
            match language {
                "" | "no_run" | "test_harness" => examples += 1,
                "sh" | "sql" | "text" | "toml" => {}
                other => panic!("{}: a block of `{other}` is not run", page.name),
            }
        }
    }
    assert!(examples >= 25, "{examples} examples");
}

/// A reader copies an example as it is shown.
#[test]
fn tests_in_examples_are_tests() {
    let mut tests = 0;
    for page in pages() {
        let page = Page::read(&format!("redlock-runtime/docs/guide/{page}.md"));
        for (language, code) in page.code() {
            assert!(!code.contains("// #["), "{}: an attribute that is a comment is not copied: {code}", page.name);
            let is_test = code.lines().any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"));
            assert_eq!(
                is_test,
                language == "test_harness",
                "{}: rustdoc runs tests in `test_harness`: {code}",
                page.name
            );
            tests += u32::from(is_test);
        }
    }
    assert!(tests >= 8, "{tests} tests");
}
