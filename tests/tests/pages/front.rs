//! The page in front is short, and its statements about the crate are those of the manifest.

use crate::page::Page;

#[test]
fn the_page_in_front_is_short() {
    let lines = Page::read("README.md").text.lines().count();
    assert!(lines <= 150, "README.md has {lines} lines: what needs the protocol belongs into the guide");
}

/// The features that the manifest of the runtime has, without `default`.
fn features() -> Vec<String> {
    let manifest = Page::read("redlock-runtime/Cargo.toml").text;
    let (_, rest) = manifest.split_once("[features]\n").unwrap();
    let lines = rest.lines().take_while(|line| !line.starts_with('['));
    let names =
        lines.filter(|line| !line.starts_with('#')).filter_map(|line| Some(line.split_once(" = ")?.0.to_owned()));
    names.filter(|name| name != "default").collect()
}

#[test]
fn every_feature_is_listed_where_users_look() {
    let features = features();
    assert!(features.len() >= 8, "{features:?}");
    for page in ["README.md", "redlock-runtime/README.md", "redlock-runtime/src/lib.rs"] {
        let text = Page::read(page).text;
        for feature in &features {
            assert!(text.contains(&format!("`{feature}`")), "{page} does not name the feature {feature}");
        }
    }
}

#[test]
fn the_least_compiler_is_the_same_everywhere() {
    let manifest = Page::read("Cargo.toml").text;
    let (_, rest) = manifest.split_once("rust-version = \"").unwrap();
    let version = rest.split('"').next().unwrap();
    for page in ["README.md", "redlock-runtime/docs/guide/versions.md"] {
        assert!(Page::read(page).text.contains(version), "{page} does not say {version}");
    }
}
