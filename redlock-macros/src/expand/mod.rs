//! The code that takes the place of the function. The only folder that writes tokens.
//!
//! Local names are `mixed_site`: the user's code cannot see them. Everything else is named through `__private`, so that
//! it means the same in a crate that has its own `Result`.

mod acquire;
mod run;
mod tokens;

use self::tokens::{async_block, at, here, moved, renamed};
use crate::bindings;
use crate::check::{Form, Lock, Warning};
use crate::future::{Place, Returned};
use crate::item::{Function, with_contents};
use proc_macro2::{Group, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use std::collections::HashSet;
use syn::spanned::Spanned;
use syn::{ReturnType, Type};

/// The function with its lock. An editor gets code that it can navigate, which nobody runs.
pub(crate) fn expand(lock: &Lock, for_editor: bool) -> TokenStream {
    let body = Writer::new(lock, for_editor).body();
    let Function { attributes, visibility, defaultness, signature, body: braces } = &lock.function;
    let body = with_contents(braces, body);
    quote!(#(#attributes)* #visibility #defaultness #signature #body)
}

struct Writer<'a> {
    lock: &'a Lock,
    for_editor: bool,
    /// `::redlock_runtime::__private`
    private: TokenStream,
}

impl<'a> Writer<'a> {
    fn new(lock: &'a Lock, for_editor: bool) -> Self {
        let default = quote_spanned!(here()=> ::redlock_runtime);
        let path = lock.args.krate.as_ref().map_or(default, ToTokens::to_token_stream);
        Self { lock, for_editor, private: quote_spanned!(here()=> #path::__private) }
    }

    /// `__private`, reported at `span`: the compiler reports a call from its first token to its last.
    fn private_at(&self, span: Span) -> TokenStream {
        moved(self.private.clone(), span)
    }

    fn body(&self) -> TokenStream {
        let warnings = self.lock.warnings.iter().map(warn);
        let acquire: TokenStream = warnings.chain([self.acquire()]).collect();
        match &self.lock.form {
            Form::Async => {
                let run = self.run(&self.body_with_arguments(&self.lock.function.body));
                quote!(#acquire #run)
            }
            Form::Desugared(place) => {
                let run = self.run(&self.body_with_arguments(&place.group));
                place.fill(quote!(#acquire #run))
            }
            Form::Block(place) => {
                let rest = place.fill(self.run(&self.block(place)));
                quote!(#acquire #rest)
            }
            Form::Future(returned) => self.any_future(&acquire, *returned),
        }
    }

    /// The body of an `async fn`: its future owns the arguments, so that they are gone before the lock is.
    fn body_with_arguments(&self, body: &Group) -> TokenStream {
        let mention = self.mention_arguments(body);
        let edge = self.typed_dead_edge();
        let user = body.stream();
        async_block(true, body, quote!(#mention #edge #user))
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
                (Some(quote!(: #ty)), quote_spanned!(here()=> #private::Box::pin(async move { #run })))
            }
            _ => (None, quote_spanned!(here()=> async move { #run })),
        };
        quote_spanned!(here()=> #acquire let __future #ty = { #made }; #future)
    }

    /// `let _ = (&last, .., &first);` takes the arguments into the body's future in the order in which a plain function
    /// drops them. One that is never used stays outside, where the compiler warns of it.
    fn mention_arguments(&self, body: &Group) -> Option<TokenStream> {
        let mut names = HashSet::from(["self".to_owned()]);
        bindings::mentioned(body.stream(), &mut names);
        bindings::mentioned(self.acquire(), &mut names);
        bindings::mentioned(self.handlers(), &mut names);
        let used = self.lock.bindings.iter().rev();
        let used = used.filter(|binding| binding.name.starts_with('_') || names.contains(&binding.name));
        let mentions: Vec<TokenStream> = used
            .map(|binding| {
                let (cfg, ident) = (&binding.cfg, &binding.ident);
                quote_spanned!(here()=> #(#cfg)* &#ident)
            })
            .collect();
        (!mentions.is_empty()).then(|| {
            quote_spanned! {here()=>
                let _ = (#(#mentions,)*);
            }
        })
    }

    /// Tells the compiler what the body must give before it reads the body: otherwise `Ok(Box::new(x))` would not become
    /// a `Box<dyn Trait>`, and a wrong type would be reported at the attribute.
    fn typed_dead_edge(&self) -> Option<TokenStream> {
        let (private, output) = (&self.private, &self.lock.output);
        (!matches!(output, Type::Infer(_))).then(|| {
            quote_spanned! {at(output.span())=>
                if let #private::Some(__output) = #private::None::<#output> {
                    return __output;
                }
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
