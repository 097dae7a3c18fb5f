//! Layers of both crates, and the reader that finds violations.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use redlock_tests::{Layers, Sources};
use std::path::Path;

/// Layers of `redlock-macros`, lowest first.
const MACROS: Layers<'static> = Layers {
    order: &[&["errors", "keywords"], &["options", "template"], &["analyze"], &["check"], &["expand"], &["lib"]],
    left_out: &[],
};

/// Layers of `redlock-runtime`, lowest first. The simulation and the fuzz targets are tests, and may use everything.
const RUNTIME: Layers<'static> = Layers {
    order: &[
        &["text"],
        &["time"],
        &["lock"],
        &["observe"],
        &["error"],
        &["protocol"],
        &["request"],
        &["stats"],
        &["node"],
        &["client"],
        &["guard"],
        &["manager"],
        &["testing"],
        &["private"],
        &["admin", "guide", "tuning"],
        &["lib"],
    ],
    left_out: &["fuzzed", "simulation"],
};

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Checks that the sources of a crate keep to its layers, and that CONTRIBUTING.md lists the same layers.
fn hold(name: &str, layers: Layers<'_>) {
    let mut violations = layers.violations(&Sources::read(&workspace().join(name).join("src")));
    let page = std::fs::read_to_string(workspace().join("CONTRIBUTING.md")).unwrap();
    violations.extend(layers.differences_from_page(&page, name));
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

#[test]
fn layers_of_the_runtime_hold() {
    hold("redlock-runtime", RUNTIME);
}

#[test]
fn layers_of_the_macros_hold() {
    hold("redlock-macros", MACROS);
}

/// Returns the violations in a made-up crate. Its `lib.rs` declares `low`, then `middle` and `beside`, which are one layer.
fn wrong(files: &[(&str, &str)]) -> Vec<String> {
    let made_up = Layers { order: &[&["low"], &["middle", "beside"], &["lib"]], left_out: &["simulation"] };
    let base = [
        ("lib.rs", "mod low; mod middle; mod beside; mod simulation; pub use self::middle::Middle; pub fn lib() {}"),
        ("low.rs", "pub(crate) struct Low;"),
        ("middle.rs", "pub struct Middle;"),
        ("beside.rs", ""),
    ];
    let is_replaced =
        |file: &str| files.iter().any(|(other, _)| other.split(['/', '.']).next() == file.split('.').next());
    let kept = base.into_iter().filter(|(file, _)| !is_replaced(file));
    made_up.violations(&kept.chain(files.iter().copied()).collect())
}

#[test]
fn imports_from_below_are_allowed() {
    assert_eq!(wrong(&[("middle.rs", "use crate::low::Low; fn f() -> crate::low::Low { self::g() }")]), [""; 0]);
    assert_eq!(wrong(&[("middle/mod.rs", "mod a; use self::a::A;"), ("middle/a.rs", "use crate::low::Low;")]), [""; 0]);
}

#[test]
fn imports_from_above_are_found() {
    let all = [
        "use crate::middle::Middle;",
        "use crate::{middle::{self, Other}, beside};",
        "use crate::middle as m;",
        "pub(crate) use super::middle::*;",
        "use crate::Middle;",
        "fn f(x: &crate::middle::Middle) {}",
        "fn f() { super::middle::f::<u8>() }",
        "fn f() -> Result<(), crate::middle::Middle> { use super::middle::x; }",
        "macro_rules! m { () => { $crate::middle::f() } }",
        "const TEXT: char = '\"'; use crate::middle::Middle; const OTHER: char = '\"';",
        "mod inside { fn f() { super::super::middle::f() } }",
        "#[cfg(not(test))] use crate::middle::Middle;",
        "#[cfg(any(test, unix))] fn f() { crate::middle::f() }",
        "#[cfg(test)] fn f<A, B>() {} use crate::middle::Middle;",
        "struct S { #[cfg(test)] a: Map<u8, u8>, b: crate::middle::Middle }",
        "fn f() { match x { #[cfg(test)] A { .. } => { g() } B => crate::middle::f() } }",
    ];
    for text in all {
        let found = wrong(&[("low.rs", text)]);
        assert!(found.iter().any(|text| text.ends_with("and `middle` stands above `low`")), "{text}: {found:?}");
    }
    let found = wrong(&[("low.rs", "use crate::lib;")]);
    assert_eq!(found, ["low.rs imports lib.rs by `crate::lib`, and `lib` stands above `low`"]);
    let found = wrong(&[("beside.rs", "use crate::middle::Middle;")]);
    assert_eq!(found, ["beside.rs imports middle.rs by `crate::middle::Middle`, and `middle` stands beside `beside`"]);
}

#[test]
fn text_without_imports_is_accepted() {
    let all = [
        "//! crate::middle::Middle",
        "/* use crate::middle::Middle; /* nested */ use crate::middle::Middle; */",
        "const TEXT: &str = \"use crate::middle::Middle;\\\"\"; const RAW: &str = r#\"\"crate::middle::Middle\"#;",
        "fn f<'middle>(a: &'middle str) -> char { '\\'' }",
        "pub(in crate::low) struct S;",
        "use ::middle::Middle; use other::middle::Middle; fn f() { other::crate_::middle::f() }",
        "mod middle { pub(super) struct M; } use self::middle::M; fn f(m: middle::M) {}",
        "fn f() -> impl Future + use<'_> { middle.x() }",
    ];
    for text in all {
        assert_eq!(wrong(&[("low.rs", text)]), [""; 0], "{text}");
    }
}

#[test]
fn test_only_code_is_ignored() {
    let all = [
        "#[cfg(test)] mod tests { use crate::middle::Middle; #[test] fn t() {} }",
        "#[cfg(all(test, unix))] use crate::{middle::Middle, beside}; fn f() {}",
        "#[cfg(test)] #[derive(Debug)] struct S { a: crate::middle::Middle } struct T;",
        "#[cfg(test)] pub(crate) const fn f<A, B>() -> u8 { crate::middle::f() }",
        "#[test] fn t() { crate::middle::f() }",
        "enum E { A, #[cfg(test)] B(crate::middle::Middle), C }",
        "fn f(e: E) { match e { E::A => 1, #[cfg(test)] E::B => crate::middle::f(), E::C => 2 } }",
        "fn f(e: E) { match e { #[cfg(test)] E::B { .. } => { crate::middle::f() } E::C => 2 } }",
        "fn f() { #[cfg(test)] let a = S { a: 1 }.b(crate::middle::f()); }",
        "#![cfg(test)] use crate::middle::Middle;",
    ];
    for text in all {
        assert_eq!(wrong(&[("low.rs", text)]), [""; 0], "{text}");
    }
    let file = ("low/only.rs", "use crate::middle::Middle;");
    assert_eq!(wrong(&[("low/mod.rs", "#[cfg(test)] mod only;"), file]), [""; 0]);
    assert_eq!(wrong(&[("low/mod.rs", "mod only;"), file]).len(), 1);
    assert_eq!(wrong(&[("simulation/mod.rs", "use crate::lib;")]), [""; 0]);
}

#[test]
fn import_cycles_are_found() {
    let two = [
        ("middle/mod.rs", "mod a; mod b;"),
        ("middle/a.rs", "use super::b::B; struct A;"),
        ("middle/b.rs", "fn b(a: &crate::middle::a::A) {}"),
    ];
    assert_eq!(wrong(&two), ["middle/a.rs -> middle/b.rs -> middle/a.rs is a circle"]);
    let three = [
        ("middle/mod.rs", "mod a; mod b; mod c;"),
        ("middle/a.rs", "use super::b; fn a() { b::f() }"),
        ("middle/b.rs", "use super::{c::C, d};"),
        ("middle/c.rs", "use crate::middle::a::A;"),
    ];
    assert_eq!(wrong(&three), ["middle/a.rs -> middle/b.rs -> middle/c.rs -> middle/a.rs is a circle"]);
    let parent = [("middle/mod.rs", "mod a; use self::a::A; struct M;"), ("middle/a.rs", "use super::M; struct A;")];
    assert_eq!(wrong(&parent), ["middle/a.rs -> middle/mod.rs -> middle/a.rs is a circle"]);
    let by_path = [("middle/mod.rs", "mod a; fn m() { a::f() }"), ("middle/a.rs", "fn f() { super::m() }")];
    assert_eq!(wrong(&by_path), ["middle/a.rs -> middle/mod.rs -> middle/a.rs is a circle"]);
}

#[test]
fn reexported_name_resolves_to_its_definition() {
    let a = ("middle/a.rs", "pub(crate) struct A; pub(crate) fn f() {}");
    let b = "use super::A; struct B;";
    let b_and_f = "use super::A; use crate::middle::f; struct B;";
    let rows = [
        ("pub(crate) use self::a::A;", b),
        ("pub(crate) use a::{A, f};", b_and_f),
        ("pub(crate) use self::a::*;", b_and_f),
        ("use self::a::A;", b),
    ];
    for (hands_on, b) in rows {
        // `mod.rs` imports `b`, which imports from `a` and not from `mod.rs`.
        let folder = format!("mod a; mod b; {hands_on} use self::b::B;");
        assert_eq!(wrong(&[("middle/mod.rs", &folder), a, ("middle/b.rs", b)]), [""; 0], "{hands_on}");
    }
    let folder = "mod a; mod b; pub(crate) use self::a::A; use self::b::B;";
    assert_eq!(wrong(&[("middle/mod.rs", folder), a, ("middle/b.rs", b_and_f)]).len(), 1, "`f` is not handed on");
    // Through two folders, under another name.
    let files = [
        ("middle/mod.rs", "mod a; mod inner; pub(crate) use self::inner::Renamed as Again;"),
        ("middle/inner/mod.rs", "mod deep; pub(crate) use self::deep::Deep as Renamed;"),
        ("middle/inner/deep.rs", "use crate::middle::a::A; struct Deep;"),
        ("middle/a.rs", "use super::Again; struct A;"),
    ];
    assert_eq!(wrong(&files), ["middle/a.rs -> middle/inner/deep.rs -> middle/a.rs is a circle"]);
}

#[test]
fn every_file_has_a_layer_and_every_layer_a_file() {
    let lib = "mod low; mod middle; mod extra;";
    let found = wrong(&[("lib.rs", lib), ("extra/mod.rs", "")]);
    let empty = "`beside` stands in a layer, and there is no such file or folder";
    assert_eq!(found, ["`extra` stands in no layer", empty]);
}

#[test]
fn documented_layer_list_must_match() {
    let layers = Layers { order: &[&["low"], &["middle", "beside"], &["lib"]], left_out: &[] };
    let page = "```text other\nlow  x\n```\n```text name\nlib             top\nmiddle, beside  two\n                of them\nlow\n```\n";
    assert_eq!(layers.differences_from_page(page, "name"), [""; 0]);
    for name in ["other", "missing"] {
        assert_eq!(layers.differences_from_page(page, name).len(), 1, "{name}");
    }
}
