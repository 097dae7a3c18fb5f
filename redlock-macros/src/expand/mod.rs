//! The code that takes the place of the function. The only folder that writes tokens.
//!
//! Local names are `mixed_site`: the user's code cannot see them. Everything else is named through `__private`, so that
//! it means the same in a crate that has its own `Result`.

mod acquire;
mod run;
mod tokens;

use self::tokens::{Private, async_block, at, here, renamed};
use crate::analyze::captures::{self, Arguments, Entry, Names};
use crate::analyze::future::{self, Place, Returned};
use crate::analyze::item::{Function, with_contents};
use crate::check::{Form, Lock, Warning};
use proc_macro2::{Group, Literal, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{LitStr, Pat, ReturnType, Signature, Type};

/// The function with its lock. An editor gets code that it can navigate, which nobody runs.
pub(crate) fn expand(lock: &Lock, for_editor: bool) -> TokenStream {
    let writer = Writer { lock, for_editor, private: Private::new(lock.options.krate.as_ref()) };
    let (changed, body) = writer.function();
    let Function { head, attributes, inner, visibility, defaultness, signature, body: braces } = &lock.function;
    let body = with_contents(braces, body);
    if changed.is_none() && inner.is_empty() {
        return quote!(#head #body);
    }
    let signature = changed.as_ref().unwrap_or(signature);
    quote!(#(#attributes)* #(#inner)* #visibility #defaultness #signature #body)
}

/// The function as it was written, for an editor with its key.
pub(crate) fn unlocked(item: TokenStream, key: Option<LitStr>) -> TokenStream {
    let Some(key) = key else { return item };
    let mut tokens: Vec<TokenTree> = item.into_iter().collect();
    if let Some(TokenTree::Group(body)) = tokens.last_mut() {
        *body = with_contents(body, [seen_by_an_editor(&key.token()), body.stream()].into_iter().collect());
    }
    tokens.into_iter().collect()
}

/// The key as it was written, which an editor then finds the arguments in.
///
/// To complete a name an editor expands the attribute once more with some unknown name in its place, and looks where it
/// was before: so this comes first in the function, whatever else is in it.
fn seen_by_an_editor(key: &Literal) -> TokenStream {
    quote_spanned!(here()=> ::core::format_args!(#key);)
}

struct Writer<'a> {
    lock: &'a Lock,
    for_editor: bool,
    private: Private<'a>,
}

impl Writer<'_> {
    /// The body, which begins with `acquire`, and the signature where it is not as it was.
    fn function(&self) -> (Option<Signature>, TokenStream) {
        let acquire = self.warn_and_acquire();
        let body = match &self.lock.form {
            Form::Async => {
                let body = &self.lock.function.body;
                let Arguments { changed, entries } =
                    captures::of_function(&self.lock.function.signature, &self.names());
                let run = self.run(&self.body_with_arguments(body, &entries));
                return (changed, quote!(#acquire #run));
            }
            Form::Desugared(place) => {
                let entries = captures::of_variables(&self.lock.bindings, &self.names());
                let run = self.run(&self.body_with_arguments(&place.group, &entries));
                place.fill(quote!(#acquire #run))
            }
            Form::Block(place) => {
                let rest = place.fill(self.run(&self.block(place)));
                quote!(#acquire #rest)
            }
            Form::Future(returned) => self.any_future(&acquire, *returned),
        };
        (None, body)
    }

    fn warn_and_acquire(&self) -> TokenStream {
        let seen = self.is_seen_by_an_editor().then(|| seen_by_an_editor(&self.lock.key.format));
        let warnings = self.lock.warnings.iter().map(warn);
        seen.into_iter().chain(warnings).chain([self.acquire()]).collect()
    }

    /// The body of an `async fn`: its future owns the arguments, so that they are gone before the lock is.
    fn body_with_arguments(&self, body: &Group, entries: &[Entry]) -> TokenStream {
        let entries = self.enter(entries);
        let edge = self.typed_dead_edge();
        let user = body.stream();
        async_block(true, body, quote!(#entries #edge #user))
    }

    /// The async block of a function that returns a future.
    fn block(&self, place: &Place) -> TokenStream {
        let edge = self.typed_dead_edge();
        let user = place.group.stream();
        async_block(place.is_move(), &place.group, quote!(#edge #user))
    }

    /// A future that is made by other means, awaited under the lock.
    fn any_future(&self, acquire: &TokenStream, returned: Returned) -> TokenStream {
        let private = &self.private;
        let Function { signature, body, .. } = &self.lock.function;
        let made = body.stream();
        let run = self.run(&quote_spanned!(here()=> __future));
        let (ty, future) = match (returned, &signature.output) {
            (Returned::Boxed, ReturnType::Type(_, ty)) => {
                (Some(ty), quote_spanned!(here()=> #private::Box::pin(async move { #run })))
            }
            _ => (None, quote_spanned!(here()=> async move { #run })),
        };
        let (annotated, returning) = (ty.map(|ty| quote!(: #ty)), ty.map(|ty| quote!(-> #ty)));
        // A closure, so that a future that comes by an early `return` waits for the lock as well.
        let made = if future::may_leave(made.clone()) {
            quote_spanned!(here()=> #private::call_once(move || #returning { #made }))
        } else {
            quote_spanned!(here()=> { #made })
        };
        quote_spanned!(here()=> #acquire let __future #annotated = #made; #future)
    }

    /// `let _ = (&last, .., &first);` captures arguments in the order in which a plain function drops them, and
    /// `let (id, _) = __arg0;` binds the others.
    fn enter(&self, entries: &[Entry]) -> TokenStream {
        let captured = entries.iter().rev().filter(|entry| entry.rebound.is_none());
        let captured = captured.map(|Entry { cfg, variable, .. }| quote_spanned!(here()=> #(#cfg)* &#variable,));
        let captured: TokenStream = captured.collect();
        let captured = (!captured.is_empty()).then(|| quote_spanned!(here()=> let _ = (#captured);));
        let rebound = entries.iter().filter_map(|Entry { cfg, variable, rebound, .. }| {
            let pattern = rebound.as_ref()?;
            // A pattern would capture only what it binds.
            let whole = (!matches!(pattern, Pat::Ident(pattern) if pattern.by_ref.is_none()))
                .then(|| quote_spanned!(here()=> #(#cfg)* let #variable = #variable;));
            // What only the key needs is used all the same.
            let is_used = self.lock.in_options.have_variable(&variable.unraw().to_string());
            let used = is_used.then(|| quote_spanned!(here()=> #(#cfg)* let _ = &#variable;));
            let is_silent = variable.unraw().to_string().starts_with('_');
            let allowed = is_silent.then(|| quote_spanned!(here()=> #[allow(clippy::no_effect_underscore_binding)]));
            Some(quote_spanned!(here()=> #whole #(#cfg)* #allowed let #pattern = #variable; #used))
        });
        captured.into_iter().chain(rebound).collect()
    }

    fn is_seen_by_an_editor(&self) -> bool {
        self.for_editor && self.lock.key.captures_arguments()
    }

    fn names(&self) -> Names<'_> {
        Names { in_options: &self.lock.in_options, in_body: &self.lock.in_body }
    }

    /// Tells the compiler what the body must give before it reads the body: otherwise `Ok(Box::new(x))` would not become
    /// a `Box<dyn Trait>`, and a wrong type would be reported at the attribute.
    fn typed_dead_edge(&self) -> Option<TokenStream> {
        let output = &self.lock.output;
        (!matches!(output, Type::Infer(_))).then(|| {
            let private = self.private_at(at(output.span()));
            quote_spanned! {at(output.span())=>
                if let #private::Some(__output) = #private::None::<#output> {
                    return __output;
                };
            }
        })
    }

    /// `__private`, reported at `span`: the compiler reports a call from its first token to its last.
    fn private_at(&self, span: Span) -> Private<'_> {
        self.private.at(span)
    }

    fn option(&self, value: Option<TokenStream>) -> TokenStream {
        let private = &self.private;
        let some = value.map(|value| quote_spanned!(here()=> #private::Some(#value)));
        some.unwrap_or_else(|| quote_spanned!(here()=> #private::None))
    }

    /// An expression of the attribute. `#[async_trait]` has renamed `self` in the body, but not here.
    fn user_tokens(&self, expression: &impl ToTokens) -> TokenStream {
        let tokens = expression.to_token_stream();
        let receiver = self.lock.bindings.iter().find(|binding| binding.name == "self" && binding.ident != "self");
        match receiver {
            Some(receiver) => renamed(tokens, &receiver.ident),
            None => tokens,
        }
    }
}

/// The only warning that a macro can give on stable: the use of something deprecated, at the user's token.
fn warn(warning: &Warning) -> TokenStream {
    let Warning { span, message } = warning;
    let used = quote_spanned!(at(*span)=> distributed_lock);
    quote_spanned! {here()=>
        const _: () = {
            #[deprecated(note = #message)]
            const fn distributed_lock() {}
            #used()
        };
    }
}
