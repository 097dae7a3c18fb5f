//! The statement that asks for the lock: manager, times, key.

use super::tokens::{at, here};
use super::writer::Writer;
use crate::analyze::key::{Named, Operand, Part, Root, Way};
use crate::options::Time;
use crate::options::Waiting;
use proc_macro2::{Ident, Literal, TokenStream};
use quote::{ToTokens, quote_spanned};
use std::time::Duration;
use syn::spanned::Spanned;
use syn::{ExprPath, GenericParam};

impl Writer<'_> {
    /// `let __acquire = ..;`, a statement of its own: `format_args!` held across an await makes the future `!Send`.
    ///
    /// What the user wrote for the manager, the times and named parts stands before the parts of the key, which take the
    /// names of arguments.
    pub(super) fn acquire(&self) -> TokenStream {
        let private = &self.private;
        let key = &self.lock.key;
        let manager = self.manager();
        let settings = self.settings();
        let named = key.named.iter().map(|named| self.named(named));
        let captured = self.captured();
        let given = self.given();
        let format = if self.is_seen_by_an_editor() { &Literal::string("") } else { &key.format };
        let acquire = Ident::new(if self.lock.options.is_fenced { "acquire_fenced" } else { "acquire" }, here());
        let chosen = self.option(self.lock.options.manager.as_ref().map(|_| quote_spanned!(here()=> __manager)));
        quote_spanned! {here()=>
            let __acquire = {
                #manager
                let __settings = #settings;
                #(#named)*
                #(#captured)*
                let __acquire = #private::#acquire(#chosen, #private::format_args!(#format #given), __settings);
                __acquire
            };
        }
    }

    /// A reference with a type, so that whatever derefs to a manager is one.
    fn manager(&self) -> Option<TokenStream> {
        let private = &self.private;
        let manager = self.user_tokens(&self.lock.options.manager.as_ref()?);
        let reference = quote_spanned!(at(manager.span())=> &(#manager));
        Some(quote_spanned!(here()=> let __manager: &#private::LockManager = #reference;))
    }

    /// What was given, on top of the defaults. Calls and not a constant: evaluating one for each function costs the
    /// compiler more than the rest of the settings.
    fn settings(&self) -> TokenStream {
        let private = &self.private;
        let ttl = self.lock.options.ttl.as_ref().map(|ttl| self.ttl(ttl));
        let wait = self.lock.options.wait.as_ref().map(|wait| self.wait(wait));
        let hold = self.hold_terms();
        quote_spanned!(here()=> #private::DEFAULTS #ttl #wait #hold)
    }

    /// For how long the lock is held, whatever the body does.
    fn hold_terms(&self) -> TokenStream {
        let options = &self.lock.options;
        let renew = options.renew.map(|renew| quote_spanned!(here()=> .renew(#renew)));
        let limits = [("max_hold", &options.max_hold), ("min_hold", &options.min_hold)];
        let limits = limits.into_iter().filter_map(|(option, time)| Some(self.limit(option, time.as_ref()?)));
        renew.into_iter().chain(limits).collect()
    }

    fn limit(&self, option: &str, time: &Time) -> TokenStream {
        match time {
            Time::Literal(time) => {
                let (setter, millis) = (Ident::new(&format!("{option}_millis"), here()), millis(*time));
                quote_spanned!(here()=> .#setter(#millis))
            }
            Time::Path(path) => given(option, &self.user_tokens(path)),
            Time::Expression(expression) => given(option, &self.user_tokens(expression)),
        }
    }

    fn ttl(&self, ttl: &Time) -> TokenStream {
        let path = match ttl {
            Time::Literal(time) => {
                let millis = millis(*time);
                return quote_spanned!(here()=> .ttl_millis(#millis));
            }
            Time::Expression(expression) => return given("ttl", &self.user_tokens(expression)),
            Time::Path(path) if self.is_argument(path) => return given("ttl", path),
            Time::Path(path) => path,
        };
        let span = at(path.span());
        let private = self.private_at(span);
        // An item is evaluated by `cargo check`, but cannot name what is generic; an inline constant can.
        let checked = if self.is_generic(path) {
            quote_spanned!(span=> const { #private::checked_ttl(#path) })
        } else {
            quote_spanned! {span=> {
                const __REDLOCK_TTL: #private::Duration = #private::checked_ttl(#path);
                __REDLOCK_TTL
            }}
        };
        given("ttl", &checked)
    }

    fn wait(&self, wait: &Waiting) -> TokenStream {
        match wait {
            Waiting::Forever => quote_spanned!(here()=> .wait_forever()),
            Waiting::None => quote_spanned!(here()=> .wait_millis(0)),
            Waiting::For(Time::Literal(time)) => {
                let millis = millis(*time);
                quote_spanned!(here()=> .wait_millis(#millis))
            }
            Waiting::For(Time::Path(path)) => given("wait", &self.user_tokens(path)),
            Waiting::For(Time::Expression(expression)) => given("wait", &self.user_tokens(expression)),
        }
    }

    /// `let __named0 = &(order.id);`
    fn named(&self, named: &Named) -> TokenStream {
        let Named { variable, value } = named;
        let value = self.user_tokens(value);
        let reference = quote_spanned!(at(value.span())=> &(#value));
        quote_spanned!(here()=> let #variable = #reference;)
    }

    /// The values under the names that the user's own literal captures.
    fn captured(&self) -> Vec<TokenStream> {
        let key = &self.lock.key;
        if !key.is_verbatim || self.is_seen_by_an_editor() {
            return Vec::new();
        }
        key.parts.iter().map(|part| self.capture(part)).collect()
    }

    /// An integer stands in the key as it is, which the compiler need not find out anew for each function. Its type is
    /// named, because only the language's own has a text that is known here.
    fn capture(&self, part: &Part) -> TokenStream {
        let Part { name, root, plain, span, .. } = part;
        if let (Root::Argument(argument), Some(integer)) = (root, plain) {
            let (private, integer) = (self.private_at(*span), Ident::new(integer, *span));
            return quote_spanned!(*span=> let #name: &#private::#integer = &#argument;);
        }
        let value = self.part(part);
        quote_spanned!(here()=> let #name = #value;)
    }

    /// The values as arguments of `format_args!`, where a temporary in them lives long enough.
    fn given(&self) -> Option<TokenStream> {
        let key = &self.lock.key;
        let parts = key.parts.iter().map(|part| {
            let (name, value) = (&part.name, self.part(part));
            quote_spanned!(part.span=> , #name = #value)
        });
        (!key.is_verbatim).then(|| parts.collect())
    }

    /// One value, escaped for its place in the key.
    fn part(&self, part: &Part) -> TokenStream {
        let Part { root, way, escaped, is_integer, span, .. } = part;
        let private = self.private_at(*span);
        let root = match root {
            Root::Argument(argument) => argument.to_token_stream(),
            Root::Named(variable) => quote_spanned!(*span=> (*#variable)),
            Root::Constant(path) => quote_spanned!(*span=> #(#path)::*),
        };
        let way = way.iter().map(|way| match way {
            Way::Field(member) => quote_spanned!(*span=> .#member),
            Way::Call(method, inputs) => {
                let inputs = inputs.iter().map(operand);
                quote_spanned!(*span=> .#method(#(#inputs),*))
            }
            Way::Index(input) => {
                let input = operand(input);
                quote_spanned!(*span=> [#input])
            }
        });
        let value = quote_spanned!(*span=> #root #(#way)*);
        if *is_integer {
            return quote_spanned!(*span=> #private::integer(&#value));
        }
        match escaped.as_slice() {
            // It is escaped anyhow.
            [] => quote_spanned!(*span=> #private::part(&#value).escaped('%')),
            [only] => quote_spanned!(*span=> #private::part(&#value).escaped(#only)),
            several => quote_spanned!(*span=> #private::part(&#value).escaped_all(&[#(#several),*])),
        }
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
}

fn operand(operand: &Operand) -> TokenStream {
    match operand {
        Operand::Number(number) => number.to_token_stream(),
        Operand::Value(variable) => variable.to_token_stream(),
    }
}

/// `.setter(value)`, reported at the value.
fn given(setter: &str, value: &impl ToTokens) -> TokenStream {
    let span = at(value.span());
    let setter = Ident::new(setter, span);
    quote_spanned!(span=> .#setter(#value))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
