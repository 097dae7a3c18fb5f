//! Measures how often the warning "this key contains no argument" is right, for typical functions of services.
//!
//! The files in `handlers/` are not compiled. The attribute `#[missing(..)]` of a function lists the arguments that
//! could distinguish its calls. To print the rate: `cargo test -p redlock-macros handlers -- --show-output`.

use crate::analyze::item::Function;
use crate::check;
use crate::errors::Errors;
use crate::options;
use quote::ToTokens;
use syn::{Attribute, File, ImplItem, Item, Meta};

const FILES: &[(&str, &str)] = &[
    ("axum", include_str!("../handlers/axum.rs")),
    ("actix", include_str!("../handlers/actix.rs")),
    ("tonic", include_str!("../handlers/tonic.rs")),
    ("jobs", include_str!("../handlers/jobs.rs")),
    ("plain", include_str!("../handlers/plain.rs")),
    ("others", include_str!("../handlers/others.rs")),
];

/// Annotated function.
struct Handler {
    name: String,
    options: String,
    /// Arguments that could distinguish its calls.
    missing: Vec<String>,
    /// The function without the two attributes.
    item: String,
}

/// Returns all annotated functions of a file, including those in implementations.
fn handlers(file: &str) -> Vec<Handler> {
    let File { items, .. } = syn::parse_str(file).unwrap();
    let handlers = items.into_iter().flat_map(|item| match item {
        Item::Fn(mut item) => {
            let attributes = std::mem::take(&mut item.attrs);
            vec![Handler::new(item.sig.ident.to_string(), &attributes, &item)]
        }
        Item::Impl(item) => item.items.into_iter().map(method).collect(),
        _ => Vec::new(),
    });
    handlers.collect()
}

fn method(item: ImplItem) -> Handler {
    let ImplItem::Fn(mut item) = item else { panic!("no function") };
    let attributes = std::mem::take(&mut item.attrs);
    Handler::new(item.sig.ident.to_string(), &attributes, &item)
}

impl Handler {
    fn new(name: String, attributes: &[Attribute], item: &impl ToTokens) -> Self {
        let list = |name: &str| {
            let attribute = attributes.iter().find(|attribute| attribute.path().is_ident(name))?;
            let Meta::List(list) = &attribute.meta else { return None };
            Some(list.tokens.to_string())
        };
        let missing = list("missing").unwrap_or_default();
        let missing = missing.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        let options = list("distributed_lock").unwrap();
        Self { name, options, missing: missing.collect(), item: item.to_token_stream().to_string() }
    }

    /// Returns the placeholders that the warning proposes, or none without a warning.
    fn proposed(&self) -> Vec<String> {
        let mut errors = Errors::default();
        let options = options::read(self.options.parse().unwrap(), &mut errors);
        let function = Function::read(self.item.parse().unwrap()).unwrap();
        let lock = check::check(options, function, &mut errors);
        assert_eq!(errors.messages(), [""; 0], "{}", self.name);
        let warnings = lock.unwrap().warnings;
        let text: String = warnings.iter().map(|warning| warning.message.as_str()).collect();
        text.split('{').skip(1).filter_map(|part| Some(part.split_once('}')?.0.to_owned())).collect()
    }
}

#[test]
fn warning_proposes_the_missing_arguments() {
    let (mut count, mut warned, mut wrong) = (0, 0, Vec::new());
    for (file, text) in FILES {
        for handler in handlers(text) {
            let proposed = handler.proposed();
            count += 1;
            warned += usize::from(!handler.missing.is_empty());
            if proposed != handler.missing {
                wrong.push(format!("{file}: {} should miss {:?}, not {proposed:?}", handler.name, handler.missing));
            }
        }
    }
    println!("{count} functions, {warned} of them to be warned of, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 120 && warned >= 40, "{count} functions, {warned} to be warned of");
}
