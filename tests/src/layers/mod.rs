//! Layers of a crate: compares every import of its sources with a list of layers.
//!
//! The sources are read as text, without syntax trees. The reader therefore knows only the parts that imports need:
//!
//! - `use` in all its forms,
//! - paths that begin with `crate`, `self`, `super`, a child module or an imported name,
//! - conditions by which code is compiled only for tests.
//!
//! It works in four steps:
//!
//! 1. `text` splits a file into words and signs, without comments and literals, and removes test-only code.
//! 2. `module` reads from them the modules, definitions, `use` declarations and paths of one file.
//! 3. `imports` follows the `mod` declarations from `lib.rs`, and finds for each path the file that it leads to. A re-exported name leads
//!    to the file that defines it.
//! 4. `circles` finds files that import each other.

mod circles;
mod imports;
mod module;
mod page;
mod text;

use self::imports::{Import, imports};
use std::collections::BTreeMap;
use std::path::Path;

/// Rules for imports between the entries of a crate's source folder.
///
/// ```
/// use redlock_tests::{Layers, Sources};
///
/// let layers = Layers { order: &[&["clock"], &["lock"], &["lib"]], left_out: &[] };
/// let files = [
///     ("lib.rs", "mod clock; mod lock;"),
///     ("clock.rs", "use crate::lock::Lock;"),
///     ("lock.rs", "pub(crate) struct Lock;"),
/// ];
/// let sources: Sources = files.into_iter().collect();
/// assert_eq!(
///     layers.violations(&sources),
///     ["clock.rs imports lock.rs by `crate::lock::Lock`, and `lock` stands above `clock`"]
/// );
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Layers<'a> {
    /// Layers, the lowest first. Each layer lists files, without `.rs`, and folders. Entries of one layer may not import each other.
    /// `lib.rs` belongs to a layer as well.
    pub order: &'a [&'a [&'a str]],
    /// Files and folders that are exempt from all rules.
    pub left_out: &'a [&'a str],
}

impl Layers<'_> {
    /// Returns one sentence for each violation: an import from a higher or the same layer, a cycle, or an entry without a layer.
    ///
    /// Test-only code is not checked.
    #[must_use]
    pub fn violations(&self, sources: &Sources) -> Vec<String> {
        let kept = sources.without(self.left_out);
        let (files, imports) = imports(&kept);
        let mut violations = self.misplaced(&files);
        violations.extend(imports.iter().filter_map(|import| self.forbidden(import)));
        let pairs = imports.iter().map(|import| (import.from.as_str(), import.to.as_str()));
        violations.extend(circles::find(pairs).iter().map(|circle| format!("{} is a circle", circle.join(" -> "))));
        violations
    }

    /// Returns the differences between this list and the list in a page for readers.
    ///
    /// The list on the page is a fenced block whose first line names the crate, as in `` ```text redlock-macros ``.
    /// Each line of the block is a layer, the highest first: names with commas between them, then two spaces and a description.
    #[must_use]
    pub fn differences_from_page(&self, page: &str, name: &str) -> Vec<String> {
        let listed = page::layers(page, name);
        let expected: Vec<String> = self.order.iter().rev().map(|layer| layer.join(", ")).collect();
        if listed == expected {
            return Vec::new();
        }
        vec![format!("the page lists the layers of {name} as {listed:#?}, and they are {expected:#?}")]
    }

    fn layer(&self, entry: &str) -> Option<usize> {
        self.order.iter().position(|layer| layer.contains(&entry))
    }

    /// Returns the files without a layer, and the layers without a file.
    fn misplaced(&self, files: &[String]) -> Vec<String> {
        let mut entries: Vec<&str> = files.iter().map(|file| entry(file)).collect();
        entries.dedup();
        let homeless = entries.iter().filter(|entry| self.layer(entry).is_none());
        let homeless = homeless.map(|entry| format!("`{entry}` stands in no layer"));
        let listed = self.order.iter().copied().flatten();
        let empty = listed.filter(|name| !entries.contains(name));
        let empty = empty.map(|name| format!("`{name}` stands in a layer, and there is no such file or folder"));
        homeless.chain(empty).collect()
    }

    fn forbidden(&self, import: &Import) -> Option<String> {
        let (from, to) = (entry(&import.from), entry(&import.to));
        let (own, other) = (self.layer(from)?, self.layer(to)?);
        let place = if other > own { "above" } else { "beside" };
        let is_allowed = from == to || other < own;
        (!is_allowed).then(|| {
            format!("{} imports {} by `{}`, and `{to}` stands {place} `{from}`", import.from, import.to, import.path)
        })
    }
}

/// Returns the file or folder at the root that a file belongs to.
fn entry(file: &str) -> &str {
    let first = file.split('/').next().unwrap_or(file);
    first.strip_suffix(".rs").unwrap_or(first)
}

/// Sources of a crate: paths below its source folder, and texts.
#[derive(Clone, Debug)]
pub struct Sources(BTreeMap<String, String>);

impl Sources {
    /// Reads every `.rs` file below `folder`.
    #[must_use]
    pub fn read(folder: &Path) -> Self {
        let mut files = BTreeMap::new();
        read_folder(folder, "", &mut files);
        assert!(files.contains_key("lib.rs"), "{} is not the source folder of a library", folder.display());
        Self(files)
    }

    fn without(&self, left_out: &[&str]) -> BTreeMap<&str, &str> {
        let all = self.0.iter().map(|(file, text)| (file.as_str(), text.as_str()));
        all.filter(|(file, _)| !left_out.contains(&entry(file))).collect()
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Sources {
    /// Builds sources that exist only in memory, from the path and the text of each file.
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(files: I) -> Self {
        Self(files.into_iter().map(|(file, text)| (file.to_owned(), text.to_owned())).collect())
    }
}

fn read_folder(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("a folder can be listed").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("sources have names in UTF-8");
        let name = format!("{prefix}{name}");
        if path.is_dir() {
            read_folder(&path, &format!("{name}/"), files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            files.insert(name, text);
        }
    }
}
