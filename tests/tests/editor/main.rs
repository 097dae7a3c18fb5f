//! Support of the attribute in rust-analyzer: navigation, hover, rename and completion for the key and the options.
//!
//! The test is skipped, with a message, if rust-analyzer or the sources of the standard library are not installed:
//! `rustup component add rust-analyzer rust-src`.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests are tests too"
)]

mod language_server;
mod project;

use crate::language_server::LanguageServer;
use crate::project::{Project, workspace};
use std::collections::BTreeSet;
use std::io::Write;

/// Source of the project. The tables below mark the position of the cursor with `|`.
const SOURCE: &str = r##"
use redlock_runtime::{LockError, LockManager, distributed_lock};

pub struct Order {
    /// The number of the order.
    pub id: u64,
}

/// Region of the shop.
pub const REGION: &str = "eu";

pub struct Shop {
    /// Owner of the shop.
    pub tenant: u64,
    pub locks: LockManager,
}

#[distributed_lock(key = "order:{order.id}:{REGION}", ttl = 30, crate = ::redlock_runtime)]
pub async fn capture(order: Order, amount: u64) -> Result<u64, LockError> {
    Ok(order.id + amount)
}

#[distributed_lock(key = r#"cancel:{order_id:08}"#, on_contended = skip)]
pub async fn cancel(order_id: u64) -> Result<(), LockError> {
    drop(order_id);
    Ok(())
}

#[distributed_lock(key("refund:{first.id}:{limit}", first = order, limit = amount + 1))]
pub async fn refund(order: Order, amount: u64) -> Result<u64, LockError> {
    Ok(order.id + amount)
}

impl Shop {
    #[distributed_lock(key = "shop:{self.tenant}", manager = self.locks)]
    pub async fn close(&self) -> Result<(), LockError> {
        Ok(())
    }
}

#[distributed_lock(key = "typed:{id}", wai)]
pub async fn typed(id: u64) -> Result<u64, LockError> {
    Ok(id)
}

#[distributed_lock(key = "next:{id}", )]
pub async fn next((id, _): (u64, u8)) -> Result<u64, LockError> {
    Ok(id)
}
"##;

const HOVERS: [(&str, &str); 10] = [
    ("{or|der.id}", "order: Order"),
    ("{order.|id}", "The number of the order."),
    ("{RE|GION}", "Region of the shop."),
    ("{order|_id:08}", "order_id: u64"),
    ("{fi|rst.id}", "first: &Order"),
    ("{self.ten|ant}", "Owner of the shop."),
    ("t|tl = 30", "Lifetime of the lock"),
    ("cra|te = ", "Path of the library"),
    ("on_cont|ended", "Result of a call if another caller held the key"),
    ("mana|ger = self", "Manager that acquires the lock"),
];

const DEFINITIONS: [(&str, &str); 5] = [
    ("{or|der.id}", "capture(|order: Order"),
    ("{order.|id}", "pub |id: u64"),
    ("{order|_id:08}", "cancel(|order_id: u64"),
    ("{fi|rst.id}", "|first = order"),
    ("{self.ten|ant}", "pub |tenant: u64"),
];

/// Symbols that are renamed to `other`, and the resulting source.
const RENAMES: [(&str, &str); 4] = [
    ("capture(|order", r#""order:{other.id}:{REGION}""#),
    ("{or|der.id}", "pub async fn capture(other: Order, amount: u64)"),
    ("cancel(|order_id", r##"r#"cancel:{other:08}"#"##),
    ("{fi|rst.id}", r#"key("refund:{other.id}:{limit}", other = order,"#),
];

/// Positions at which an option is typed, or could be.
const COMPLETIONS: [&str; 3] = [r#""typed:{id}", wai|)"#, r#""next:{id}", |)"#, ", t|tl = 30"];

/// Returns the options that the reference of the attribute lists.
fn options() -> BTreeSet<String> {
    let page = std::fs::read_to_string(workspace().join("redlock-runtime/docs/distributed_lock.md")).unwrap();
    let rows = page.lines().skip_while(|line| !line.starts_with("| option |")).skip(2);
    let rows = rows.map_while(|line| line.strip_prefix("| `"));
    let names = rows.map(|row| row.split([' ', '`', '(']).next().unwrap().to_owned());
    let names: BTreeSet<_> = names.collect();
    assert!(names.contains("key") && names.contains("crate") && names.len() > 15, "{names:?}");
    names
}

#[test]
fn every_option_is_documented_for_editors() {
    let text = std::fs::read_to_string(workspace().join("redlock-runtime/src/private/options.rs")).unwrap();
    let items = text.lines().filter_map(|line| line.strip_prefix("pub type ")?.split(' ').next());
    // `crate` is a keyword, so its item has another name.
    let items: BTreeSet<_> = items.map(|name| name.replace("crate_", "crate")).collect();
    assert_eq!(items, options());
}

#[tokio::test]
async fn editor_resolves_keys_and_options() {
    if let Err(missing) = language_server::check_required_tools() {
        // Bypasses the test harness, which would show the message only if the test failed.
        writeln!(std::io::stderr(), "left out: rust-analyzer on the attribute, because {missing}").unwrap();
        return;
    }
    let project = Project::create(SOURCE);
    let mut editor = LanguageServer::start(&project).await;
    for (place, expected) in HOVERS {
        let shown = editor.hover(project.find(place)).await;
        assert!(shown.contains(expected), "{place} shows: {shown}");
    }
    for (place, expected) in DEFINITIONS {
        assert_eq!(editor.definitions(project.find(place)).await, [project.find(expected)], "{place}");
    }
    for (place, expected) in RENAMES {
        let renamed = project.edited(&editor.rename(project.find(place), "other").await);
        assert!(renamed.contains(expected), "{place}:\n{renamed}");
    }
    let offered: BTreeSet<_> = options().into_iter().filter(|name| name != "crate").collect();
    for place in COMPLETIONS {
        let completed = editor.completions(project.find(place)).await;
        let names: BTreeSet<_> = completed.iter().map(|(name, _)| name.clone()).collect();
        assert_eq!(names, offered, "{place}");
        assert!(
            completed
                .iter()
                .all(|(_, documentation)| documentation.contains("Default") || documentation.contains("Required")),
            "{completed:?}"
        );
    }
}
