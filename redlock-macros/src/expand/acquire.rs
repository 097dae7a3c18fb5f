//! Generates the statement that acquires the lock: manager, durations, key.

use super::editor;
use super::tokens::{at, here};
use super::value::{accesses, root};
use super::writer::Writer;
use crate::analyze::key::{Formatted, Named, Part, Place, Root};
use crate::options::{Mode, Order, Time, Waiting};
use proc_macro2::{Ident, Literal, TokenStream};
use quote::{ToTokens, quote_spanned};
use std::time::Duration;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{ExprPath, GenericParam};

impl Writer<'_> {
    /// Generates `let __acquire = ..;`. This is a separate statement: if `format_args!` were in the statement of the
    /// `await`, it would be held across it and make the future `!Send`.
    ///
    /// The user's expressions for the manager, the durations and the named parts are evaluated before the parts of the
    /// key, in the order of handwritten code.
    pub(super) fn acquire(&self) -> TokenStream {
        let manager = self.manager();
        let site = self.site();
        let settings = self.settings();
        let named = self.lock.key.named.iter().map(|named| self.named(named));
        let seen = self.for_editor.then(|| self.seen());
        let acquired = match self.lock.key.only() {
            Some(key) => self.acquire_one(key),
            None => self.acquire_all(),
        };
        quote_spanned! {here()=>
            let __acquire = {
                #site
                #manager
                let __settings = #settings;
                #(#named)*
                #seen
                #acquired
                __acquire
            };
        }
    }

    /// Acquires one key.
    fn acquire_one(&self, key: &Formatted) -> TokenStream {
        let (private, chosen) = (&self.private, self.chosen());
        let acquire = Ident::new(if self.lock.options.is_fenced { "acquire_fenced" } else { "acquire" }, here());
        let (captured, formatted) = (self.captured(key), self.formatted(key));
        quote_spanned! {here()=>
            #(#captured)*
            let __acquire = #private::#acquire(#chosen, #formatted, __settings);
        }
    }

    /// Acquires several keys, or paths. Each template sees only its own captured values.
    fn acquire_all(&self) -> TokenStream {
        let (private, chosen) = (&self.private, self.chosen());
        let acquire = if self.lock.options.is_fenced { "acquire_all_fenced" } else { "acquire_all" };
        let acquire = Ident::new(acquire, here());
        let all = self.lock.key.all.iter().map(|key| {
            let (captured, formatted) = (self.captured(key), self.formatted(key));
            let kind = Ident::new(if key.is_path { "path" } else { "key" }, here());
            let mode = key.mode.map(|mode| {
                let mode = Ident::new(if mode == Mode::Shared { "shared" } else { "exclusive" }, here());
                quote_spanned!(here()=> .#mode())
            });
            let listed = quote_spanned!(here()=> #private::#kind(#formatted) #mode);
            if captured.is_empty() { listed } else { quote_spanned!(here()=> { #(#captured)* #listed }) }
        });
        quote_spanned! {here()=>
            let __all = [#(#all),*];
            let __acquire = #private::#acquire(#chosen, __all, __settings);
        }
    }

    /// Returns the manager, if the attribute has one.
    fn chosen(&self) -> TokenStream {
        self.option(self.lock.options.manager.as_ref().map(|_| quote_spanned!(here()=> __manager)))
    }

    /// Formats one key or path.
    fn formatted(&self, key: &Formatted) -> TokenStream {
        let given = self.given(key);
        let mut format = if self.for_editor { Literal::string("") } else { key.format.clone() };
        // The literal captures the generated names above, and not the arguments, which would hide them.
        format.set_span(at(format.span()));
        quote_spanned!(here()=> ::core::format_args!(#format #given))
    }

    /// Generates the values for an editor.
    fn seen(&self) -> TokenStream {
        let key = &self.lock.key;
        std::iter::once(editor::named_parts(key, &self.lock.options))
            .chain(key.parts().map(editor::navigable_value))
            .collect()
    }

    /// Generates `let __manager: &LockManager = &(..);`. The explicit type lets the compiler also accept a value that
    /// derefs to a manager.
    fn manager(&self) -> Option<TokenStream> {
        let private = &self.private;
        let manager = self.user_tokens(&self.lock.options.manager.as_ref()?);
        let reference = quote_spanned!(at(manager.span())=> &(#manager));
        Some(quote_spanned!(here()=> let __manager: &#private::LockManager = #reference;))
    }

    /// Generates the static of the function, which contains the location of the attribute. It is an item. A reference
    /// to a literal would cost the compiler a little less. But in a generic function, such a literal may exist several
    /// times in the program, so the calls could not be counted in one place. Only the user's own expressions in the
    /// block could see its name `__REDLOCK_SITE`.
    fn site(&self) -> TokenStream {
        let private = &self.private;
        let (template, listed) = (self.text(&self.lock.key.template), self.listed());
        quote_spanned! {here()=>
            static __REDLOCK_SITE: #private::Site =
                #private::Site::new(#template, #private::module_path!(), #private::file!(), #private::line!());
            #listed
        }
    }

    /// Generates the settings that override the manager's defaults. They are calls and not a second constant, because
    /// evaluating a constant for each function costs the compiler more.
    fn settings(&self) -> TokenStream {
        let private = &self.private;
        let options = &self.lock.options;
        // The mode applies to the keys of a list that have none.
        let is_shared = if self.lock.key.only().is_some() { options.is_shared() } else { options.mode == Mode::Shared };
        let shared = is_shared.then(|| quote_spanned!(here()=> .shared()));
        let permits = options.permits.as_ref().map(|permits| given("permits", &self.user_tokens(permits)));
        let ttl = self.lock.options.ttl.as_ref().map(|ttl| self.ttl(ttl));
        let wait = self.lock.options.wait.as_ref().map(|wait| self.wait(wait));
        let hold = self.hold_terms();
        quote_spanned!(here()=> #private::Settings::of(&__REDLOCK_SITE) #shared #permits #ttl #wait #hold)
    }

    /// Generates the options about the holding time and about nested calls.
    fn hold_terms(&self) -> TokenStream {
        let options = &self.lock.options;
        let renew = options.renew.map(|renew| quote_spanned!(here()=> .renew(#renew)));
        let limits = [
            ("max_hold", &options.max_hold),
            ("min_hold", &options.min_hold),
            ("linger", &options.linger),
            ("once_per", &options.once_per),
            ("window_start", &options.window_start),
        ];
        let limits = limits.into_iter().filter_map(|(option, time)| Some(self.limit(option, time.as_ref()?)));
        let reentrant = options.is_reentrant().then(|| quote_spanned!(here()=> .reentrant()));
        let is_unchecked = options.order == Order::Unchecked;
        let unchecked = is_unchecked.then(|| quote_spanned!(here()=> .order_unchecked()));
        renew.into_iter().chain(limits).chain(reentrant).chain(unchecked).collect()
    }

    /// Generates an option that is a duration and is validated at run time.
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

    /// Generates the `ttl`. A literal has been validated already. A constant is validated when the user's crate is
    /// compiled, and any other expression at run time.
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
        // `cargo check` evaluates an item, so the mistake is found early. But an item cannot name generic parameters. A
        // path that uses them is checked in an inline constant, which only a build evaluates.
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

    /// Generates the `wait`.
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

    /// Generates `let __named0 = &(order.id);`, so that nothing is moved. An argument of a method is passed by value.
    fn named(&self, named: &Named) -> TokenStream {
        let Named { variable, value, is_input } = named;
        let value = self.user_tokens(value);
        if *is_input {
            return quote_spanned!(here()=> let #variable = #value;);
        }
        let reference = quote_spanned!(at(value.span())=> &(#value));
        let variable = if self.for_editor { &editor::elsewhere(variable) } else { variable };
        quote_spanned!(here()=> let #variable = #reference;)
    }

    /// Generates one `let` for each value, under the name that the user's own literal captures.
    fn captured(&self, key: &Formatted) -> Vec<TokenStream> {
        if self.for_editor || !key.is_verbatim {
            return Vec::new();
        }
        key.parts.iter().map(|part| self.capture(part)).collect()
    }

    /// Generates the value under the name that the literal captures. An integer needs no escaping: without a call, the
    /// compiler has less work for each function. The type is explicit, because a user's own type called `u64` could
    /// have any text. With such a type, the code does not compile.
    fn capture(&self, part: &Part) -> TokenStream {
        let Part { name, root, plain, span, .. } = part;
        if let (Root::Argument(argument), Some(integer)) = (root, plain) {
            let (private, integer) = (self.private_at(*span), Ident::new(integer, *span));
            return quote_spanned!(*span=> let #name: &#private::#integer = &#argument;);
        }
        let value = self.part(part);
        quote_spanned!(here()=> let #name = #value;)
    }

    /// Generates the values as arguments of `format_args!`, where their temporaries live long enough.
    fn given(&self, key: &Formatted) -> Option<TokenStream> {
        let parts = key.parts.iter().map(|part| {
            let (name, value) = (&part.name, self.part(part));
            quote_spanned!(part.span=> , #name = #value)
        });
        (!key.is_verbatim && !self.for_editor).then(|| parts.collect())
    }

    /// Generates one value, escaped for its position in the key.
    fn part(&self, part: &Part) -> TokenStream {
        let Part { references, escaped, place, is_integer, span, .. } = part;
        let (private, root, accesses) = (self.private_at(*span), root(part), accesses(part));
        let referred = std::iter::repeat_n(quote_spanned!(*span=> *), *references);
        let value = quote_spanned!(*span=> #(#referred)* #root #accesses);
        if *is_integer {
            return quote_spanned!(*span=> #private::integer(&#value));
        }
        // `in_segment` always encodes a slash.
        let escaped = escaped.iter().filter(|c| **c != '/' || *place != Place::InSegment);
        let escaped: Vec<Literal> = escaped.map(|c| self.located(Literal::character(*c))).collect();
        match (place, escaped.as_slice()) {
            (Place::Segment, _) => quote_spanned!(*span=> #private::part(&#value).segment()),
            (Place::Subpath, _) => quote_spanned!(*span=> #private::part(&#value).subpath()),
            (Place::InSegment, escaped) => quote_spanned!(*span=> #private::part(&#value).in_segment(&[#(#escaped),*])),
            // Nothing follows the value, so only `%` needs escaping, which `escaped` always does.
            (Place::InKey, []) => quote_spanned!(*span=> #private::part(&#value).escaped('%')),
            (Place::InKey, [only]) => quote_spanned!(*span=> #private::part(&#value).escaped(#only)),
            (Place::InKey, several) => quote_spanned!(*span=> #private::part(&#value).escaped_all(&[#(#several),*])),
        }
    }

    /// Returns `true` if the path is the name of an argument and not a constant.
    fn is_argument(&self, path: &ExprPath) -> bool {
        path.path.get_ident().is_some_and(|name| self.lock.bindings.iter().any(|binding| binding.ident == *name))
    }

    /// Returns `true` if the path may depend on a generic parameter of the function or its `impl`. The `impl` is not
    /// visible here. `Config::TTL` may be a constant of a type or of a parameter, so only modules are known not to be
    /// parameters.
    fn is_generic(&self, path: &ExprPath) -> bool {
        let Some(first) = path.path.segments.first().filter(|_| path.path.leading_colon.is_none()) else {
            return false;
        };
        let is_parameter = |parameter: &GenericParam| match parameter {
            GenericParam::Type(parameter) => parameter.ident == first.ident,
            GenericParam::Const(parameter) => parameter.ident == first.ident,
            GenericParam::Lifetime(_) => false,
        };
        let is_type = first.ident.unraw().to_string().starts_with(char::is_uppercase);
        let has_arguments = path.path.segments.iter().any(|segment| !segment.arguments.is_none());
        path.qself.is_some()
            || has_arguments
            || (is_type && path.path.segments.len() > 1)
            || self.lock.function.signature.generics.params.iter().any(is_parameter)
    }
}

/// Generates `.setter(value)`. Errors are reported at the value.
fn given(setter: &str, value: &impl ToTokens) -> TokenStream {
    let span = at(value.span());
    let setter = Ident::new(setter, span);
    quote_spanned!(span=> .#setter(#value))
}

/// Converts to whole milliseconds.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
