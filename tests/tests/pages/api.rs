//! Compares the public API with `docs/api.txt`, so that every change of it is seen in a review.
//!
//! The API is read from the source: the items that `lib.rs` exports, with their fields, variants, methods and traits. No other compiler
//! is needed for that.

mod reader;
mod words;

use crate::page::workspace;
use reader::Crate;
use std::fs;

const PAGE: &str = "docs/api.txt";

const HEAD: &str =
    "The public API of redlock-runtime, one item in a line, as it is written in the source. To write it anew:
UPDATE_EXPECT=1 cargo test -p redlock-tests --test pages api
";

#[test]
fn public_api_matches_the_documented_list() {
    let api = Crate::read(&workspace().join("redlock-runtime/src")).api();
    let (page, text) = (workspace().join(PAGE), [HEAD, "\n", &api.join("\n"), "\n"].concat());
    if std::env::var_os("UPDATE_EXPECT").is_some_and(|update| update == "1") {
        fs::write(&page, &text).unwrap();
    }
    let written = fs::read_to_string(&page).unwrap_or_default();
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (before, now) = (lines(&written), lines(&text));
    let gone = before.iter().filter(|line| !now.contains(line)).map(|line| format!("- {line}"));
    let new = now.iter().filter(|line| !before.contains(line)).map(|line| format!("+ {line}"));
    let changes: Vec<_> = gone.chain(new).collect();
    assert!(
        written == text,
        "{PAGE} is out of date. What it says is promised to users: is the change meant, and in CHANGELOG.md?\n{}",
        changes.join("\n")
    );
}

/// The front page shows the items that every program needs. Other items are in a module.
#[test]
fn root_of_the_crate_has_at_most_sixty_items() {
    let page = fs::read_to_string(workspace().join(PAGE)).unwrap();
    let name = |line: &str| {
        let item = line.rsplit_once("] ").map_or(line, |(_, item)| item).trim_start_matches("pub ");
        if let Some((_, path)) = item.split_once("use ") {
            return Some(path.to_owned());
        }
        let (_, rest) = ["enum ", "struct ", "trait ", "fn "].iter().find_map(|kind| item.split_once(kind))?;
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        // Variants and fields have separate lines.
        (!rest.starts_with("::") && !rest.starts_with('.')).then(|| name.to_owned())
    };
    let items =
        page.lines().filter(|line| line.contains("pub ") && !line.contains("pub mod ") && !line.starts_with("impl"));
    let names: std::collections::BTreeSet<_> = items.filter_map(name).collect();
    assert!((30..=60).contains(&names.len()), "{}: {names:?}", names.len());
}

/// Public items of a made-up crate.
#[test]
fn public_items_are_collected() {
    let files = [
        (
            "lib.rs",
            "mod inner; pub use self::inner::{Shown, Kind, Able}; pub use inner::shown_fn as other; #[cfg(feature = \"more\")] \
             pub use self::inner::More; pub mod open; #[doc(hidden)] pub mod __private { pub use crate::inner::Hidden; } \
             #[cfg_attr(doc, doc(hidden))] pub mod attribute { pub use crate::inner::Hidden; }",
        ),
        (
            "inner/mod.rs",
            "#[derive(Clone, Debug)] #[non_exhaustive] pub struct Shown<T> { pub seen: T, unseen: u8 } pub struct Hidden; \
             impl<T: Copy> Shown<T> { pub const fn new(seen: T) -> Self { panic!() } fn own(&self) {} #[doc(hidden)] pub fn \
             internal() {} pub const MOST: usize = 7; } pub struct More(u8); pub fn shown_fn<'a>(of: &'a str) -> Option<&'a str> \
             { None } #[cfg(test)] mod tests { impl super::Shown<u8> { pub fn tested() {} } }",
        ),
        (
            "inner/kind.rs",
            "#[derive(Clone, Copy)] pub enum Kind { One, Two { of: u8 }, Three(String) } impl From<Kind> for String { fn \
             from(_: Kind) -> Self { String::new() } } struct Secret; impl From<Secret> for Kind { fn from(_: Secret) -> Self \
             { Kind::One } } pub trait Able: Send { type Of; fn able(&self) -> bool { true } }",
        ),
        ("open.rs", "pub use crate::inner::Shown as Again; pub fn here() {} fn not_here() {}"),
    ];
    let api = Crate::of(&files).api();
    let expected = [
        "pub trait Able: Send",
        "pub trait Able: fn able(&self) -> bool { .. }",
        "pub trait Able: type Of",
        "pub mod open: #[non_exhaustive] struct Again<T>: Clone, Debug",
        "pub struct Again.seen: T",
        "pub struct Again: .. private fields",
        "impl From<Kind> for String",
        "pub enum Kind: Clone, Copy",
        "pub enum Kind::One",
        "pub enum Kind::Three(String)",
        "pub enum Kind::Two { of: u8 }",
        "#[cfg(feature = \"more\")] pub struct More(..)",
        "impl<T: Copy> Shown<T>: const MOST: usize",
        "impl<T: Copy> Shown<T>: const fn new(seen: T) -> Self",
        "pub #[non_exhaustive] struct Shown<T>: Clone, Debug",
        "pub struct Shown.seen: T",
        "pub struct Shown: .. private fields",
        "pub mod open: fn here()",
        "pub mod open",
        "pub fn other<'a>(of: &'a str) -> Option<&'a str>",
    ];
    assert_eq!(api, expected);
}
