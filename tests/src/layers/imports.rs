//! Imports between the files of a crate.

use super::module::{self, Module, Use};
use super::text::{tokens, without_tests};
use std::collections::{BTreeMap, BTreeSet};

/// Use of a name in one file that another file defines.
#[derive(Debug)]
pub(super) struct Import {
    pub(super) from: String,
    pub(super) to: String,
    /// Path as written in the source, for one of the imported names.
    pub(super) path: String,
}

/// Returns the files that are reachable from `lib.rs` in a build without tests, and the imports between them.
pub(super) fn imports(sources: &BTreeMap<&str, &str>) -> (Vec<String>, Vec<Import>) {
    let mut tree = Tree::default();
    tree.add(sources, "lib.rs", &[]);
    let files: BTreeSet<String> = tree.modules.values().map(|(file, _)| file.clone()).collect();
    let mut paths: BTreeMap<(String, String), String> = BTreeMap::new();
    for (name, (from, module)) in &tree.modules {
        let used = module.uses.iter().filter(|used| !hands_on(module, used)).map(|used| &used.path);
        for path in used.chain(&module.paths) {
            if let Some(to) = tree.file_of(name, path, 0).filter(|to| to != from) {
                paths.entry((from.clone(), to)).or_insert_with(|| path.join("::"));
            }
        }
    }
    let imports = paths.into_iter().map(|((from, to), path)| Import { from, to, path });
    (files.into_iter().collect(), imports.collect())
}

/// Returns `true` for `pub use self::file::Name`: it only re-exports the name, and does not use it.
fn hands_on(module: &Module, used: &Use) -> bool {
    let first = match used.path.as_slice() {
        [own, first, ..] if own == "self" => first,
        [first, ..] => first,
        [] => return false,
    };
    used.is_public && module.files.contains(first)
}

/// Largest number of re-exports that are followed. A longer chain is a cycle.
const MOST_STEPS: usize = 16;

/// All modules by their paths, with the file of each.
#[derive(Default)]
struct Tree {
    modules: BTreeMap<Vec<String>, (String, Module)>,
}

impl Tree {
    /// Reads a file and all modules that it declares.
    fn add(&mut self, sources: &BTreeMap<&str, &str>, file: &str, name: &[String]) {
        let Some(text) = sources.get(file) else { return };
        let all = tokens(text);
        let kept = without_tests(&all);
        for module in module::read(&kept) {
            let folder = folder_of_children(file, &module.name);
            let name: Vec<String> = name.iter().chain(&module.name).cloned().collect();
            for child in &module.files {
                let places = [format!("{folder}{child}.rs"), format!("{folder}{child}/mod.rs")];
                let place = places.iter().find(|place| sources.contains_key(place.as_str()));
                let child: Vec<String> = name.iter().chain([child]).cloned().collect();
                if let Some(place) = place {
                    self.add(sources, place, &child);
                }
            }
            self.modules.insert(name, (file.to_owned(), module));
        }
    }

    /// Returns the file that defines the target of `path` in the module `from`, or `None` for a path outside of the crate.
    fn file_of(&self, from: &[String], path: &[String], steps: usize) -> Option<String> {
        self.absolute(from, path, steps).and_then(|path| self.find(&path, steps))
    }

    /// Returns the path from the root of the crate.
    fn absolute(&self, from: &[String], path: &[String], steps: usize) -> Option<Vec<String>> {
        let (_, module) = self.modules.get(from)?;
        let mut base = from.to_vec();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => base.clear(),
            "self" | "super" => {}
            first if module.children.contains(first) => return Some(base.into_iter().chain(rest.to_vec()).collect()),
            first => {
                let used = module.uses.iter().find(|used| used.name == *first && used.path != path)?;
                let steps = Some(steps + 1).filter(|steps| *steps < MOST_STEPS)?;
                let base = self.absolute(from, &used.path, steps)?;
                return Some(base.into_iter().chain(rest.iter().skip(1).cloned()).collect());
            }
        }
        while let [first, after @ ..] = rest
            && matches!(first.as_str(), "crate" | "self" | "super")
        {
            if first == "super" {
                base.pop();
            }
            rest = after;
        }
        Some(base.into_iter().chain(rest.to_vec()).collect())
    }

    /// Returns the file of the module that the path leads to, or the file that defines the name at its end.
    fn find(&self, path: &[String], steps: usize) -> Option<String> {
        let depth =
            (0..=path.len()).rev().find(|depth| path.get(..*depth).is_some_and(|p| self.modules.contains_key(p)))?;
        let (base, rest) = path.split_at(depth);
        let (file, module) = self.modules.get(base)?;
        let Some(name) = rest.first().filter(|name| *name != "*") else { return Some(file.clone()) };
        let handed_on = || self.handed_on(base, module, name, steps);
        if module.definitions.contains(name) { Some(file.clone()) } else { handed_on().or_else(|| Some(file.clone())) }
    }

    /// Returns the file that a name comes from if the module has it by `use`.
    fn handed_on(&self, base: &[String], module: &Module, name: &str, steps: usize) -> Option<String> {
        let steps = Some(steps + 1).filter(|steps| *steps < MOST_STEPS)?;
        if let Some(used) = module.uses.iter().find(|used| used.name == name) {
            return self.file_of(base, &used.path, steps);
        }
        module.uses.iter().filter(|used| used.name == "*").find_map(|glob| {
            let target = self.absolute(base, glob.path.split_last()?.1, steps)?;
            let (file, module) = self.modules.get(&target)?;
            let is_defined = module.definitions.contains(name);
            if is_defined { Some(file.clone()) } else { self.handed_on(&target, module, name, steps) }
        })
    }
}

/// Returns the folder, with its slash, that contains the files of a module's children.
fn folder_of_children(file: &str, inside: &[String]) -> String {
    let stem = file.strip_suffix(".rs").unwrap_or(file);
    let own = match stem.strip_suffix("mod").or_else(|| (stem == "lib").then_some("")) {
        Some(folder) if folder.is_empty() || folder.ends_with('/') => folder.to_owned(),
        _ => format!("{stem}/"),
    };
    inside.iter().fold(own, |folder, name| format!("{folder}{name}/"))
}
