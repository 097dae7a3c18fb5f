//! The code that takes the place of the function. The only folder that writes tokens.
//!
//! Local names are `mixed_site`: the user's code cannot see them. Everything else is named through `__private`, so that
//! it means the same in a crate that has its own `Result`.

mod acquire;
mod run;
mod tokens;

use self::tokens::{async_block, at, here, moved, renamed};
use crate::arguments::{self, Arguments, Entry, Names};
use crate::bindings;
use crate::check::{Form, Lock, Warning};
use crate::future::{self, Place, Returned};
use crate::item::{Function, with_contents};
use proc_macro2::{Group, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use std::borrow::Cow;
use std::collections::HashSet;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Pat, ReturnType, Signature, Type};

/// The function with its lock. An editor gets code that it can navigate, which nobody runs.
pub(crate) fn expand(lock: &Lock, for_editor: bool) -> TokenStream {
    let mut writer = Writer::new(lock, for_editor);
    let acquire = writer.acquire();
    writer.in_options = writer.names_in_options(&acquire);
    let (signature, body) = writer.function(acquire);
    let Function { attributes, visibility, defaultness, body: braces, .. } = &lock.function;
    let body = with_contents(braces, body);
    quote!(#(#attributes)* #visibility #defaultness #signature #body)
}

struct Writer<'a> {
    lock: &'a Lock,
    for_editor: bool,
    /// `::redlock_runtime::__private`
    private: TokenStream,
    /// The names that the attribute uses outside of the body.
    in_options: HashSet<String>,
}

impl<'a> Writer<'a> {
    fn new(lock: &'a Lock, for_editor: bool) -> Self {
        let default = quote_spanned!(here()=> ::redlock_runtime);
        let path = lock.args.krate.as_ref().map_or(default, ToTokens::to_token_stream);
        let private = quote_spanned!(here()=> #path::__private);
        Self { lock, for_editor, private, in_options: HashSet::new() }
    }

    /// `__private`, reported at `span`: the compiler reports a call from its first token to its last.
    fn private_at(&self, span: Span) -> TokenStream {
        moved(self.private.clone(), span)
    }

    /// The signature and the body, which begins with `acquire`.
    fn function(&self, acquire: TokenStream) -> (Cow<'_, Signature>, TokenStream) {
        let signature = &self.lock.function.signature;
        let warnings = self.lock.warnings.iter().map(warn);
        let acquire: TokenStream = warnings.chain([acquire]).collect();
        let body = match &self.lock.form {
            Form::Async => {
                let body = &self.lock.function.body;
                let Arguments { signature, entries } = arguments::of_function(signature, &self.names(body));
                let run = self.run(&self.body_with_arguments(body, &entries));
                return (Cow::Owned(signature), quote!(#acquire #run));
            }
            Form::Desugared(place) => {
                let body = &place.group;
                let entries = arguments::of_variables(&self.lock.bindings, &self.names(body));
                let run = self.run(&self.body_with_arguments(body, &entries));
                place.fill(quote!(#acquire #run))
            }
            Form::Block(place) => {
                let rest = place.fill(self.run(&self.block(place)));
                quote!(#acquire #rest)
            }
            Form::Future(returned) => self.any_future(&acquire, *returned),
        };
        (Cow::Borrowed(signature), body)
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
            let is_used = self.in_options.contains(&variable.unraw().to_string());
            let used = is_used.then(|| quote_spanned!(here()=> #(#cfg)* let _ = &#variable;));
            let is_silent = variable.unraw().to_string().starts_with('_');
            let allowed = is_silent.then(|| quote_spanned!(here()=> #[allow(clippy::no_effect_underscore_binding)]));
            Some(quote_spanned!(here()=> #whole #(#cfg)* #allowed let #pattern = #variable; #used))
        });
        captured.into_iter().chain(rebound).collect()
    }

    fn names(&self, body: &Group) -> Names {
        let mut names = Names { in_options: self.in_options.clone(), ..Names::default() };
        bindings::mentioned(body.stream(), &mut names.in_body);
        bindings::assigned(body.stream(), &mut names.assigned);
        names
    }

    fn names_in_options(&self, acquire: &TokenStream) -> HashSet<String> {
        let mut names = HashSet::new();
        bindings::mentioned(acquire.clone(), &mut names);
        bindings::mentioned(self.handlers(), &mut names);
        names
    }

    /// Tells the compiler what the body must give before it reads the body: otherwise `Ok(Box::new(x))` would not become
    /// a `Box<dyn Trait>`, and a wrong type would be reported at the attribute.
    fn typed_dead_edge(&self) -> Option<TokenStream> {
        let (private, output) = (&self.private, &self.lock.output);
        (!matches!(output, Type::Infer(_))).then(|| {
            quote_spanned! {at(output.span())=>
                if let #private::Some(__output) = #private::None::<#output> {
                    return __output;
                };
            }
        })
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
