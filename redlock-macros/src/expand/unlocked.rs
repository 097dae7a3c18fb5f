//! Generates the function without a lock, for attributes with errors.

use super::tokens::here;
use crate::analyze::form::{self, Form};
use crate::analyze::item::Function;
use proc_macro2::{Group, TokenStream};
use quote::{quote, quote_spanned};

/// Returns the function as written, so that the compiler does not report it as missing. An editor also gets what it has
/// `seen` of the attribute. All arguments are marked as used, because only the rejected key may use them.
pub(crate) fn unlocked(item: TokenStream, seen: Option<&TokenStream>) -> TokenStream {
    let Ok(function) = Function::read(item.clone()) else { return item };
    let (form, bindings) = form::read(&function, false);
    let used = bindings.iter().filter(|binding| binding.name != "self").map(|binding| {
        let (cfg, ident) = (&binding.cfg, &binding.ident);
        quote_spanned!(here()=> #(#cfg)* let _ = &#ident;)
    });
    let used: TokenStream = used.collect();
    let with_used = |body: &Group| [used, body.stream()].into_iter().collect::<TokenStream>();
    let body = if let Some(Form::Desugared(place)) = &form {
        place.fill(with_used(&place.group))
    } else {
        with_used(&function.body)
    };
    super::function(&function, None, &quote!(#seen #body))
}
