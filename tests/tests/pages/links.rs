//! Every link within the project leads to an existing file and heading.

use crate::page::{Page, all, workspace};
use std::path::{Component, Path, PathBuf};

/// Pages that rustdoc shows as modules, or at items, and their files.
const SHOWN: [(&str, &str); 3] = [
    ("macro@crate::distributed_lock", "redlock-runtime/docs/distributed_lock.md"),
    ("crate::diagnostics", "redlock-runtime/docs/diagnostics.md"),
    ("crate::observability", "redlock-runtime/docs/observability.md"),
];

/// Returns the file and the heading of a link of `page`. Returns `None` for a link out of the project, or to an item of rustdoc.
fn target(page: &Page, link: &str) -> Option<(PathBuf, Option<String>)> {
    let (place, anchor) = link.split_once('#').map_or((link, None), |(place, anchor)| (place, Some(anchor.to_owned())));
    if let Some(guide) = place.strip_prefix("crate::guide::") {
        return Some((format!("redlock-runtime/docs/guide/{}.md", guide.replace("::", "/")).into(), anchor));
    }
    if let Some((_, file)) = SHOWN.iter().find(|(shown, _)| *shown == place) {
        return Some((file.into(), anchor));
    }
    if place.is_empty() {
        return Some((page.name.clone().into(), anchor));
    }
    let is_path = place.contains(['/', '.']) && !place.contains("://") || place.starts_with("LICENSE");
    is_path.then(|| (straight(&page.folder().join(place)), anchor))
}

/// Returns the path without `..`.
fn straight(path: &Path) -> PathBuf {
    let mut straight = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => assert!(straight.pop(), "{} leads out of the project", path.display()),
            part => straight.push(part),
        }
    }
    straight
}

/// Returns the fault of a link of `page`.
fn fault(page: &Page, link: &str) -> Option<String> {
    let (file, anchor) = target(page, link)?;
    let is_there = workspace().join(&file).exists();
    let has = |anchor: &String| Page::read(file.to_str().unwrap()).anchors().contains(anchor);
    let is_found = || anchor.as_ref().is_none_or(has);
    (!is_there || !is_found()).then(|| format!("{}: {link}", page.name))
}

#[test]
fn every_link_has_a_target() {
    let pages = all();
    let links: Vec<_> = pages.iter().flat_map(|page| page.links().into_iter().map(move |link| (page, link))).collect();
    let followed = links.iter().filter(|(page, link)| target(page, link).is_some()).count();
    assert!(followed > 150, "only {followed} of {} links were followed", links.len());
    let faults: Vec<_> = links.iter().filter_map(|(page, link)| fault(page, link)).collect();
    assert!(faults.is_empty(), "links that lead nowhere:\n{}", faults.join("\n"));
}

#[test]
fn broken_links_are_found() {
    let page = Page { name: "docs/page.md".to_owned(), text: "# Here\n".to_owned() };
    for link in ["nowhere.md", "../README.md#nowhere", "protocol.md#nowhere", "crate::guide::nowhere", "../LICENSE"] {
        assert!(fault(&page, link).is_some(), "{link}");
    }
    let good = ["../README.md#errors", "protocol.md#13-invariants", "https://nowhere.example", "crate::LockError"];
    for link in
        good.into_iter().chain(["crate::guide::reference::keys#tenants", "macro@crate::distributed_lock#reentrant"])
    {
        assert_eq!(fault(&page, link), None, "{link}");
    }
}
