//! Generates the code that runs the body under the lock and converts errors to the function's output.

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
    /// Generates the code that waits for the lock, runs `body` under it, and converts an error to the function's
    /// output.
    pub(super) fn run(&self, body: &TokenStream) -> TokenStream {
        if self.lock.options.is_ordinary() { self.run_ordinary(body) } else { self.run_with_options(body) }
    }

    /// Generates the code of most functions: one call and one await. Every function pays for each of them at compile
    /// time.
    fn run_ordinary(&self, body: &TokenStream) -> TokenStream {
        let private = &self.private;
        let declared = &self.lock.output;
        let span = at(declared.span());
        let private_at_output = self.private_at(span);
        let failed = quote_spanned!(span=> <#declared as #private_at_output::FromLockError>::from_lock_error);
        let returned = self.returned();
        let run = quote_spanned!(here()=> #private::locked(__acquire, #body, #failed).await);
        // If a variable is between the body and the end of the function, the compiler reports a lifetime that is too
        // short at the variable, and not in the body.
        let Some(allowed) = self.allowed() else { return quote_spanned!(here()=> #returned #run) };
        let typed = self.typed(ToTokens::to_token_stream);
        quote_spanned! {here()=>
            #allowed
            let __output #typed = #run;
            #returned __output
        }
    }

    /// Generates the `return` before the output, because a lint that requires it would fire in the generated code. The
    /// body of `#[async_trait]` is the value of a variable, and a function of type `!` has no output.
    fn returned(&self) -> Option<TokenStream> {
        let is_never = |ty: &Type| matches!(ty, Type::Never(_));
        let gives_never = matches!(&self.lock.function.signature.output, ReturnType::Type(_, ty) if is_never(ty));
        let returns = !matches!(self.lock.form, Form::Desugared(_)) && !gives_never;
        returns.then(|| quote_spanned!(here()=> return))
    }

    /// Generates `: Type` after the name of a variable. The type of the signature makes the compiler report a lifetime
    /// that is too short in the body.
    fn typed(&self, ty: impl Fn(&Type) -> TokenStream) -> Option<TokenStream> {
        let declared = &self.lock.output;
        let is_known = !matches!(declared, Type::Infer(_));
        is_known.then(|| {
            let ty = ty(declared);
            quote_spanned!(here()=> : #ty)
        })
    }

    /// Generates the code in separate steps, which the options can change.
    fn run_with_options(&self, body: &TokenStream) -> TokenStream {
        let private = &self.private;
        let (guard, held, failure, release) = (self.guard(), self.hold(body), self.failure(), self.release());
        let (contended, failed) = (self.contended(), self.failed());
        let (allowed, returned) = (self.allowed(), self.returned());
        // If the signature has no name for a lifetime and the output does not live long enough, the compiler reports
        // the error at this name.
        let output = quote_spanned!(at(self.lock.output.span())=> __output);
        let typed = self.typed(|declared| quote_spanned!(here()=> #private::Result<#declared, #private::LockError>));
        quote_spanned! {here()=>
            // If all of this were inside one `match`, the temporary of the `match` would stay in the future while the
            // body runs. The future would be larger.
            let __outcome #typed = '__call: {
                let __guard = match __acquire.await {
                    #private::Ok(__guard) => __guard,
                    #private::Err(__error) => {
                        // The error is created before the `break`, because attributes that parse with syn 2 report
                        // `'__call ::path` as a syntax error.
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

    /// Generates an `allow` for the lint that the captures cause. Only if needed, because under `#![forbid(warnings)]`
    /// an `allow` is itself an error.
    fn allowed(&self) -> Option<TokenStream> {
        let Lock { form, in_options, in_body, bindings, .. } = self.lock;
        let captures = matches!(form, Form::Async | Form::Desugared(_));
        let is_used = |name: &str| in_options.contains_variable(name) || in_body.contains_variable(name);
        let is_captured = bindings.iter().any(|binding| binding.name.starts_with('_') && is_used(&binding.name));
        (captures && is_captured).then(|| quote_spanned!(here()=> #[allow(clippy::used_underscore_binding)]))
    }

    /// Generates `let lock = &__guard;`.
    fn guard(&self) -> Option<TokenStream> {
        let name = self.lock.options.guard.as_ref()?;
        Some(quote_spanned!(here()=> let #name = &__guard;))
    }

    /// Generates the future that runs the body, and cancels it if the lock is lost, unless `on_lost = continue`.
    fn hold(&self, body: &TokenStream) -> TokenStream {
        let private = &self.private;
        let hold = match self.lock.options.on_lost {
            Lost::Cancel => quote_spanned!(here()=> #private::hold),
            Lost::Continue => quote_spanned!(here()=> #private::hold_through),
        };
        let shown = self.lock.options.guard.as_ref().map(|_| quote_spanned!(here()=> .with_guard()));
        quote_spanned!(here()=> #hold(&__guard, #body) #shown)
    }

    /// Generates the return of the window if the body fails.
    fn failure(&self) -> Option<TokenStream> {
        let span = at(self.lock.output.span());
        let private = self.private_at(span);
        self.lock
            .options
            .returns_window_on_failure()
            .then(|| quote_spanned!(span=> #private::reopen_if_failed(&__guard, &__outcome);))
    }

    /// Generates the release that the call waits for. A release in the background needs no code, because dropping the
    /// guard starts it.
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

    /// Generates the arm for a lock that another call holds.
    fn contended(&self) -> Option<TokenStream> {
        let output = &self.lock.output;
        let given = match self.lock.options.on_contended.as_ref()? {
            Contended::Skip => {
                let span = at(output.span());
                let private = self.private_at(span);
                quote_spanned!(span=> <#output as #private::Skip>::skipped())
            }
            Contended::Handler(handler) => self.handled(handler),
        };
        let private = &self.private;
        Some(quote_spanned!(here()=> #private::Err(__error) if __error.is_contended() => #given,))
    }

    /// Generates the output for `__error`.
    fn failed(&self) -> TokenStream {
        let output = &self.lock.output;
        if let Some(handler) = &self.lock.options.on_error {
            return self.handled(handler);
        }
        let span = at(output.span());
        let private = self.private_at(span);
        quote_spanned!(span=> <#output as #private::FromLockError>::from_lock_error(__error))
    }

    /// Generates the call of a user's handler with `__error`.
    fn handled(&self, handler: &impl ToTokens) -> TokenStream {
        let output = &self.lock.output;
        let handler = self.user_tokens(handler);
        let span = at(handler.span());
        let private = self.private_at(span);
        quote_spanned!(span=> #private::handle_lock_error::<#output>(#handler, __error))
    }
}
