//! Passes the defaults of a block to its functions.

use super::tokens::here;
use crate::analyze::block::Block;
use crate::options::DEFAULTS;
use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::quote;

/// Appends the defaults to the options of each function whose attribute has this name. Returns the new block and the
/// number of these functions.
pub(crate) fn with_defaults(block: &Block, attribute: &str, defaults: &TokenStream) -> (TokenStream, usize) {
    let name = Ident::new(DEFAULTS, here());
    block.map(attribute, &|own| {
        let ends = |token: TokenTree| matches!(token, TokenTree::Punct(comma) if comma.as_char() == ',');
        let comma = own.clone().into_iter().last().is_some_and(|last| !ends(last)).then(|| quote!(,));
        quote!(#own #comma #name(#defaults))
    })
}
