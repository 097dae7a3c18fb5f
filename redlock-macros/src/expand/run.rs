//! Runs the body while the lock is held, and turns an error into the function's output.

use super::tokens::{at, here};
use super::writer::Writer;
use crate::analyze::form::Form;
use crate::check::Lock;
use crate::options::{Contended, Lost, Release};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote_spanned};
use syn::spanned::Spanned;
use syn::{ReturnType, Type};

impl Writer<'_> {
    /// Waits for the lock, runs `body` while it is held, and turns an error into the function's output.
    pub(super) fn run(&self, body: &TokenStream) -> TokenStream {
        if self.lock.options.is_ordinary() { self.run_ordinary(body) } else { self.run_with_options(body) }
    }

    /// The code of most functions: one call and one await, because every function pays for each of them at compile
    /// time.
    fn run_ordinary(&self, body: &TokenStream) -> TokenStream {
        let private = &self.private;
        let declared = &self.lock.output;
        let span = at(declared.span());
        let private_at_output = self.private_at(span);
        let failed = quote_spanned!(span=> #private_at_output::from_lock_error::<#declared>);
        let returned = self.returned();
        let run = quote_spanned!(here()=> #private::locked(__acquire, #body, #failed).await);
        // Where a variable stands between the body and the end of the function, the compiler reports there what does not
        // live as long as the signature says, and not in the body.
        let Some(allowed) = self.allowed() else { return quote_spanned!(here()=> #returned #run) };
        let typed = self.typed(ToTokens::to_token_stream);
        quote_spanned! {here()=>
            #allowed
            let __output #typed = #run;
            #returned __output
        }
    }

    /// `return` before what the function gives: a lint that asks for it would fire in the generated code. What `#[async_trait]` has
    /// made of the body is the value of a variable, and what gives `!` has nothing to return.
    fn returned(&self) -> Option<TokenStream> {
        let is_never = |ty: &Type| matches!(ty, Type::Never(_));
        let gives_never = matches!(&self.lock.function.signature.output, ReturnType::Type(_, ty) if is_never(ty));
        let returns = !matches!(self.lock.form, Form::Desugared(_)) && !gives_never;
        returns.then(|| quote_spanned!(here()=> return))
    }

    /// `: Type` behind the name of a variable: with the type of the signature, what does not live long enough is reported
    /// in the body.
    fn typed(&self, ty: impl Fn(&Type) -> TokenStream) -> Option<TokenStream> {
        let declared = &self.lock.output;
        let is_known = !matches!(declared, Type::Infer(_));
        is_known.then(|| {
            let ty = ty(declared);
            quote_spanned!(here()=> : #ty)
        })
    }

    /// The same in steps, so that each option can change one of them.
    fn run_with_options(&self, body: &TokenStream) -> TokenStream {
        let private = &self.private;
        let (guard, held, failure, release) = (self.guard(), self.hold(body), self.failure(), self.release());
        let (contended, failed) = (self.contended(), self.failed());
        let (allowed, returned) = (self.allowed(), self.returned());
        // The compiler reports at this name when what the body returns does not live as long as the signature says, and
        // the signature has no name for how long that is.
        let output = quote_spanned!(at(self.lock.output.span())=> __output);
        let typed = self.typed(|declared| quote_spanned!(here()=> #private::Result<#declared, #private::LockError>));
        quote_spanned! {here()=>
            // If all of this stood inside of one `match`, the temporary of the `match` would stay in the future while
            // the body runs, and make it larger.
            let __outcome #typed = '__call: {
                let __guard = match __acquire.await {
                    #private::Ok(__guard) => __guard,
                    #private::Err(__error) => {
                        // The error is not made in the `break` itself, because attributes that parse with syn 2 take
                        // `'__call ::path` for a syntax error.
                        let __outcome = #private::Err(__error);
                        break '__call __outcome;
                    }
                };
                #guard
                #allowed
                let __outcome = #held.await;
                #failure
                #release
                __outcome
            };
            #returned match __outcome {
                #private::Ok(#output) => #output,
                #contended
                #private::Err(__error) => #failed,
            }
        }
    }

    /// An `allow` for the lint that the captures would set off and the user's code does not deserve. Only where it is
    /// needed, because under `#![forbid(warnings)]` an `allow` is itself an error.
    fn allowed(&self) -> Option<TokenStream> {
        let Lock { form, in_options, in_body, bindings, .. } = self.lock;
        let captures = matches!(form, Form::Async | Form::Desugared(_));
        let is_used = |name: &str| in_options.have_variable(name) || in_body.have_variable(name);
        let is_captured = bindings.iter().any(|binding| binding.name.starts_with('_') && is_used(&binding.name));
        (captures && is_captured).then(|| quote_spanned!(here()=> #[allow(clippy::used_underscore_binding)]))
    }

    /// `let lock = &__guard;`
    fn guard(&self) -> Option<TokenStream> {
        let name = self.lock.options.guard.as_ref()?;
        Some(quote_spanned!(here()=> let #name = &__guard;))
    }

    /// The future that runs the body, and stops it or not when the lock is lost.
    fn hold(&self, body: &TokenStream) -> TokenStream {
        let private = &self.private;
        let hold = match self.lock.options.on_lost {
            Lost::Cancel => quote_spanned!(here()=> #private::hold),
            Lost::Continue => quote_spanned!(here()=> #private::hold_through),
        };
        let shown = self.lock.options.guard.as_ref().map(|_| quote_spanned!(here()=> .with_guard()));
        quote_spanned!(here()=> #hold(&__guard, #body) #shown)
    }

    /// The window is given back when the body has failed.
    fn failure(&self) -> Option<TokenStream> {
        let span = at(self.lock.output.span());
        let private = self.private_at(span);
        self.lock
            .options
            .gives_windows_back()
            .then(|| quote_spanned!(span=> #private::give_back_if_failed(&__guard, &__outcome);))
    }

    /// The release that the call waits for. A release in the background needs no code, because the drop of the guard
    /// starts it.
    fn release(&self) -> Option<TokenStream> {
        let private = &self.private;
        let guard = if self.lock.options.is_fenced {
            quote_spanned!(here()=> __guard.into_guard())
        } else {
            quote_spanned!(here()=> __guard)
        };
        (self.lock.options.release == Release::Confirmed)
            .then(|| quote_spanned!(here()=> #private::release_confirmed(#guard).await;))
    }

    /// The arm for a lock that another call has.
    fn contended(&self) -> Option<TokenStream> {
        let output = &self.lock.output;
        let given = match self.lock.options.on_contended.as_ref()? {
            Contended::Skip => {
                let span = at(output.span());
                let private = self.private_at(span);
                quote_spanned!(span=> #private::skipped::<#output>())
            }
            Contended::Handler(handler) => self.handled(handler),
        };
        let private = &self.private;
        Some(quote_spanned!(here()=> #private::Err(__error) if __error.is_contended() => #given,))
    }

    /// The output for `__error`.
    fn failed(&self) -> TokenStream {
        let output = &self.lock.output;
        if let Some(handler) = &self.lock.options.on_error {
            return self.handled(handler);
        }
        let span = at(output.span());
        let private = self.private_at(span);
        quote_spanned!(span=> #private::from_lock_error::<#output>(__error))
    }

    /// What a handler of the user makes of `__error`.
    fn handled(&self, handler: &impl ToTokens) -> TokenStream {
        let output = &self.lock.output;
        let handler = self.user_tokens(handler);
        let span = at(handler.span());
        let private = self.private_at(span);
        quote_spanned!(span=> #private::handle_lock_error::<#output>(#handler, __error))
    }
}
