//! Generates the new body of the function: the acquisition, and then the user's body.

use super::editor::seen_by_an_editor;
use super::tokens::{after_statements, async_block, at, explicit_return, here};
use super::writer::Writer;
use crate::analyze::captures::{self, Arguments, Entry, Inside};
use crate::analyze::form::Form;
use crate::analyze::future::{self, Place, Returned};
use crate::analyze::item::{Function, with_contents};
use crate::check::{Lock, Warning};
use proc_macro2::{Group, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Pat, PatIdent, ReturnType, Signature, Type};

impl Writer<'_> {
    /// Generates the body, and the signature if it changes.
    pub(super) fn body(&self) -> (Option<Signature>, TokenStream) {
        let acquire = self.warn_and_acquire();
        let body = match &self.lock.form {
            Form::Async => {
                let body = &self.lock.function.body;
                let Arguments { changed, entries } = self.arguments();
                let boxes = self.boxes(&entries);
                let run = self.run(&self.body_with_arguments(body, &entries));
                return (changed, quote!(#acquire #boxes #run));
            }
            Form::Desugared(place) => {
                let entries = captures::from_variables(&self.lock.bindings, &self.names());
                let boxes = self.boxes(&entries);
                let run = self.run(&self.body_with_arguments(&place.group, &entries));
                place.fill(quote!(#acquire #boxes #run))
            }
            Form::Block(place) => {
                let made = place.fill(self.run(&self.block(place)));
                let made = after_statements(&with_contents(&self.lock.function.body, made));
                quote!(#acquire #made)
            }
            Form::LastBlock(place) => self.last_block(&acquire, place),
            Form::Future(returned) => self.any_future(&acquire, *returned),
        };
        (None, body)
    }

    /// Plans the arguments of an `async fn`. An editor gets the signature as written, so that nothing moves while the
    /// user types.
    fn arguments(&self) -> Arguments {
        if self.for_editor {
            return Arguments { changed: None, entries: Vec::new() };
        }
        captures::from_function(&self.lock.function.signature, &self.names())
    }

    /// Generates the code before the user's code: what an editor looks at, the warnings, and the acquisition.
    fn warn_and_acquire(&self) -> TokenStream {
        let seen = self.for_editor.then(|| seen_by_an_editor(&self.lock.options));
        let warnings = self.lock.warnings.iter().map(|warning| self.warn(warning));
        seen.into_iter().chain(warnings).chain([self.acquire()]).collect()
    }

    /// Generates the body of an `async fn`. Its future owns the arguments, so that they are dropped before the lock is
    /// released.
    fn body_with_arguments(&self, body: &Group, entries: &[Entry]) -> TokenStream {
        let entries = self.enter(entries);
        let edge = self.typed_dead_edge();
        let user = if self.is_value_hidden() { explicit_return(body) } else { after_statements(body) };
        async_block(true, body, quote!(#entries #edge #user))
    }

    /// Returns `true` if a lint that requires `return` at the end of a function does not fire at the end of the plain
    /// body: another attribute or a `macro_rules!` hides it, or it has no value. At the end of the async block, the
    /// lint would fire.
    fn is_value_hidden(&self) -> bool {
        let Lock { form, function, output, .. } = self.lock;
        let has_value = !matches!(output, Type::Tuple(output) if output.elems.is_empty());
        has_value && (matches!(form, Form::Desugared(_)) || function.has_hidden_value())
    }

    /// Generates the async block of a function that returns a future. The block captures its variables itself.
    fn block(&self, place: &Place) -> TokenStream {
        let edge = self.typed_dead_edge();
        let user = after_statements(&place.group);
        async_block(place.is_move(), &place.group, quote!(#edge #user))
    }

    /// Generates the async block of a function that a macro before the block may leave. The returned type can only be
    /// created from a future under the lock, so the function does not compile if it can be left early.
    fn last_block(&self, acquire: &TokenStream, place: &Place) -> TokenStream {
        let private = &self.private;
        let made = place.fill(self.run(&self.block(place)));
        let returned = match &self.lock.function.signature.output {
            ReturnType::Type(_, ty) => ty.to_token_stream(),
            ReturnType::Default => quote!(()),
        };
        let made = quote_spanned!(here()=> return #private::MadeLast({ #made }));
        quote_spanned!(here()=> #acquire return #private::call_once(move || -> #private::MadeLast<#returned> { #made }).0)
    }

    /// Generates the await of a future that the function creates in another way.
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
        // An early `return` would leave the function with a future that never acquires the lock. Inside a closure, it
        // passes the future to the code below.
        let made = if future::may_leave(made.clone()) {
            quote_spanned!(here()=> #private::call_once(move || #returning { #made }))
        } else {
            quote_spanned!(here()=> { #made })
        };
        quote_spanned!(here()=> #acquire let __future #annotated = #made; return #future)
    }

    /// Generates `let __unused0 = Box::new(amount);`.
    fn boxes(&self, entries: &[Entry]) -> TokenStream {
        let private = &self.private;
        let boxes = entries.iter().filter_map(|Entry { cfg, outside, boxed, .. }| {
            let boxed = boxed.as_ref()?;
            Some(quote_spanned!(here()=> #(#cfg)* let #boxed = #private::Box::new(#outside);))
        });
        boxes.collect()
    }

    /// Generates `let _ = (&last, .., &first);`, which captures the arguments in the drop order of a plain function,
    /// and then the locals of the body, as in `let (id, _) = __arg0;`.
    fn enter(&self, entries: &[Entry]) -> TokenStream {
        let captured = entries.iter().rev().filter(|entry| !entry.is_local).map(|entry| {
            let (cfg, taken) = (&entry.cfg, entry.taken());
            quote_spanned!(here()=> #(#cfg)* &#taken,)
        });
        let captured: TokenStream = captured.collect();
        let captured = (!captured.is_empty()).then(|| quote_spanned!(here()=> let _ = (#captured);));
        let replaced = entries.iter().filter(|entry| entry.is_changed).map(|entry| self.replaced(entry));
        captured.into_iter().chain(replaced).chain(entries.iter().map(|entry| self.bind(entry))).collect()
    }

    /// Generates a branch that is never taken and replaces the variable. It shows the compiler that the variable is
    /// dropped, and that the drop may read a value which the body assigns to a field.
    fn replaced(&self, entry: &Entry) -> TokenStream {
        let private = &self.private;
        let (cfg, variable) = (&entry.cfg, &entry.outside);
        quote_spanned! {here()=>
            #(#cfg)*
            if let #private::Some(__other) = #private::None {
                #variable = __other;
                let _ = &#variable;
            }
        }
    }

    /// Generates the binding of one entry.
    fn bind(&self, entry: &Entry) -> TokenStream {
        let Entry { cfg, is_local, inside, .. } = entry;
        let taken = entry.taken();
        let attributes = attributes_of(entry);
        // An `async move` block captures only the parts that a pattern binds. The other parts would be dropped after
        // the lock is released, so the whole variable is moved first.
        let mutability = entry.is_borrowed_mutably().then(|| quote_spanned!(here()=> mut));
        let moved = is_local.then(|| quote_spanned!(here()=> #(#cfg)* let #mutability #taken = #taken;));
        match inside {
            Inside::Nothing => moved.unwrap_or_default(),
            Inside::Unused(name) => quote_spanned!(here()=> #moved #attributes let #name = &#taken;),
            Inside::Pattern(Pat::Ident(pattern)) if pattern.by_ref.is_none() => {
                let used = self.used(entry, pattern);
                quote_spanned!(here()=> #attributes let #pattern = #taken; #used)
            }
            Inside::Pattern(pattern) => quote_spanned!(here()=> #moved #attributes let #pattern = #taken;),
        }
    }

    /// Generates `let _ = &id;`. The compiler then does not warn of an argument that only the key uses. Nor does it
    /// warn of a `mut` argument that is only assigned to. Behind a generated name, it does not see that `Drop` may use
    /// the value.
    fn used(&self, entry: &Entry, PatIdent { ident, mutability, .. }: &PatIdent) -> Option<TokenStream> {
        let cfg = &entry.cfg;
        let is_used = self.lock.in_options.contains_variable(&ident.unraw().to_string()) || mutability.is_some();
        is_used.then(|| quote_spanned!(here()=> #(#cfg)* let _ = &#ident;))
    }

    /// Generates a branch that is never taken and returns a value of the declared type. It tells the compiler the type
    /// before it reads the body. Otherwise `Ok(Box::new(x))` would not become a `Box<dyn Trait>`, and a wrong type
    /// would be reported at the attribute.
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

    /// Generates a warning: the use of a deprecated item at the user's token. A macro on stable Rust has no other way.
    fn warn(&self, Warning { span, message, only_if }: &Warning) -> TokenStream {
        let private = &self.private;
        let used = quote_spanned!(at(*span)=> distributed_lock);
        match only_if {
            None => quote_spanned! {here()=>
                const _: () = {
                    #[deprecated(note = #message)]
                    const fn distributed_lock() {}
                    #used()
                };
            },
            // Both types have the method, and it is deprecated only if the types are equal.
            Some(ty) => quote_spanned!(here()=> #private::Same::<Self, #ty>::TYPES.#used();),
        }
    }
}

/// Returns the attributes of a binding: the user's own, and an `allow` for lints that the generated code causes.
fn attributes_of(entry: &Entry) -> TokenStream {
    let Entry { cfg, lints, outside, inside, hides, .. } = entry;
    let hides = hides.then(|| quote_spanned!(here()=> #[allow(clippy::shadow_same, clippy::shadow_unrelated)]));
    // Clippy reports a binding whose name begins with `_` as a statement without effect.
    let is_silent = matches!(inside, Inside::Pattern(Pat::Ident(_))) && outside.unraw().to_string().starts_with('_');
    let silent = is_silent.then(|| quote_spanned!(here()=> #[allow(clippy::no_effect_underscore_binding)]));
    quote!(#(#cfg)* #(#lints)* #hides #silent)
}
