//! Functions whose names begin with `is_`, `has_` or `can_` return `bool` and change nothing.

use crate::page::workspace;
use crate::prose::files;
use quote::ToTokens as _;
use syn::{Attribute, FnArg, ImplItem, Item, ReturnType, Signature, TraitItem};

const PREFIXES: [&str; 3] = ["is_", "has_", "can_"];

/// Types of the results of predicates, and of predicates that may fail.
const RESULTS: [&str; 2] = ["bool", "Result < bool"];

/// Returns `true` for a function with the attribute `#[test]` or `#[tokio::test]`.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().segments.last().is_some_and(|last| last.ident == "test"))
}

/// Returns the reason that a function with this signature must have another name.
fn mistake(signature: &Signature) -> Option<&'static str> {
    let name = signature.ident.to_string();
    if !PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        return None;
    }
    let returns = match &signature.output {
        ReturnType::Default => String::new(),
        ReturnType::Type(_, returns) => returns.to_token_stream().to_string(),
    };
    let receiver = signature.inputs.first().filter(|first| matches!(first, FnArg::Receiver(_)));
    let is_mutable = receiver.is_some_and(|receiver| {
        let text = receiver.to_token_stream().to_string();
        text.starts_with('&') && text.ends_with("mut self")
    });
    if is_mutable && signature.asyncness.is_none() {
        Some("may change its receiver")
    } else if !RESULTS.iter().any(|result| returns.starts_with(result)) {
        Some("does not return `bool`")
    } else {
        None
    }
}

/// Adds the mistakes in `items` to `mistakes`.
fn collect(items: &[Item], mistakes: &mut Vec<String>) {
    let mut check = |attributes: &[Attribute], signature: &Signature| {
        let found = if is_test(attributes) { None } else { mistake(signature) };
        mistakes.extend(found.map(|found| format!("`{}` {found}", signature.ident)));
    };
    for item in items {
        match item {
            Item::Fn(function) => check(&function.attrs, &function.sig),
            Item::Impl(block) => block.items.iter().for_each(|item| {
                if let ImplItem::Fn(function) = item {
                    check(&function.attrs, &function.sig);
                }
            }),
            Item::Trait(block) => block.items.iter().for_each(|item| {
                if let TraitItem::Fn(function) = item {
                    check(&function.attrs, &function.sig);
                }
            }),
            _ => {}
        }
    }
    for item in items {
        if let Item::Mod(module) = item
            && let Some((_, items)) = &module.content
        {
            collect(items, mistakes);
        }
    }
}

fn mistakes(source: &str) -> Vec<String> {
    let mut mistakes = Vec::new();
    collect(&syn::parse_file(source).unwrap().items, &mut mistakes);
    mistakes
}

#[test]
fn predicates_return_bool_and_change_nothing() {
    let (root, mut names, mut found) = (workspace(), Vec::new(), Vec::new());
    files(&root, &mut names);
    // Programs that do not compile are no examples of names.
    let is_source = |name: &str| std::path::Path::new(name).extension().is_some_and(|extension| extension == "rs");
    names.retain(|name| is_source(name) && (!name.starts_with("tests/ui") || name.starts_with("tests/ui/pass")));
    assert!(names.len() > 300, "{} files", names.len());
    for name in names {
        let source = std::fs::read_to_string(root.join(&name)).unwrap();
        found.extend(mistakes(&source).into_iter().map(|mistake| format!("{name}: {mistake}")));
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn mistakes_are_found() {
    let table = [
        ("fn is_free() -> bool { true }", None),
        ("fn is_free() {}", Some("`is_free` does not return `bool`")),
        ("mod inner { fn has_room() -> u32 { 1 } }", Some("`has_room` does not return `bool`")),
        ("impl Lock { fn is_free(&mut self) -> bool { true } }", Some("`is_free` may change its receiver")),
        ("trait Lock { fn is_free(&self) -> Option<bool>; }", Some("`is_free` does not return `bool`")),
        ("fn can_wait() -> Result<bool, Error> { Ok(true) }", None),
        ("#[tokio::test] async fn is_released() {}", None),
        ("fn island() {}", None),
    ];
    for (source, expected) in table {
        assert_eq!(mistakes(source), Vec::from_iter(expected), "{source}");
    }
}
