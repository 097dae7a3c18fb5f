//! Markdown page: its lines outside of code, its headings, its links.

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// File below the workspace, with its text.
pub(crate) struct Page {
    /// Path below the workspace, such as `docs/protocol.md`.
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Page {
    pub(crate) fn read(name: &str) -> Self {
        let text = fs::read_to_string(workspace().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self { name: name.to_owned(), text }
    }

    /// Returns its folder, below the workspace.
    pub(crate) fn folder(&self) -> &Path {
        Path::new(&self.name).parent().unwrap()
    }

    /// Returns the lines outside of code blocks.
    pub(crate) fn prose(&self) -> impl Iterator<Item = &str> {
        let mut is_code = false;
        self.text.lines().filter(move |line| {
            let is_fence = line.trim_start().starts_with("```");
            is_code ^= is_fence;
            !is_code && !is_fence
        })
    }

    /// Returns the languages of its code blocks, from the opening fences.
    pub(crate) fn languages(&self) -> Vec<&str> {
        let fences = self.text.lines().filter_map(|line| line.trim_start().strip_prefix("```"));
        fences.step_by(2).collect()
    }

    /// Returns the language and the text of each block of code.
    pub(crate) fn code(&self) -> Vec<(&str, &str)> {
        let blocks = self.text.split("```").skip(1).step_by(2);
        blocks.filter_map(|block| block.split_once('\n')).collect()
    }

    /// Returns the anchors of its headings.
    pub(crate) fn anchors(&self) -> Vec<String> {
        let heading = |line: &str| {
            let title = line.trim_start_matches('#');
            (title.len() < line.len() && title.starts_with(' ')).then(|| anchor(title.trim()))
        };
        self.prose().filter_map(heading).collect()
    }

    /// Returns the targets of its links. Skips links that only rustdoc resolves.
    pub(crate) fn links(&self) -> Vec<String> {
        let text = self.prose().collect::<Vec<_>>().join("\n");
        let targets = text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap());
        targets.map(ToOwned::to_owned).collect()
    }

    /// Returns the cells of the row that begins with `first`.
    pub(crate) fn row(&self, first: &str) -> Option<Vec<&str>> {
        self.prose().map(cells).find(|cells| cells.first() == Some(&first))
    }
}

/// Returns the cells of a row of a table, and an empty list for another line.
pub(crate) fn cells(line: &str) -> Vec<&str> {
    let row = line.trim().strip_prefix("| ").and_then(|line| line.strip_suffix('|'));
    row.map(|row| row.split(" | ").map(str::trim).collect()).unwrap_or_default()
}

/// Returns the anchor that GitHub and rustdoc give to a heading.
fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Returns all pages of the project. Skips the pages of tools.
pub(crate) fn all() -> Vec<Page> {
    let folders = [
        ".",
        "docs",
        "redlock-cli",
        "redlock-macros",
        "redlock-runtime",
        "redlock-runtime/benches",
        "redlock-runtime/docs",
        "redlock-runtime/docs/guide",
        "redlock-runtime/docs/guide/start",
        "redlock-runtime/docs/guide/recipes",
        "redlock-runtime/docs/guide/production",
        "redlock-runtime/docs/guide/reference",
    ];
    let mut pages = Vec::new();
    for folder in folders {
        for file in fs::read_dir(workspace().join(folder)).unwrap().map(Result::unwrap) {
            // The packed copies of a crate are links to the one file.
            let is_other = file.file_type().unwrap().is_symlink();
            let file = file.file_name().into_string().unwrap();
            if Path::new(&file).extension() == Some("md".as_ref()) && !is_other {
                pages.push(Page::read(format!("{folder}/{file}").trim_start_matches("./")));
            }
        }
    }
    pages
}

#[test]
fn headings_have_their_rustdoc_anchors() {
    let table = [
        ("`key = \"template\"`", "key--template"),
        ("13. Restarts, amnesia and clocks", "13-restarts-amnesia-and-clocks"),
        ("When Redis is ..", "when-redis-is-"),
        ("`once_per = duration`", "once_per--duration"),
    ];
    for (title, expected) in table {
        assert_eq!(anchor(title), expected);
    }
}

#[test]
fn code_blocks_are_not_read_as_prose() {
    let text = "# One\n```sh\n# two [x](y)\n```\n[a `b`](c#d)\n";
    let page = Page { name: "docs/page.md".to_owned(), text: text.to_owned() };
    assert_eq!(page.anchors(), ["one"]);
    assert_eq!(page.links(), ["c#d"]);
    assert_eq!(page.languages(), ["sh"]);
}
