//! What an editor is given to look at, and nobody runs.

use super::tokens::here;
use crate::analyze::item::with_contents;
use proc_macro2::{Literal, TokenStream, TokenTree};
use quote::quote_spanned;
use syn::LitStr;

/// The function as it was written, for an editor with its key.
pub(crate) fn unlocked(item: TokenStream, key: Option<LitStr>) -> TokenStream {
    let Some(key) = key else { return item };
    let mut tokens: Vec<TokenTree> = item.into_iter().collect();
    if let Some(TokenTree::Group(body)) = tokens.last_mut() {
        *body = with_contents(body, [seen_by_an_editor(&key.token()), body.stream()].into_iter().collect());
    }
    tokens.into_iter().collect()
}

/// The key as it was written, so that an editor finds the arguments in it.
///
/// To complete a name, an editor expands the attribute once more with an unknown name in the place of the one that is
/// being typed, and looks for it where the name stood before. So the key comes first in the function: then its place
/// does not depend on what else is written.
pub(super) fn seen_by_an_editor(key: &Literal) -> TokenStream {
    quote_spanned!(here()=> ::core::format_args!(#key);)
}
