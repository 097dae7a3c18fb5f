//! Every page of the guide is included, linked, and has its examples run.

use crate::page::{Page, workspace};
use std::fs;

/// Folders of the guide, in reading order.
const PARTS: [&str; 4] = ["start", "recipes", "production", "reference"];

/// Returns the pages of the four parts, as `start/quick_start`.
fn pages() -> Vec<String> {
    let guide = workspace().join("redlock-runtime/docs/guide");
    let mut pages = Vec::new();
    for part in PARTS {
        for file in fs::read_dir(guide.join(part)).unwrap() {
            let file = file.unwrap().file_name().into_string().unwrap();
            pages.push(format!("{part}/{}", file.strip_suffix(".md").unwrap()));
        }
    }
    pages.sort_unstable();
    pages
}

/// Returns the links to pages in the index, in reading order: titles and pages.
fn reading_order() -> Vec<(String, String)> {
    let index = Page::read("redlock-runtime/docs/guide/index.md").text;
    let links = index.split("| [").skip(1).filter_map(|row| row.split_once("](crate::guide::"));
    let page = |target: &str| target.split_once(')').unwrap().0.replace("::", "/");
    links.map(|(title, rest)| (title.to_owned(), page(rest))).collect()
}

#[test]
fn every_page_is_in_the_index_and_the_documentation() {
    let in_files = pages();
    assert!(in_files.len() >= 16, "{in_files:?}");
    assert!(Page::read("README.md").text.contains("(redlock-runtime/docs/guide/index.md)"));
    let order = reading_order();
    let mut in_index: Vec<_> = order.iter().map(|(_, page)| page.clone()).collect();
    // src/guide.rs declares the modules in the same order.
    let modules = Page::read("redlock-runtime/src/guide.rs").text;
    let mut declared = Vec::new();
    for part in PARTS {
        let (_, rest) =
            modules.split_once(&format!("\n    {part}: ")).unwrap_or_else(|| panic!("src/guide.rs: {part}"));
        let (names, _) = rest.split_once(';').unwrap();
        declared.extend(names.split_whitespace().map(|page| format!("{part}/{page}")));
    }
    assert_eq!(declared, in_index, "src/guide.rs and index.md differ");
    in_index.sort_unstable();
    assert_eq!(in_index, in_files, "index.md and the files differ");
}

/// Each page ends with links to the previous page, the index and the next page.
#[test]
fn pages_are_linked_in_reading_order() {
    let order = reading_order();
    let link = |(title, page): &(String, String)| format!("[{title}](crate::guide::{})", page.replace('/', "::"));
    for (at, (_, page)) in order.iter().enumerate() {
        let previous = at.checked_sub(1).map(|previous| format!("← {} · ", link(&order[previous]))).unwrap_or_default();
        let next = order.get(at + 1).map(|next| format!(" · {} →", link(next))).unwrap_or_default();
        let expected = format!("{previous}[Guide](crate::guide){next}");
        let page = Page::read(&format!("redlock-runtime/docs/guide/{page}.md"));
        assert_eq!(page.text.lines().last(), Some(expected.as_str()), "the last line of {}", page.name);
    }
}

/// Each block of code without a language is Rust, which rustdoc runs. All other blocks must name their language.
#[test]
fn every_code_block_is_run_or_names_its_language() {
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
fn examples_with_tests_run_in_the_test_harness() {
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
