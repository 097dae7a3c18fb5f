//! The fuzz targets build the library from manifests of their own. A dependency that lacks a feature there breaks only a fuzz run.

use crate::page::Page;
use std::collections::BTreeMap;

/// Returns the features of each dependency of a manifest that names its version.
fn dependencies(manifest: &str) -> BTreeMap<String, Vec<String>> {
    let manifest = Page::read(manifest);
    let features = |line: &str| -> Vec<String> {
        let Some((_, listed)) = line.split_once("features = [") else { return Vec::new() };
        let listed = listed.split(']').next().unwrap();
        listed.split(',').map(|feature| feature.trim().trim_matches('"').to_owned()).collect()
    };
    let dependency = |line: &str| {
        let (name, version) = line.split_once(" = ")?;
        let has_version = version.starts_with('"') || version.contains("version = ");
        has_version.then(|| (name.to_owned(), features(line)))
    };
    let listed = manifest.text.lines().skip_while(|line| !line.ends_with("dependencies]"));
    listed.filter_map(dependency).collect()
}

#[test]
fn fuzz_targets_have_the_features_of_the_library() {
    let workspace = dependencies("Cargo.toml");
    for manifest in ["fuzz/runtime/Cargo.toml", "fuzz/macros/Cargo.toml"] {
        let fuzzed = dependencies(manifest);
        assert!(fuzzed.len() > 3, "{fuzzed:?}");
        for (name, features) in fuzzed {
            let Some(needed) = workspace.get(&name) else { continue };
            let missing: Vec<_> = needed.iter().filter(|feature| !features.contains(feature)).collect();
            assert!(missing.is_empty(), "{manifest}: add the features {missing:?} to `{name}`");
        }
    }
}
