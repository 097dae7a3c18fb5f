//! The annotated function. Attributes, visibility and signature are parsed. The body stays tokens.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Signature, Token, Visibility};

/// Function with a body.
pub(crate) struct Function {
    /// All tokens before the body as written. Printing the parsed parts would take longer.
    pub(crate) head: TokenStream,
    pub(crate) attributes: Vec<Attribute>,
    /// Inner attributes at the beginning of the body.
    pub(crate) inner: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) defaultness: Option<Token![default]>,
    pub(crate) signature: Signature,
    /// Braces of the body, without its inner attributes. An incomplete body in an editor is also a group.
    pub(crate) body: Group,
    /// `true` if the body is a variable of a `macro_rules!`.
    is_body_of_a_macro: bool,
}

/// Attributes of the compiler that do not change a function and use none of its names. If one is missing here, the
/// compiler does not warn of unused arguments beside it.
const INERT: &[&str] = &[
    "allow",
    "cfg",
    "cold",
    "deny",
    "deprecated",
    "doc",
    "expect",
    "forbid",
    "inline",
    "must_use",
    "track_caller",
    "warn",
];

/// Returns `true` for the attribute of this crate, under any path.
pub(crate) fn is_lock(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == "distributed_lock")
}

impl Function {
    /// Returns `true` if an attribute below, which expands later, may use the arguments.
    pub(crate) fn is_rewritten(&self) -> bool {
        let is_inert = |attribute: &Attribute| INERT.iter().any(|inert| attribute.path().is_ident(inert));
        !self.attributes.iter().all(|attribute| is_lock(attribute) || is_inert(attribute))
    }

    /// Returns `true` if lints do not see the last expression of the body as the value of the function.
    pub(crate) fn has_hidden_value(&self) -> bool {
        self.is_body_of_a_macro || self.is_rewritten()
    }

    /// Reads a function. The body is not parsed, because it has most of the tokens.
    ///
    /// # Errors
    /// The item is not a function with a body.
    pub(crate) fn read(item: TokenStream) -> syn::Result<Self> {
        let mut tokens: Vec<TokenTree> = item.into_iter().collect();
        // An item from a `macro_rules!` variable is in an invisible group.
        if let [TokenTree::Group(whole)] = tokens.as_slice() {
            return Self::read(whole.stream());
        }
        let is_invisible =
            |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::None);
        let is_body_of_a_macro = tokens.last().is_some_and(is_invisible);
        let body = tokens.last().cloned().and_then(braces);
        if body.is_some() {
            tokens.pop();
        }
        let head: TokenStream = tokens.into_iter().collect();
        let Head { attributes, visibility, defaultness, signature } = read_head.parse2(head.clone())?;
        let Some(body) = body else {
            return Err(syn::Error::new_spanned(&signature.ident, without_body(&signature)));
        };
        let (inner, body) = split_inner_attributes(body)?;
        Ok(Self { head, attributes, inner, visibility, defaultness, signature, body, is_body_of_a_macro })
    }
}

/// Parts of a function before its body.
struct Head {
    attributes: Vec<Attribute>,
    visibility: Visibility,
    defaultness: Option<Token![default]>,
    signature: Signature,
}

/// Reads the parts before the body. For any other item, the error contains where the attribute belongs.
fn read_head(input: ParseStream<'_>) -> syn::Result<Head> {
    let attributes = input.call(Attribute::parse_outer)?;
    let visibility = input.parse()?;
    let defaultness = if input.peek(Token![default]) { Some(input.parse()?) } else { None };
    let start = input.cursor();
    let Ok(signature) = input.parse::<Signature>() else {
        let found = start.token_tree().map(|(token, _)| token);
        let place = match found.as_ref().map(ToString::to_string).as_deref() {
            Some("impl" | "trait" | "mod" | "unsafe") => "each `async fn` inside",
            _ => "an `async fn`",
        };
        let message = format!("`#[distributed_lock]` can lock only an async function: put it on {place}");
        return Err(syn::Error::new_spanned(found, message));
    };
    // A function without a body ends with a semicolon. It is consumed here, so that it is not reported as the mistake.
    input.parse::<TokenStream>()?;
    Ok(Head { attributes, visibility, defaultness, signature })
}

/// Returns the braces of the body, also from inside the invisible group of a `macro_rules!` variable.
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

/// Splits the attributes with `#!` from the start of the body.
fn split_inner_attributes(body: Group) -> syn::Result<(Vec<Attribute>, Group)> {
    let first = body.stream().into_iter().next();
    if !matches!(first, Some(TokenTree::Punct(punct)) if punct.as_char() == '#') {
        return Ok((Vec::new(), body));
    }
    let read = |input: ParseStream<'_>| Ok((input.call(Attribute::parse_inner)?, input.parse()?));
    let (inner, contents) = read.parse2(body.stream())?;
    Ok((inner, with_contents(&body, contents)))
}

/// Creates a group with the same delimiters around other tokens.
pub(crate) fn with_contents(group: &Group, contents: TokenStream) -> Group {
    let mut changed = Group::new(group.delimiter(), contents);
    changed.set_span(group.span());
    changed
}
