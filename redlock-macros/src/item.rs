//! The annotated function: attributes, visibility and signature are parsed, the body stays tokens.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::parse::{ParseStream, Parser};
use syn::{AttrStyle, Attribute, Signature, Token, Visibility};

/// A function with a body.
pub(crate) struct Function {
    /// Outer attributes, then the inner ones of the body, which mean the same before the function.
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) defaultness: Option<Token![default]>,
    pub(crate) signature: Signature,
    /// The braces of the body, without its inner attributes. A body that is still being typed is a group all the same.
    pub(crate) body: Group,
}

impl Function {
    /// # Errors
    /// The item is something else.
    pub(crate) fn read(item: TokenStream) -> syn::Result<Self> {
        read.parse2(item)
    }
}

fn read(input: ParseStream<'_>) -> syn::Result<Function> {
    let mut attributes = input.call(Attribute::parse_outer)?;
    let visibility = input.parse()?;
    let defaultness = if input.peek(Token![default]) { Some(input.parse()?) } else { None };
    let start = input.cursor();
    let Ok(signature) = input.parse::<Signature>() else {
        let found = start.token_tree().map(|(token, _)| token);
        let place = match found.as_ref().map(ToString::to_string).as_deref() {
            Some("impl" | "trait" | "mod" | "unsafe") => "each `async fn` inside",
            _ => "an `async fn`",
        };
        let message = format!("`#[distributed_lock]` locks an async function: put it on {place}");
        return Err(syn::Error::new_spanned(found, message));
    };
    let Some(body) = braces(input.parse()?) else {
        return Err(syn::Error::new_spanned(&signature.ident, without_body(&signature)));
    };
    let (inner, contents) = split_inner_attributes.parse2(body.stream())?;
    attributes.extend(inner.into_iter().map(|attribute| Attribute { style: AttrStyle::Outer, ..attribute }));
    let body = with_contents(&body, contents);
    Ok(Function { attributes, visibility, defaultness, signature, body })
}

/// The body; it stands in an invisible group when it came through a `macro_rules!` variable.
fn braces(token: TokenTree) -> Option<Group> {
    let TokenTree::Group(group) = token else { return None };
    match group.delimiter() {
        Delimiter::Brace => Some(group),
        Delimiter::None => group.stream().into_iter().next().and_then(braces),
        _ => None,
    }
}

fn without_body(signature: &Signature) -> String {
    format!("`{}` has no body to lock: put `#[distributed_lock]` on its implementation", signature.ident)
}

fn split_inner_attributes(input: ParseStream<'_>) -> syn::Result<(Vec<Attribute>, TokenStream)> {
    Ok((input.call(Attribute::parse_inner)?, input.parse()?))
}

/// The same delimiters around other tokens.
pub(crate) fn with_contents(group: &Group, contents: TokenStream) -> Group {
    let mut changed = Group::new(group.delimiter(), contents);
    changed.set_span(group.span());
    changed
}
