//! The function without a lock, for attributes that have been refused.

use super::tokens::here;
use crate::analyze::form::{self, Form};
use crate::analyze::item::Function;
use proc_macro2::{Group, TokenStream};
use quote::{quote, quote_spanned};

/// The function as it was written, so that the compiler does not report that it is missing. An editor gets what
/// it has `seen` of the attribute as well. All arguments are used: the compiler would warn of those that only the refused key names.
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
