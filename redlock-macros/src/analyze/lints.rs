//! Lint levels that the user has set for an argument, as in `#[allow(unused_variables)] id: u64`.

use proc_macro2::{Ident, TokenTree};
use syn::{Attribute, Meta};

/// Lints that the compiler checks at a binding, and not at its type.
const OF_BINDINGS: &[&str] = &["non_snake_case", "unused", "unused_assignments", "unused_mut", "unused_variables"];

/// Returns the attributes for a `let` that binds the argument again. An `expect` becomes an `allow`, because it would
/// have to be fulfilled at each of several places.
pub(crate) fn repeated(attributes: &[Attribute]) -> Vec<Attribute> {
    let is_level = |attribute: &&Attribute| {
        let levels = ["allow", "cfg_attr", "deny", "expect", "forbid", "warn"];
        levels.iter().any(|level| attribute.path().is_ident(level))
    };
    attributes.iter().filter(is_level).map(allowing).collect()
}

/// Replaces `expect` by `allow` at an argument that is bound again, because the expected warning appears at another
/// binding.
pub(crate) fn allow_instead(attributes: &mut [Attribute]) {
    for attribute in attributes.iter_mut().filter(|attribute| is_about_bindings(attribute)) {
        *attribute = allowing(attribute);
    }
}

/// Returns the attribute with `allow` instead of `expect`.
fn allowing(attribute: &Attribute) -> Attribute {
    let mut attribute = attribute.clone();
    if let Meta::List(list) = &mut attribute.meta
        && let Some(expect) = list.path.get_ident().filter(|level| *level == "expect")
    {
        list.path = Ident::new("allow", expect.span()).into();
    }
    attribute
}

/// Returns `true` if the attribute names one of the lints [`OF_BINDINGS`].
fn is_about_bindings(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else { return false };
    let is_of_bindings =
        |token: TokenTree| matches!(token, TokenTree::Ident(word) if OF_BINDINGS.iter().any(|lint| word == lint));
    list.tokens.clone().into_iter().any(is_of_bindings)
}

#[cfg(test)]
mod tests {
    use super::{allow_instead, repeated};
    use quote::{ToTokens, quote};
    use syn::{Attribute, parse_quote};

    fn text(attributes: &[Attribute]) -> String {
        quote!(#(#attributes)*).to_token_stream().to_string().replace(' ', "")
    }

    #[test]
    fn expect_becomes_allow_at_bindings() {
        let mut attributes: Vec<Attribute> = vec![
            parse_quote!(#[cfg(test)]),
            parse_quote!(#[expect(unused_variables, reason = "kept")]),
            parse_quote!(#[expect(clippy::ptr_arg)]),
            parse_quote!(#[warn(unused_mut)]),
        ];
        assert_eq!(
            text(&repeated(&attributes)),
            "#[allow(unused_variables,reason=\"kept\")]#[allow(clippy::ptr_arg)]#[warn(unused_mut)]"
        );
        allow_instead(&mut attributes);
        assert_eq!(
            text(&attributes),
            "#[cfg(test)]#[allow(unused_variables,reason=\"kept\")]#[expect(clippy::ptr_arg)]#[warn(unused_mut)]"
        );
    }
}
