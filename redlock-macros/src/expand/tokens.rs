//! Spans and small pieces of code.

use crate::analyze::item::with_contents;
use proc_macro2::{Group, Ident, Punct, Spacing, Span, TokenStream, TokenTree};
use quote::{ToTokens, TokenStreamExt, quote_spanned};
use syn::Path;

/// Returns the span of generated code that no message points at.
pub(super) fn here() -> Span {
    Span::mixed_site()
}

/// Returns the span of generated code whose errors are reported at the user's code.
pub(super) fn at(span: Span) -> Span {
    Span::mixed_site().located_at(span)
}

/// The path `::redlock_runtime::__private`. It is used nearly everywhere, and written token by token, because tokens
/// that are copied as a stream pass through the compiler each time.
#[derive(Clone, Copy)]
pub(super) struct Private<'a> {
    path: Option<&'a Path>,
    span: Span,
}

impl<'a> Private<'a> {
    pub(super) fn new(path: Option<&'a Path>) -> Self {
        Self { path, span: here() }
    }

    pub(super) fn at(self, span: Span) -> Self {
        Self { span, ..self }
    }
}

impl ToTokens for Private<'_> {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        if let Some(path) = self.path {
            tokens.extend(moved(path.to_token_stream(), self.span));
        } else {
            colons(self.span, tokens);
            tokens.append(Ident::new("redlock_runtime", self.span));
        }
        colons(self.span, tokens);
        tokens.append(Ident::new("__private", self.span));
    }
}

/// Writes `::`.
fn colons(span: Span, tokens: &mut TokenStream) {
    for spacing in [Spacing::Joint, Spacing::Alone] {
        let mut colon = Punct::new(':', spacing);
        colon.set_span(span);
        tokens.append(colon);
    }
}

/// Returns the tokens, with errors reported at `span`.
fn moved(tokens: TokenStream, span: Span) -> TokenStream {
    let tokens = tokens.into_iter().map(|mut token| {
        token.set_span(token.span().located_at(span));
        token
    });
    tokens.collect()
}

/// Generates `async move { contents }` with the span of the user's braces. The compiler names a captured argument in an
/// error only if the block is not generated.
pub(super) fn async_block(is_move: bool, user: &Group, contents: TokenStream) -> TokenStream {
    let capture = is_move.then(|| quote_spanned!(user.span()=> move));
    let block = with_contents(user, contents);
    quote_spanned!(user.span()=> async #capture #block)
}

/// Returns the statements of `body`, to be written after other statements. If they begin with an item, they are in a
/// block of their own, because an item would otherwise follow statements.
pub(super) fn after_statements(body: &Group) -> TokenStream {
    if starts_with_an_item(body) { body.to_token_stream() } else { body.stream() }
}

/// Generates `return { body }`, with braces that no lint takes for the user's.
pub(super) fn explicit_return(body: &Group) -> TokenStream {
    let mut braces = body.clone();
    braces.set_span(at(body.span()));
    quote_spanned!(here()=> return #braces)
}

/// Returns `true` if a body begins with an item, or may begin with one.
fn starts_with_an_item(body: &Group) -> bool {
    const WORDS: &[&str] = &[
        "const", "enum", "extern", "fn", "impl", "mod", "static", "struct", "trait", "type", "union", "use", "unsafe",
    ];
    match body.stream().into_iter().next() {
        Some(TokenTree::Ident(word)) => WORDS.iter().any(|item| word == item),
        Some(TokenTree::Punct(punct)) => punct.as_char() == '#',
        _ => false,
    }
}

/// Replaces `self` by the name of the receiver, but not in `self::module`.
pub(super) fn renamed(tokens: TokenStream, receiver: &Ident) -> TokenStream {
    let mut tokens = tokens.into_iter().peekable();
    let mut changed = Vec::new();
    while let Some(token) = tokens.next() {
        let before_colon = matches!(tokens.peek(), Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
        changed.push(match token {
            TokenTree::Ident(ident) if ident == "self" && !before_colon => {
                TokenTree::Ident(Ident::new(&receiver.to_string(), receiver.span().located_at(ident.span())))
            }
            TokenTree::Group(group) => TokenTree::Group(with_contents(&group, renamed(group.stream(), receiver))),
            other => other,
        });
    }
    changed.into_iter().collect()
}
