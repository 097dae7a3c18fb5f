//! What an editor is given to look at, and nobody runs.

use super::tokens::{Private, here};
use super::value::{root, way};
use crate::analyze::key::{Key, Part, Root};
use crate::keywords::is_keyword;
use crate::options::{KeyTemplates, Options};
use crate::template;
use proc_macro2::{Ident, Literal, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::LitStr;
use syn::ext::IdentExt;

/// What the attribute says, so that an editor finds the arguments in the key, and what each option means.
///
/// To complete a name, an editor expands the attribute once more with an unknown name in the place of the one that is
/// being typed, and looks for it where the name stood before. So this comes first in the function, the key before the
/// options and these as they were written: then the place of a name does not depend on what else is written.
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
    // Stands where the next option would, and begins as that would: there an editor looks for what it completes.
    let next = quote_spanned!(here()=> use #private::options as _;);
    key.chain(documented).chain([next]).collect()
}

/// The item whose documentation is that of an option, in the place of the option's name. No item is called `crate`, nor `mod`, as
/// which `mode` begins.
fn documented(name: &Ident) -> Ident {
    let text = name.unraw().to_string();
    let is_no_name = is_keyword(&text) || matches!(text.as_str(), "crate" | "self" | "Self" | "super" | "_");
    Ident::new(&if is_no_name { text + "_" } else { text }, name.span())
}

/// `let first = __named0;`, and the key by which an editor finds these names.
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

/// Whether a name in the key is that of a named part.
fn is_named(key: &KeyTemplates, name: &str) -> bool {
    key.named.iter().any(|(named, _)| named.unraw() == name)
}

/// `let _ = &order.id;`, by which an editor finds fields, methods and paths, all of them anywhere at the key. It finds the exact
/// place of the name that they begin with in the format string, so here that stands elsewhere.
pub(super) fn way_to(part: &Part) -> TokenStream {
    let name = match &part.root {
        Root::Argument(name) | Root::Named(name) => Some(name),
        Root::Constant(path) => path.first().filter(|_| path.len() == 1),
    };
    let root = name.map_or_else(|| root(part), |name| elsewhere(name).into_token_stream());
    let way = way(part);
    quote_spanned!(here()=> let _ = &#root #way;)
}

/// The same name, at a place where nobody looks.
pub(super) fn elsewhere(name: &Ident) -> Ident {
    let mut name = name.clone();
    name.set_span(name.span().located_at(here()));
    name
}

/// The key as an editor can read it, at the place of the key, with the names that are `wanted`: a format string captures a name
/// and nothing else.
fn navigable(key: &LitStr, wanted: impl Fn(&str) -> bool) -> TokenStream {
    let written = key.token();
    let readable: Option<Literal> = template::with_names_only(&written.to_string(), wanted).parse().ok();
    let mut literal = readable.unwrap_or_else(|| written.clone());
    literal.set_span(written.span());
    quote_spanned!(here()=> ::core::format_args!(#literal);)
}
