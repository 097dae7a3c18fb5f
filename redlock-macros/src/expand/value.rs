//! A value of the key, as code.

use crate::analyze::key::{Operand, Part, Root, Way};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote_spanned};

/// What a value begins with.
pub(super) fn root(part: &Part) -> TokenStream {
    match &part.root {
        Root::Argument(argument) => argument.to_token_stream(),
        Root::Named(variable) => quote_spanned!(part.span=> (*#variable)),
        Root::Constant(path) => quote_spanned!(part.span=> #(#path)::*),
    }
}

/// The steps from the root of a value to the value.
pub(super) fn way(part: &Part) -> TokenStream {
    let span = part.span;
    let steps = part.way.iter().map(|way| match way {
        Way::Field(member) => quote_spanned!(span=> .#member),
        Way::Call(method, inputs) => {
            let inputs = inputs.iter().map(operand);
            quote_spanned!(span=> .#method(#(#inputs),*))
        }
        Way::Index(input) => {
            let input = operand(input);
            quote_spanned!(span=> [#input])
        }
    });
    steps.collect()
}

/// What a call or an index in the template takes.
fn operand(operand: &Operand) -> TokenStream {
    match operand {
        Operand::Number(number) => number.to_token_stream(),
        Operand::Value(variable) => variable.to_token_stream(),
    }
}
