//! The code that takes the place of the function. The only folder that writes tokens.
//!
//! Here belongs how something is written, and nothing that could fail: whatever a user can do wrong is found in
//! `options` and in `check`. What is called at run time is in the crate `redlock-runtime`, in its module `__private`.
//!
//! Local names are `mixed_site`: the user's code cannot see them. Everything else is named through `__private`, so that
//! it means the same in a crate that has its own `Result`.

mod acquire;
mod body;
mod defaults;
mod editor;
mod run;
mod tokens;
mod unlocked;
mod value;
mod writer;

pub(crate) use self::defaults::with_defaults;
pub(crate) use self::editor::seen_by_an_editor;
pub(crate) use self::unlocked::unlocked;

use self::writer::Writer;
use crate::analyze::item::{Function, with_contents};
use crate::check::Lock;
use proc_macro2::TokenStream;
use quote::quote;
use syn::Signature;

/// The function with its lock. An editor gets code that it can navigate, which nobody runs. With `said`, the text of the
/// options, the function is listed among those of its program.
pub(crate) fn expand(lock: &Lock, for_editor: bool, said: Option<&str>) -> TokenStream {
    let (changed, body) = Writer::new(lock, for_editor, said).body();
    function(&lock.function, changed.as_ref(), &body)
}

/// The function with another body, and perhaps another signature.
fn function(function: &Function, changed: Option<&Signature>, body: &TokenStream) -> TokenStream {
    let Function { head, attributes, inner, visibility, defaultness, body: braces, .. } = function;
    let body = with_contents(braces, quote!(#(#inner)* #body));
    match changed {
        None => quote!(#head #body),
        Some(signature) => quote!(#(#attributes)* #visibility #defaultness #signature #body),
    }
}
