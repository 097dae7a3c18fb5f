//! Generates the code of a value in the key.

use crate::analyze::key::{Access, Operand, Part, Root};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote_spanned};

/// Generates the beginning of a value.
pub(super) fn root(part: &Part) -> TokenStream {
    match &part.root {
        Root::Argument(argument) => argument.to_token_stream(),
        Root::Named(variable) => quote_spanned!(part.span=> (*#variable)),
        Root::Constant(path) => quote_spanned!(part.span=> #(#path)::*),
    }
}

/// Generates the steps from the root of a value to the value.
pub(super) fn accesses(part: &Part) -> TokenStream {
    let span = part.span;
    let steps = part.accesses.iter().map(|access| match access {
        Access::Field(member) => quote_spanned!(span=> .#member),
        Access::Call(method, inputs) => {
            let inputs = inputs.iter().map(operand);
            quote_spanned!(span=> .#method(#(#inputs),*))
        }
        Access::Index(input) => {
            let input = operand(input);
            quote_spanned!(span=> [#input])
        }
    });
    steps.collect()
}

/// Generates the argument of a call or an index in the template.
fn operand(operand: &Operand) -> TokenStream {
    match operand {
        Operand::Number(number) => number.to_token_stream(),
        Operand::Value(variable) => variable.to_token_stream(),
        Operand::Referred(variable) => quote_spanned!(variable.span()=> *#variable),
    }
}
