//! Code for editors, which is never run.

use super::tokens::{Private, here};
use super::value::{accesses, root};
use crate::analyze::key::{Key, Part, Root};
use crate::keywords::is_keyword;
use crate::options::{KeyTemplates, Options};
use crate::template;
use proc_macro2::{Ident, Literal, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::LitStr;
use syn::ext::IdentExt;

/// Generates the attribute's content, so that an editor finds the arguments in the key and the documentation of each
/// option.
///
/// To complete a name, an editor expands the attribute again with an unknown name at the cursor, and looks for it at
/// the same position. This code therefore comes first in the function: the key, and then the options as written. The
/// position of a name then does not depend on the other options.
pub(crate) fn seen_by_an_editor(options: &Options) -> TokenStream {
    let key = options
        .key
        .as_ref()
        .into_iter()
        .flat_map(|key| key.all().map(|template| navigable(&template.literal, |name| !is_named(key, name))));
    let private = Private::new(options.krate.as_ref());
    let documented = options.written.iter().map(|name| {
        let item = documented(name);
        quote_spanned!(here()=> use #private::options::#item as _;)
    });
    // This path is at the position of the next option and has the same beginning, so an editor finds what it completes.
    let next = quote_spanned!(here()=> use #private::options as _;);
    key.chain(documented).chain([next]).collect()
}

/// Returns the item with the documentation of an option, at the position of the option's name. No item can be called
/// `crate` or `mod`, and `mode` begins with `mod`.
fn documented(name: &Ident) -> Ident {
    let text = name.unraw().to_string();
    let is_no_name = is_keyword(&text) || matches!(text.as_str(), "crate" | "self" | "Self" | "super" | "_");
    Ident::new(&if is_no_name { text + "_" } else { text }, name.span())
}

/// Generates `let first = __named0;`, and the key through which an editor finds these names.
pub(super) fn named_parts(key: &Key, options: &Options) -> TokenStream {
    let Some(written) = options.key.as_ref().filter(|written| !written.named.is_empty()) else {
        return TokenStream::new();
    };
    let names = written.named.iter().zip(&key.named).map(|((name, _), named)| {
        let variable = elsewhere(&named.variable);
        quote_spanned!(here()=> let #name = #variable;)
    });
    names.chain(written.all().map(|template| navigable(&template.literal, |name| is_named(written, name)))).collect()
}

/// Returns `true` if a name in the key is a named part.
fn is_named(key: &KeyTemplates, name: &str) -> bool {
    key.named.iter().any(|(named, _)| named.unraw() == name)
}

/// Generates `let _ = &order.id;`, through which an editor finds fields, methods and paths at any position of the key.
/// It finds the exact position of the first name in the format string, so here that name has another position.
pub(super) fn navigable_value(part: &Part) -> TokenStream {
    let name = match &part.root {
        Root::Argument(name) | Root::Named(name) => Some(name),
        Root::Constant(path) => path.first().filter(|_| path.len() == 1),
    };
    let root = name.map_or_else(|| root(part), |name| elsewhere(name).into_token_stream());
    let accesses = accesses(part);
    quote_spanned!(here()=> let _ = &#root #accesses;)
}

/// Returns the name at a position where no editor looks.
pub(super) fn elsewhere(name: &Ident) -> Ident {
    let mut name = name.clone();
    name.set_span(name.span().located_at(here()));
    name
}

/// Generates the key for an editor, at the position of the key, with the names that are `wanted`. A format string
/// captures only names.
fn navigable(key: &LitStr, wanted: impl Fn(&str) -> bool) -> TokenStream {
    let written = key.token();
    let readable: Option<Literal> = template::with_names_only(&written.to_string(), wanted).parse().ok();
    let mut literal = readable.unwrap_or_else(|| written.clone());
    literal.set_span(written.span());
    quote_spanned!(here()=> ::core::format_args!(#literal);)
}
