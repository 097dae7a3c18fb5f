//! The code that takes the place of the function. The only folder that writes tokens.
//!
//! Here belongs how something is written, and nothing that could fail: whatever a user can do wrong is found in
//! `options` and in `check`. What is called at run time is in the crate `redlock-runtime`, in its module `__private`.
//!
//! Local names are `mixed_site`: the user's code cannot see them. Everything else is named through `__private`, so that
//! it means the same in a crate that has its own `Result`.

mod acquire;
mod body;
mod editor;
mod in_text;
mod run;
mod tokens;
mod value;
mod writer;

pub(crate) use self::editor::{seen_by_an_editor, unlocked};
pub(crate) use self::in_text::with_mistakes;

use self::writer::Writer;
use crate::analyze::item::{Function, with_contents};
use crate::check::Lock;
use proc_macro2::TokenStream;
use quote::quote;

/// The function with its lock. An editor gets code that it can navigate, which nobody runs.
pub(crate) fn expand(lock: &Lock, for_editor: bool) -> TokenStream {
    let (changed, body) = Writer::new(lock, for_editor).body();
    let Function { head, attributes, inner, visibility, defaultness, signature, body: braces } = &lock.function;
    let body = with_contents(braces, body);
    if changed.is_none() && inner.is_empty() {
        return quote!(#head #body);
    }
    let signature = changed.as_ref().unwrap_or(signature);
    quote!(#(#attributes)* #(#inner)* #visibility #defaultness #signature #body)
}
