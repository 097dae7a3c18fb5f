//! The statement that asks for the lock: manager, times, key.

use super::editor;
use super::tokens::{at, here};
use super::value::{root, way};
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
    /// `let __acquire = ..;`, a statement of its own: if `format_args!` stood in the same statement as the `await`, it
    /// would be held across it and make the future `!Send`.
    ///
    /// What the user wrote for the manager, the times and named parts is evaluated before the parts of the key, in the
    /// order in which it is written by hand.
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

    /// Asks for one key.
    fn acquire_one(&self, key: &Formatted) -> TokenStream {
        let (private, chosen) = (&self.private, self.chosen());
        let acquire = Ident::new(if self.lock.options.is_fenced { "acquire_fenced" } else { "acquire" }, here());
        let (captured, formatted) = (self.captured(key), self.formatted(key));
        quote_spanned! {here()=>
            #(#captured)*
            let __acquire = #private::#acquire(#chosen, #formatted, __settings);
        }
    }

    /// Asks for several keys, or for paths. What a template captures is seen by that one alone.
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

    /// The manager, if the attribute names one.
    fn chosen(&self) -> TokenStream {
        self.option(self.lock.options.manager.as_ref().map(|_| quote_spanned!(here()=> __manager)))
    }

    /// One key or path as text.
    fn formatted(&self, key: &Formatted) -> TokenStream {
        let (private, given) = (&self.private, self.given(key));
        let mut format = if self.for_editor { Literal::string("") } else { key.format.clone() };
        // What it captures are the generated names above, and not the arguments, which those would hide otherwise.
        format.set_span(at(format.span()));
        quote_spanned!(here()=> #private::format_args!(#format #given))
    }

    /// What an editor is shown of the values.
    fn seen(&self) -> TokenStream {
        let key = &self.lock.key;
        std::iter::once(editor::named_parts(key, &self.lock.options)).chain(key.parts().map(editor::way_to)).collect()
    }

    /// `let __manager: &LockManager = &(..);`: the type is written, so that the compiler also takes what derefs to a
    /// manager.
    fn manager(&self) -> Option<TokenStream> {
        let private = &self.private;
        let manager = self.user_tokens(&self.lock.options.manager.as_ref()?);
        let reference = quote_spanned!(at(manager.span())=> &(#manager));
        Some(quote_spanned!(here()=> let __manager: &#private::LockManager = #reference;))
    }

    /// The one static of the function: where the attribute stands. It is an item and not a reference to a literal, which
    /// would cost the compiler a little less, because a literal in a generic function may come to stand in the program
    /// several times, and then the calls of one function could not be counted in one place. Inside of the block nothing
    /// but the user's own expressions can see its name, and nobody calls anything `__REDLOCK_SITE`.
    fn site(&self) -> TokenStream {
        let private = &self.private;
        let (template, listed) = (self.text(&self.lock.key.template), self.listed());
        quote_spanned! {here()=>
            static __REDLOCK_SITE: #private::Site =
                #private::Site::new(#template, #private::module_path!(), #private::file!(), #private::line!());
            #listed
        }
    }

    /// What was given, on top of the manager's defaults. Calls and not a second constant beside the static, because
    /// evaluating a constant for each function costs the compiler more than the calls.
    fn settings(&self) -> TokenStream {
        let private = &self.private;
        let options = &self.lock.options;
        // In a list, it is what those are that say nothing.
        let is_shared = if self.lock.key.only().is_some() { options.is_shared() } else { options.mode == Mode::Shared };
        let shared = is_shared.then(|| quote_spanned!(here()=> .shared()));
        let permits = options.permits.as_ref().map(|permits| given("permits", &self.user_tokens(permits)));
        let ttl = self.lock.options.ttl.as_ref().map(|ttl| self.ttl(ttl));
        let wait = self.lock.options.wait.as_ref().map(|wait| self.wait(wait));
        let hold = self.hold_terms();
        quote_spanned!(here()=> #private::Settings::of(&__REDLOCK_SITE) #shared #permits #ttl #wait #hold)
    }

    /// The options that say for how long the lock is held, whatever the body does, and whose it may be before.
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
        let reentrant = options.enters_its_own().then(|| quote_spanned!(here()=> .reentrant()));
        let is_unchecked = options.order == Order::Unchecked;
        let unchecked = is_unchecked.then(|| quote_spanned!(here()=> .order_unchecked()));
        renew.into_iter().chain(limits).chain(reentrant).chain(unchecked).collect()
    }

    /// An option that is a duration and is checked when the function runs.
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

    /// A `ttl` that is known now was checked already; a constant is checked while the user's crate is compiled, and
    /// anything else when the function runs.
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
        // `cargo check` evaluates an item, so that the mistake is found early; but an item cannot name what is generic, so
        // there an inline constant stands, which only a build evaluates.
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

    /// `wait` as the user wrote it.
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

    /// `let __named0 = &(order.id);`, so that nothing is moved; but a method that takes it gets the value.
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

    /// One `let` for each value, under the name by which the user's own literal captures it.
    fn captured(&self, key: &Formatted) -> Vec<TokenStream> {
        if self.for_editor || !key.is_verbatim {
            return Vec::new();
        }
        key.parts.iter().map(|part| self.capture(part)).collect()
    }

    /// A value under the name that the literal captures. An integer stands in the key as it is: without a call the
    /// compiler has less to do for each function. The type is named, because the text of a user's own type called `u64`
    /// could be anything: with such a type this does not compile.
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
    fn given(&self, key: &Formatted) -> Option<TokenStream> {
        let parts = key.parts.iter().map(|part| {
            let (name, value) = (&part.name, self.part(part));
            quote_spanned!(part.span=> , #name = #value)
        });
        (!key.is_verbatim && !self.for_editor).then(|| parts.collect())
    }

    /// One value, escaped for its place in the key.
    fn part(&self, part: &Part) -> TokenStream {
        let Part { references, escaped, place, is_integer, span, .. } = part;
        let (private, root, way) = (self.private_at(*span), root(part), way(part));
        let referred = std::iter::repeat_n(quote_spanned!(*span=> *), *references);
        let value = quote_spanned!(*span=> #(#referred)* #root #way);
        if *is_integer {
            return quote_spanned!(*span=> #private::integer(&#value));
        }
        // Of a value in a path, a slash is encoded in any case.
        let escaped = escaped.iter().filter(|c| **c != '/' || *place != Place::InSegment);
        let escaped: Vec<Literal> = escaped.map(|c| self.located(Literal::character(*c))).collect();
        match (place, escaped.as_slice()) {
            (Place::Segment, _) => quote_spanned!(*span=> #private::part(&#value).segment()),
            (Place::Subpath, _) => quote_spanned!(*span=> #private::part(&#value).subpath()),
            (Place::InSegment, escaped) => quote_spanned!(*span=> #private::part(&#value).in_segment(&[#(#escaped),*])),
            // Nothing follows the value, so nothing needs to be escaped but `%`, and `escaped` escapes that in any
            // case.
            (Place::InKey, []) => quote_spanned!(*span=> #private::part(&#value).escaped('%')),
            (Place::InKey, [only]) => quote_spanned!(*span=> #private::part(&#value).escaped(#only)),
            (Place::InKey, several) => quote_spanned!(*span=> #private::part(&#value).escaped_all(&[#(#several),*])),
        }
    }

    /// Whether the path is the name of an argument, and so no constant.
    fn is_argument(&self, path: &ExprPath) -> bool {
        path.path.get_ident().is_some_and(|name| self.lock.bindings.iter().any(|binding| binding.ident == *name))
    }

    /// Whether the path may depend on what the function or its `impl` is generic over. Of the `impl` nothing is seen here:
    /// `Config::TTL` may be a constant of a type or of a parameter, so only modules are known not to be parameters.
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

/// `.setter(value)`, reported at the value.
fn given(setter: &str, value: &impl ToTokens) -> TokenStream {
    let span = at(value.span());
    let setter = Ident::new(setter, span);
    quote_spanned!(span=> .#setter(#value))
}

/// Whole milliseconds, as the generated code says them.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
