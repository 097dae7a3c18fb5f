//! Generates the code that replaces the function. This is the only module that writes tokens.
//!
//! Nothing here can fail: all mistakes of a user are found in `options` and `check`. The functions that the generated
//! code calls are in the module `__private` of the crate `redlock-runtime`.
//!
//! Local names are `mixed_site`, so the user's code cannot see them. All other names are reached through `__private`,
//! so that they have the same meaning in a crate with its own `Result`. Only `::core::format_args!` is not, because the
//! compiler names the path of a macro in its notes.

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

/// Generates the function with its lock. If `for_editor` is set, the code can be navigated and is not run. If
/// `options_text` is given, the function is registered in the list of the program's functions.
pub(crate) fn expand(lock: &Lock, for_editor: bool, options_text: Option<&str>) -> TokenStream {
    let (changed, body) = Writer::new(lock, for_editor, options_text).body();
    function(&lock.function, changed.as_ref(), &body)
}

/// Returns the function with another body, and possibly another signature.
fn function(function: &Function, changed: Option<&Signature>, body: &TokenStream) -> TokenStream {
    let Function { head, attributes, inner, visibility, defaultness, body: braces, .. } = function;
    let body = with_contents(braces, quote!(#(#inner)* #body));
    match changed {
        None => quote!(#head #body),
        Some(signature) => quote!(#(#attributes)* #visibility #defaultness #signature #body),
    }
}
