//! Options that contradict each other or the function: one function per rule.

use super::Form;
use crate::analyze::bindings::Binding;
use crate::analyze::item::Function;
use crate::analyze::output;
use crate::errors::Errors;
use crate::options::duration::Time;
use crate::options::{Args, Contended, Lost, Waiting};
use proc_macro2::Ident;
use syn::Type;
use syn::ext::IdentExt;

/// Applies every rule.
pub(super) fn check(
    args: &Args,
    function: &Function,
    form: Option<&Form>,
    bindings: &[Binding],
    output: &Type,
    errors: &mut Errors,
) {
    let contradictions =
        [permits_have_no_mode(args), path_is_the_key(args), max_hold_fits_into_the_lease(args), no_stale_token(args)];
    let mut told = Vec::new();
    for (options, message) in contradictions.into_iter().flatten() {
        for option in options {
            errors.at(option.span(), args.complete_message(option, &message));
            told.push(option);
        }
    }
    args.refuse_unavailable(&told, errors);
    who_does_not_wait_has_no_place(args, errors);
    who_waits_for_ever_is_never_contended(args, errors);
    guard_is_a_new_name(args, function, bindings, errors);
    guard_is_seen_by_the_body(args, form, errors);
    fencing_token_is_read(args, errors);
    errors_are_not_handled_twice(args, output, errors);
}

/// Options that cannot be meant together, and why.
type Contradiction<'a> = (Vec<&'a Ident>, String);

fn both<'a>(args: &'a Args, one: &str, other: &str) -> Option<Vec<&'a Ident>> {
    Some(vec![args.name(one)?, args.name(other)?])
}

fn permits_have_no_mode(args: &Args) -> Option<Contradiction<'_>> {
    Some((both(args, "permits", "mode")?, "`permits` and `mode` are two kinds of lock: keep one".into()))
}

fn path_is_the_key(args: &Args) -> Option<Contradiction<'_>> {
    Some((both(args, "path", "key")?, "`path` stands in the place of `key`: keep one".into()))
}

fn max_hold_fits_into_the_lease(args: &Args) -> Option<Contradiction<'_>> {
    let (Some(false), Some(Time::Literal(most)), Some(Time::Literal(ttl))) = (args.renew, &args.max_hold, &args.ttl)
    else {
        return None;
    };
    let message = format!(
        "without renewal the lock ends after its `ttl` of {ttl:?}, so a `max_hold` of {most:?} has no effect: leave it \
         out, or raise the `ttl`"
    );
    (most > ttl).then_some((vec![args.name("max_hold")?], message))
}

fn no_stale_token(args: &Args) -> Option<Contradiction<'_>> {
    let message = "a body that goes on without the lock would write with a fencing token that is out of date: leave out \
                   `on_lost` or `fencing`";
    (args.on_lost == Lost::Continue).then_some((vec![args.name("fencing")?], message.into()))
}

fn who_does_not_wait_has_no_place(args: &Args, errors: &mut Errors) {
    if let (Some(Waiting::None), Some(fair), Some(wait)) = (&args.wait, &args.fair, args.name("wait")) {
        let message = format!("with `wait = none` a call never stands in a queue, so `{fair}` could have no effect");
        errors.at(wait.span(), message);
    }
}

fn who_waits_for_ever_is_never_contended(args: &Args, errors: &mut Errors) {
    if let (Some(Waiting::Forever), Some(_), Some(name)) = (&args.wait, &args.on_contended, args.name("on_contended")) {
        let message = "with `wait = forever` a call is never given up as contended: leave out `on_contended`, or limit \
                       the `wait`";
        errors.at(name.span(), message);
    }
}

fn guard_is_a_new_name(args: &Args, function: &Function, bindings: &[Binding], errors: &mut Errors) {
    let Some(guard) = &args.guard else { return };
    if bindings.iter().any(|binding| guard.unraw() == binding.name) {
        let function = &function.signature.ident;
        let message = format!("`{guard}` is an argument of `{function}` already: give the guard another name");
        errors.at(guard.span(), message);
    }
}

fn guard_is_seen_by_the_body(args: &Args, form: Option<&Form>, errors: &mut Errors) {
    if let (Some(guard), Some(Form::Future(_))) = (&args.guard, form) {
        let message = "this function makes its future before it has the lock, so nothing could use the guard: end it \
                       with `async move { .. }`";
        errors.at(guard.span(), message);
    }
}

fn fencing_token_is_read(args: &Args, errors: &mut Errors) {
    if args.on_lost == Lost::Continue {
        // Another rule has refused it.
        return;
    }
    if let (true, None, Some(name)) = (args.is_fenced, &args.guard, args.name("fencing")) {
        let message = "nothing could read the fencing token: write `guard = lock` as well, and hand \
                       `lock.fencing_token()` to what is written in the body";
        errors.at(name.span(), message);
    }
}

/// Only a type that says so can be known here.
fn errors_are_not_handled_twice(args: &Args, output: &Type, errors: &mut Errors) {
    let Some(name) = args.name("on_error").filter(|_| args.on_error.is_some() && output::carries_lock_error(output))
    else {
        return;
    };
    let mend = match args.on_contended {
        None | Some(Contended::Skip) => "leave it out, or write `on_contended = |error| ..` for a lock that is taken",
        Some(Contended::Handler(_)) => "leave it out",
    };
    errors
        .at(name.span(), format!("the return type carries every `LockError` by itself, so `on_error` is dead: {mend}"));
}
