//! What an editor is given to look at, and nobody runs.

use super::tokens::here;
use proc_macro2::{Literal, TokenStream};
use quote::quote_spanned;

/// The key as it was written, so that an editor finds the arguments in it.
///
/// To complete a name, an editor expands the attribute once more with an unknown name in the place of the one that is
/// being typed, and looks for it where the name stood before. So the key comes first in the function: then its place
/// does not depend on what else is written.
pub(super) fn seen_by_an_editor(key: &Literal) -> TokenStream {
    quote_spanned!(here()=> ::core::format_args!(#key);)
}
