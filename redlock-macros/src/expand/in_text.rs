//! Code that makes the compiler report a mistake inside of a literal, where a macro has no span of its own.

use super::tokens::here;
use crate::errors::InText;
use proc_macro2::TokenStream;
use quote::quote_spanned;

/// Code that formats the literals, for the place before the body of the function.
pub(super) fn reports(mistakes: &[InText]) -> TokenStream {
    mistakes.iter().map(reported).collect()
}

/// Formats the literal with a value that has no text, because it lacks a trait whose absence the compiler words as the
/// mistake says. It reports that at the name inside of the literal.
fn reported(InText { literal, names, wrong, message }: &InText) -> TokenStream {
    let others = names.iter().filter(|name| *name != wrong);
    let message = message.replace('{', "{{").replace('}', "}}");
    quote_spanned! {here()=>
        {
            #[diagnostic::on_unimplemented(message = #message, label = "this names nothing")]
            trait Argument {}
            struct Unknown<T>(T);
            impl<T: Argument> ::core::fmt::Display for Unknown<T> {
                fn fmt(&self, _: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    ::core::result::Result::Ok(())
                }
            }
            #(let #others = "";)*
            let #wrong = Unknown(());
            let _ = ::core::format_args!(#literal);
        }
    }
}
