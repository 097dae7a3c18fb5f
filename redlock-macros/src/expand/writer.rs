//! Shared state of the code generation.

use super::tokens::{Private, at, here, renamed};
use crate::analyze::captures::Names;
use crate::check::Lock;
use proc_macro2::{Literal, Span, TokenStream};
use quote::{ToTokens, quote_spanned};

/// Writes the code of one function. Its parts are in `body`, `acquire` and `run`.
pub(super) struct Writer<'a> {
    pub(super) lock: &'a Lock,
    /// `true` if the code is for an editor and is not run.
    pub(super) for_editor: bool,
    /// Text of the options, if the function is registered in the list of functions.
    options_text: Option<&'a str>,
    /// `__private`, for generated code that no error points at.
    pub(super) private: Private<'a>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(lock: &'a Lock, for_editor: bool, options_text: Option<&'a str>) -> Self {
        Self { lock, for_editor, options_text, private: Private::new(lock.options.krate.as_ref()) }
    }

    /// Registers the function in the list of the program's functions, if required.
    pub(super) fn listed(&self) -> Option<TokenStream> {
        let (private, options_text) = (&self.private, self.text(self.options_text?));
        let function = self.text(&self.lock.function.signature.ident.to_string());
        Some(quote_spanned! {here()=>
            #private::inventory::submit! { #private::ListedSite::new(&__REDLOCK_SITE, #function, #options_text) }
        })
    }

    /// Creates text in generated code.
    pub(super) fn text(&self, text: &str) -> Literal {
        self.located(Literal::string(text))
    }

    /// Moves a literal to the span of the function. A lint about non-ASCII characters reads the source at the span of
    /// the literal, and the key in the attribute may contain such characters.
    pub(super) fn located(&self, mut literal: Literal) -> Literal {
        literal.set_span(at(self.lock.function.signature.fn_token.span));
        literal
    }

    /// Returns the names in the options and in the body.
    pub(super) fn names(&self) -> Names<'_> {
        Names { in_options: &self.lock.in_options, in_body: &self.lock.in_body }
    }

    /// Returns `__private` at `span`. The compiler reports a call from its first token to its last.
    pub(super) fn private_at(&self, span: Span) -> Private<'_> {
        self.private.at(span)
    }

    /// Generates `Some(value)` or `None`.
    pub(super) fn option(&self, value: Option<TokenStream>) -> TokenStream {
        let private = &self.private;
        let some = value.map(|value| quote_spanned!(here()=> #private::Some(#value)));
        some.unwrap_or_else(|| quote_spanned!(here()=> #private::None))
    }

    /// Returns the tokens of an expression of the attribute. `#[async_trait]` renames `self` in the body but not in the
    /// attribute, so it is renamed here.
    pub(super) fn user_tokens(&self, expression: &impl ToTokens) -> TokenStream {
        let tokens = expression.to_token_stream();
        let receiver = self.lock.bindings.iter().find(|binding| binding.name == "self" && binding.ident != "self");
        match receiver {
            Some(receiver) => renamed(tokens, &receiver.ident),
            None => tokens,
        }
    }
}
