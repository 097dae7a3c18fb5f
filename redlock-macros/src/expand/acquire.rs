//! The statement that asks for the lock: manager, times, key.

use super::Writer;
use super::tokens::{at, here};
use crate::args::Waiting;
use crate::duration::Time;
use crate::key::{Named, Operand, Part, Root, Way};
use proc_macro2::TokenStream;
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
        let format = &key.format;
        let chosen = self.option(self.lock.args.manager.as_ref().map(|_| quote_spanned!(here()=> __manager)));
        quote_spanned! {here()=>
            let __acquire = {
                #manager
                let __settings = #settings;
                #(#named)*
                #(#captured)*
                let __acquire = #private::acquire(#chosen, #private::format_args!(#format #given), __settings);
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

    /// A constant, unless a time is known only when the function runs.
    fn settings(&self) -> TokenStream {
        let private = &self.private;
        let args = &self.lock.args;
        let ttl = self.option(args.ttl.as_ref().map(|ttl| self.ttl(ttl)));
        let wait = self.option(args.wait.as_ref().map(|wait| self.wait(wait)));
        let settings = quote_spanned!(here()=> #private::Settings { ttl: #ttl, wait: #wait });
        let is_known = |time: &Time| matches!(time, Time::Literal(_));
        let is_constant = args.ttl.as_ref().is_none_or(is_known)
            && args.wait.as_ref().is_none_or(|wait| match wait {
                Waiting::None | Waiting::Forever => true,
                Waiting::For(time) => is_known(time),
            });
        if is_constant { quote_spanned!(here()=> const { #settings }) } else { settings }
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

    /// `let __named0 = &(order.id);`
    fn named(&self, named: &Named) -> TokenStream {
        let Named { variable, value } = named;
        let value = self.user_tokens(value);
        let reference = quote_spanned!(at(value.span())=> &(#value));
        quote_spanned!(here()=> let #variable = #reference;)
    }

    /// The values under the names that the user's own literal captures.
    ///
    /// An editor that analyses the code captures the arguments themselves, and finds them from inside the string.
    fn captured(&self) -> Vec<TokenStream> {
        let key = &self.lock.key;
        if !key.is_verbatim || (self.for_editor && key.captures_arguments()) {
            return Vec::new();
        }
        let parts = key.parts.iter().map(|part| {
            let (name, value) = (&part.name, self.part(part));
            quote_spanned!(here()=> let #name = #value;)
        });
        parts.collect()
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
        quote_spanned!(*span=> #private::part(&#value).escaped(&[#(#escaped),*]))
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
