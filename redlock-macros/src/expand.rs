//! The code that takes the place of the function. The only file that writes tokens.
//!
//! Local names are `mixed_site`: the user's code cannot see them. Everything else is named through `__private`, so that
//! it means the same in a crate that has its own `Result`.

use crate::args::Waiting;
use crate::bindings;
use crate::check::{Form, Lock};
use crate::duration::Time;
use crate::future::{Place, Returned};
use crate::item::{Function, with_contents};
use crate::key::Part;
use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use std::collections::HashSet;
use std::time::Duration;
use syn::spanned::Spanned;
use syn::{ExprPath, GenericParam, ReturnType, Type};

/// The function with its lock.
pub(crate) fn expand(lock: &Lock) -> TokenStream {
    let body = Writer::new(lock).body();
    let Function { attributes, visibility, defaultness, signature, body: braces } = &lock.function;
    let body = with_contents(braces, body);
    quote!(#(#attributes)* #visibility #defaultness #signature #body)
}

struct Writer<'a> {
    lock: &'a Lock,
    /// `::redlock_runtime::__private`
    private: TokenStream,
}

impl<'a> Writer<'a> {
    fn new(lock: &'a Lock) -> Self {
        let default = quote_spanned!(here()=> ::redlock_runtime);
        let path = lock.args.krate.as_ref().map_or(default, ToTokens::to_token_stream);
        Self { lock, private: quote_spanned!(here()=> #path::__private) }
    }

    /// `__private`, reported at `span`: the compiler reports a call from its first token to its last.
    fn private_at(&self, span: Span) -> TokenStream {
        let tokens = self.private.clone().into_iter().map(|mut token| {
            token.set_span(token.span().located_at(span));
            token
        });
        tokens.collect()
    }

    fn body(&self) -> TokenStream {
        let acquire = self.acquire();
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

    /// `let __acquire = ..;`, a statement of its own: `format_args!` held across an await makes the future `!Send`.
    ///
    /// What the user wrote for the manager and the times stands before the parts of the key, which take the names of
    /// arguments.
    fn acquire(&self) -> TokenStream {
        let private = &self.private;
        let key = &self.lock.key;
        let manager = self.manager();
        let settings = self.settings();
        let parts = key.parts.iter().map(|part| self.part(part));
        let format = &key.format;
        let chosen = self.option(self.lock.args.manager.as_ref().map(|_| quote_spanned!(here()=> __manager)));
        let allowed = (key.is_verbatim && !key.parts.is_empty()).then(|| quote!(#[allow(unexpected_cfgs)]));
        quote_spanned! {here()=>
            #allowed
            let __acquire = {
                #manager
                let __settings = #settings;
                #(#parts)*
                let __acquire = #private::acquire(#chosen, #private::format_args!(#format), __settings);
                __acquire
            };
        }
    }

    /// A reference with a type, so that whatever derefs to a manager is one.
    fn manager(&self) -> Option<TokenStream> {
        let private = &self.private;
        let manager = self.user_tokens(&self.lock.args.manager.as_ref()?);
        let reference = quote_spanned!(at(manager.span())=> &(#manager));
        Some(quote_spanned!(here()=> let __manager: &#private::LockManager = #reference;))
    }

    fn settings(&self) -> TokenStream {
        let private = &self.private;
        let ttl = self.option(self.lock.args.ttl.as_ref().map(|ttl| self.ttl(ttl)));
        let wait = self.option(self.lock.args.wait.as_ref().map(|wait| self.wait(wait)));
        quote_spanned!(here()=> #private::Settings { ttl: #ttl, wait: #wait })
    }

    fn ttl(&self, ttl: &Time) -> TokenStream {
        let path = match ttl {
            Time::Literal(time) => return self.duration(*time),
            Time::Expression(expression) => return self.user_tokens(expression),
            Time::Path(path) if self.is_argument(path) => return path.to_token_stream(),
            Time::Path(path) => path,
        };
        let span = at(path.span());
        let private = self.private_at(span);
        // An item is evaluated by `cargo check`, but cannot name what is generic; an inline constant can.
        if self.is_generic(path) {
            return quote_spanned!(span=> const { #private::checked_ttl(#path) });
        }
        quote_spanned! {span=> {
            const __REDLOCK_TTL: #private::Duration = #private::checked_ttl(#path);
            __REDLOCK_TTL
        }}
    }

    fn wait(&self, wait: &Waiting) -> TokenStream {
        let private = &self.private;
        match wait {
            Waiting::Forever => quote_spanned!(here()=> #private::Wait::Forever),
            Waiting::None => quote_spanned!(here()=> #private::Wait::None),
            Waiting::For(Time::Literal(time)) if time.is_zero() => quote_spanned!(here()=> #private::Wait::None),
            Waiting::For(Time::Literal(time)) => {
                let time = self.duration(*time);
                quote_spanned!(here()=> #private::Wait::For(#time))
            }
            Waiting::For(Time::Path(path)) => self.wait_expression(path),
            Waiting::For(Time::Expression(expression)) => self.wait_expression(expression),
        }
    }

    /// A duration, or a `Wait`.
    fn wait_expression(&self, expression: &impl ToTokens) -> TokenStream {
        let expression = self.user_tokens(expression);
        let span = at(expression.span());
        let private = self.private_at(span);
        quote_spanned!(span=> #private::wait(#expression))
    }

    fn duration(&self, time: Duration) -> TokenStream {
        let private = &self.private;
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        quote_spanned!(here()=> #private::Duration::from_millis(#millis))
    }

    /// One argument, escaped for its place in the key, under the name that the format string captures.
    ///
    /// An editor that analyses the code captures the argument itself, and finds it from inside the string.
    fn part(&self, part: &Part) -> TokenStream {
        let private = &self.private;
        let Part { name, argument, fields, escaped } = part;
        let condition = self.lock.key.is_verbatim.then(|| quote!(#[cfg(not(rust_analyzer))]));
        let value = quote_spanned!(argument.span()=> #argument #(.#fields)*);
        quote_spanned!(here()=> #condition let #name = #private::part(&#value, &[#(#escaped),*]);)
    }

    /// Waits for the lock, runs `body` while it is held, and turns an error into the function's output.
    fn run(&self, body: &TokenStream) -> TokenStream {
        let private = &self.private;
        let failed = self.failed();
        // A lifetime that the body does not live up to is reported here.
        let output = quote_spanned!(at(self.lock.output.span())=> __output);
        quote_spanned! {here()=>
            // Not one `match` around all of this: its temporary would stay in the future while the body runs.
            let __outcome = '__call: {
                let __guard = match __acquire.await {
                    #private::Ok(__guard) => __guard,
                    #private::Err(__error) => break '__call #private::Err(__error),
                };
                // Items at the start of the body stand after statements here, and unused arguments are used.
                #[allow(clippy::items_after_statements, clippy::used_underscore_binding)]
                let __outcome = #private::hold(&__guard, #body).await;
                __outcome
            };
            match __outcome {
                #private::Ok(#output) => #output,
                #private::Err(__error) => #failed,
            }
        }
    }

    /// The output for `__error`.
    fn failed(&self) -> TokenStream {
        let output = &self.lock.output;
        let Some(handler) = &self.lock.args.on_error else {
            let span = at(output.span());
            let private = self.private_at(span);
            return quote_spanned!(span=> #private::from_lock_error::<#output>(__error));
        };
        let handler = self.user_tokens(handler);
        let span = at(handler.span());
        let private = self.private_at(span);
        quote_spanned!(span=> #private::handle_lock_error::<#output, _>(#handler, __error))
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
        bindings::mentioned(self.failed(), &mut names);
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

    fn is_argument(&self, path: &ExprPath) -> bool {
        path.path.get_ident().is_some_and(|name| self.lock.bindings.iter().any(|binding| binding.ident == *name))
    }

    fn is_generic(&self, path: &ExprPath) -> bool {
        let Some(first) = path.path.segments.first() else { return false };
        let is_parameter = |parameter: &GenericParam| match parameter {
            GenericParam::Type(parameter) => parameter.ident == first.ident,
            GenericParam::Const(parameter) => parameter.ident == first.ident,
            GenericParam::Lifetime(_) => false,
        };
        path.qself.is_some()
            || first.ident == "Self"
            || self.lock.function.signature.generics.params.iter().any(is_parameter)
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

/// `self` replaced by the name it was given, but not in `self::module`.
fn renamed(tokens: TokenStream, receiver: &Ident) -> TokenStream {
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

/// `async move { contents }` in the place of the user's braces, and with their span: the compiler names a captured
/// argument in an error only where the block is not generated.
fn async_block(is_move: bool, user: &Group, contents: TokenStream) -> TokenStream {
    let capture = is_move.then(|| quote_spanned!(user.span()=> move));
    let block = with_contents(user, contents);
    quote_spanned!(user.span()=> async #capture #block)
}

fn here() -> Span {
    Span::mixed_site()
}

/// Generated code, reported at the user's code.
fn at(span: Span) -> Span {
    Span::mixed_site().located_at(span)
}
