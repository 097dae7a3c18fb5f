//! Options that contradict each other or the function: one function per rule.

use crate::analyze::bindings::Binding;
use crate::analyze::form::Form;
use crate::analyze::item::Function;
use crate::analyze::key::Key;
use crate::analyze::output;
use crate::errors::Errors;
use crate::options::Time;
use crate::options::{Contended, Failed, Lost, Mode, Options, Release, Waiting};
use proc_macro2::Ident;
use std::time::Duration;
use syn::Type;
use syn::ext::IdentExt;

/// Applies every rule.
pub(super) fn check(
    options: &Options,
    function: &Function,
    form: Option<&Form>,
    bindings: &[Binding],
    output: &Type,
    errors: &mut Errors,
) {
    check_options(options, errors);
    who_does_not_wait_has_no_place(options, errors);
    guard_is_a_new_name(options, function, bindings, errors);
    guard_is_seen_by_the_body(options, form, errors);
    fencing_token_is_read(options, errors);
    windows_have_a_length(options, errors);
    errors_are_not_handled_twice(options, output, errors);
}

/// Applies the rules that look at nothing but the options. What contradicts a default is told of the option that does,
/// because the default may be right for all other functions; and defaults that contradict each other are told at their
/// block alone.
pub(super) fn check_options(options: &Options, errors: &mut Errors) {
    let contradictions = [
        permits_have_no_mode(options),
        permits_are_no_mode_of_a_key(options),
        permits_have_one_key(options),
        permits_have_no_order(options),
        permits_are_no_single_run(options),
        permits_do_not_linger(options),
        windows_have_one_key(options),
        several_keys_do_not_linger(options),
        shared_locks_have_no_order(options),
        shared_keys_have_no_order(options),
        shared_locks_are_no_single_run(options),
        shared_locks_do_not_linger(options),
        path_is_the_key(options),
        max_hold_fits_into_the_lease(options),
        no_stale_token(options),
        windows_are_one_way_to_keep_a_key(options),
        kept_keys_do_not_linger(options, "min_hold"),
        kept_keys_do_not_linger(options, "once_per"),
        confirmed_releases_do_not_linger(options),
        fencing_tokens_grow_within_one_key(options),
        windows_are_somebodys(options),
        windows_are_run_once(options),
        who_waits_for_ever_is_never_contended(options),
    ];
    for (names, message) in contradictions.into_iter().flatten() {
        let (defaults, own): (Vec<&Ident>, Vec<&Ident>) = names.into_iter().partition(|name| options.is_default(name));
        let source = defaults.first().map(|name| format!(" (`{name}` comes from the defaults around)"));
        for name in own {
            errors.at(name.span(), message.clone() + source.as_deref().unwrap_or_default());
        }
    }
}

/// Options that cannot be meant together, and why.
type Contradiction<'a> = (Vec<&'a Ident>, String);

/// The names of two options, if both are given.
fn both<'a>(options: &'a Options, one: &str, other: &str) -> Option<Vec<&'a Ident>> {
    Some(vec![options.name(one)?, options.name(other)?])
}

fn permits_have_no_mode(options: &Options) -> Option<Contradiction<'_>> {
    let message = "`permits` and `mode` are two kinds of lock: keep one";
    Some((both(options, "permits", "mode")?, message.into()))
}

/// A list of one key that says as what it is locked.
fn permits_are_no_mode_of_a_key(options: &Options) -> Option<Contradiction<'_>> {
    let mode = options.key.as_ref().filter(|key| key.is_one_key())?.first.mode?;
    let message = format!("`permits` and `{}(..)` are two kinds of lock: keep one", mode.name());
    Some((both(options, "permits", "key")?, message))
}

fn permits_have_one_key(options: &Options) -> Option<Contradiction<'_>> {
    let several = several(options)?;
    Some((
        vec![options.name("permits")?, several],
        format!("`permits` and {} are two kinds of lock: keep one", what(options)),
    ))
}

fn permits_have_no_order(options: &Options) -> Option<Contradiction<'_>> {
    let message = "calls with `permits` overlap, so a fencing token orders nothing: leave one out";
    Some((both(options, "permits", "fencing")?, message.into()))
}

fn permits_are_no_single_run(options: &Options) -> Option<Contradiction<'_>> {
    let message = "`once_per` runs once in each window, and calls with `permits` overlap: leave one out";
    Some((both(options, "permits", "once_per")?, message.into()))
}

fn permits_do_not_linger(options: &Options) -> Option<Contradiction<'_>> {
    let message =
        "`linger` leaves the lock to the next call of this process, and a permit is left to nobody: leave one out";
    Some((both(options, "permits", "linger").filter(|_| lingers(options))?, message.into()))
}

/// A window has a number in its key.
fn windows_have_one_key(options: &Options) -> Option<Contradiction<'_>> {
    let message = format!("`once_per` numbers the windows of one key, and {} is none: leave one out", what(options));
    Some((vec![several(options)?, options.name("once_per")?], message))
}

fn several_keys_do_not_linger(options: &Options) -> Option<Contradiction<'_>> {
    let message = format!(
        "`linger` leaves one key to the next call of this process, and {} is given back at once: leave one out",
        what(options)
    );
    Some((vec![several(options)?, options.name("linger").filter(|_| lingers(options))?], message))
}

/// The option by which more than one key is locked, or a path.
fn several(options: &Options) -> Option<&Ident> {
    let key = options.key.as_ref().filter(|key| !key.is_one_key())?;
    options.name(if key.first.is_path { "path" } else { "key" })
}

/// What that is called.
fn what(options: &Options) -> &'static str {
    if options.key.as_ref().is_some_and(|key| key.first.is_path) { "a path" } else { "a list of keys" }
}

/// A list in which each key says that it is shared.
fn shared_keys_have_no_order(options: &Options) -> Option<Contradiction<'_>> {
    let is_shared = options.mode == Mode::Exclusive && options.is_shared();
    let message = "everything in this list is shared, so calls overlap and a fencing token orders nothing: leave `fencing` \
                   out, or have one of them exclusive";
    Some((
        vec![options.name("fencing")?, several(options).or_else(|| options.name("key")).filter(|_| is_shared)?],
        message.into(),
    ))
}

/// Numbers tell owners apart that come one after the other.
fn shared_locks_have_no_order(options: &Options) -> Option<Contradiction<'_>> {
    let message = "calls with `mode = shared` overlap, so a fencing token orders nothing: leave one out";
    Some((with_shared(options, "fencing")?, message.into()))
}

fn shared_locks_are_no_single_run(options: &Options) -> Option<Contradiction<'_>> {
    let message = "`once_per` runs once in each window, and calls with `mode = shared` overlap: leave one out";
    Some((with_shared(options, "once_per")?, message.into()))
}

fn shared_locks_do_not_linger(options: &Options) -> Option<Contradiction<'_>> {
    let message = "`linger` leaves the lock to the next call of this process, and a shared one is left to nobody: leave one \
                   out";
    Some((with_shared(options, "linger").filter(|_| lingers(options))?, message.into()))
}

/// The names of `mode` and of another option, if the mode is shared and the other one is given.
fn with_shared<'a>(options: &'a Options, other: &str) -> Option<Vec<&'a Ident>> {
    both(options, "mode", other).filter(|_| options.mode == Mode::Shared && options.is_shared())
}

fn path_is_the_key(options: &Options) -> Option<Contradiction<'_>> {
    Some((both(options, "path", "key")?, "`path` stands in the place of `key`: keep one".into()))
}

/// Without renewal the lease ends the lock before a longer `max_hold` could.
fn max_hold_fits_into_the_lease(options: &Options) -> Option<Contradiction<'_>> {
    let (Some(false), Some(Time::Literal(most)), Some(Time::Literal(ttl))) =
        (options.renew, &options.max_hold, &options.ttl)
    else {
        return None;
    };
    let message = format!(
        "without renewal the lock ends after its `ttl` of {ttl:?}, so a `max_hold` of {most:?} has no effect: leave it \
         out, or raise the `ttl`"
    );
    let name = options.name("max_hold")?;
    // Where `max_hold` is a default, the option that makes it senseless is the one to change.
    let own = ["renew", "ttl"].into_iter().find_map(|option| options.own_name(option));
    let own = own.filter(|_| options.is_default(name));
    (most > ttl).then_some((own.into_iter().chain([name]).collect(), message))
}

/// A fencing token protects only as long as its owner may have the lock.
fn no_stale_token(options: &Options) -> Option<Contradiction<'_>> {
    let message = "a body that goes on without the lock would write with a fencing token that is out of date: leave out \
                   `on_lost` or `fencing`";
    (options.on_lost == Lost::Continue).then_some((vec![options.name("fencing")?], message.into()))
}

fn windows_are_one_way_to_keep_a_key(options: &Options) -> Option<Contradiction<'_>> {
    let message = "`once_per` keeps the key of a window until that is over, and `min_hold` would for another time: keep \
                   one";
    Some((both(options, "once_per", "min_hold")?, message.into()))
}

/// A key that stays taken for everybody is of no use to the next call.
fn kept_keys_do_not_linger<'a>(options: &'a Options, keeps: &str) -> Option<Contradiction<'a>> {
    let message = format!(
        "`linger` leaves the lock to the next call of this process, and `{keeps}` keeps the key from all of them: keep one"
    );
    Some((both(options, "linger", keeps).filter(|_| lingers(options))?, message))
}

fn confirmed_releases_do_not_linger(options: &Options) -> Option<Contradiction<'_>> {
    let message =
        "`release = confirmed` waits until the nodes have the lock back, and `linger` keeps it from them: keep one";
    let is_confirmed = options.release == Release::Confirmed;
    Some((both(options, "linger", "release").filter(|_| is_confirmed && lingers(options))?, message.into()))
}

/// Whether the lock may linger, as far as is known: `linger = 0` says that it does not.
fn lingers(options: &Options) -> bool {
    !matches!(options.linger, None | Some(Time::Literal(Duration::ZERO)))
}

/// Each window has a key of its own, and with it a counter.
fn fencing_tokens_grow_within_one_key(options: &Options) -> Option<Contradiction<'_>> {
    let message = "`once_per` makes a key for each window, and fencing tokens grow only within one key: keep one";
    Some((both(options, "once_per", "fencing")?, message.into()))
}

/// Calls that come at the same moment can each find a node taken by another one.
fn windows_are_somebodys(options: &Options) -> Option<Contradiction<'_>> {
    let message = "with `wait = none`, calls that come at the same moment can each find nodes taken by the others, and the \
                   window is nobody's: leave `wait` out, which waits for a second at most";
    let names = both(options, "once_per", "wait").filter(|_| matches!(options.wait, Some(Waiting::None)))?;
    Some((names, message.into()))
}

/// A nested call would run again in the window of its caller. A default of a block says nothing for a function with windows.
fn windows_are_run_once(options: &Options) -> Option<Contradiction<'_>> {
    let message =
        "`once_per` runs once in each window, and `reentrant` would let a nested call run in it again: keep one";
    let names = both(options, "once_per", "reentrant")?;
    let is_own = options.own_name("reentrant").is_some();
    is_own.then(|| (names, message.into()))
}

/// `constant` beside a template with arguments.
pub(super) fn constant_keys_have_no_arguments(options: &Options, key: &Key, errors: &mut Errors) {
    let Some(word) = options.key.as_ref().and_then(|key| key.constant.as_ref()) else { return };
    if key.depends_on_the_call() {
        let message = "`constant` says that all calls have this key, and an argument stands in it: leave one out";
        errors.at(word.span(), message);
    }
}

/// What is said about windows without any.
fn windows_have_a_length(options: &Options, errors: &mut Errors) {
    if options.name("once_per").is_some() {
        return;
    }
    if let Some(name) = options.own_name("window_start") {
        errors.at(name.span(), "there are no windows that could start: write `once_per = \"1d\"` as well");
    }
    if let (Failed::GiveBack, Some(name)) = (options.on_failure, options.own_name("on_failure")) {
        let message = "without `once_per` a lock is given back in any case: leave it out, or write `once_per = \"15m\"` as \
                       well";
        errors.at(name.span(), message);
    }
}

/// `wait = none` beside a word for an order among calls that wait.
fn who_does_not_wait_has_no_place(options: &Options, errors: &mut Errors) {
    if let (Some(Waiting::None), Some(fair), Some(wait)) = (&options.wait, &options.fair, options.name("wait")) {
        let message = format!("with `wait = none` a call never stands in a queue, so `{fair}` could have no effect");
        errors.at(wait.span(), message);
    }
}

/// `on_contended` beside `wait = forever`, with which a call is never given up.
fn who_waits_for_ever_is_never_contended(options: &Options) -> Option<Contradiction<'_>> {
    let (Some(Waiting::Forever), Some(_)) = (&options.wait, &options.on_contended) else { return None };
    let message = "with `wait = forever` a call is never given up as contended: leave out `on_contended`, or limit the \
                   `wait`";
    let name = options.name("on_contended")?;
    // Where `on_contended` is a default, it is the `wait` that has to change.
    let names = if options.is_default(name) { both(options, "wait", "on_contended")? } else { vec![name] };
    Some((names, message.into()))
}

/// The name of the guard would hide an argument from the body.
fn guard_is_a_new_name(options: &Options, function: &Function, bindings: &[Binding], errors: &mut Errors) {
    let Some(guard) = &options.guard else { return };
    if bindings.iter().any(|binding| guard.unraw() == binding.name) {
        let function = &function.signature.ident;
        let message = format!("`{guard}` is an argument of `{function}` already: give the guard another name");
        errors.at(guard.span(), message);
    }
}

/// `guard` on a function whose body runs before the lock is there.
fn guard_is_seen_by_the_body(options: &Options, form: Option<&Form>, errors: &mut Errors) {
    if let (Some(guard), Some(Form::Future(_))) = (&options.guard, form) {
        let message = "this function makes its future before it has the lock, so nothing could use the guard: end it \
                       with `async move { .. }`";
        errors.at(guard.span(), message);
    }
}

/// `fencing` without `guard`, which alone has the token.
fn fencing_token_is_read(options: &Options, errors: &mut Errors) {
    if options.on_lost == Lost::Continue || options.is_shared() {
        // Another rule has refused it.
        return;
    }
    if let (true, None, Some(name)) = (options.is_fenced, &options.guard, options.name("fencing")) {
        let message = "nothing could read the fencing token: write `guard = lock` as well, and hand \
                       `lock.fencing_token()` to what is written in the body";
        errors.at(name.span(), message);
    }
}

/// `on_error` on a function whose return type already takes every `LockError` as it is. Of types that do not say so by
/// their names nothing can be known here.
fn errors_are_not_handled_twice(options: &Options, output: &Type, errors: &mut Errors) {
    let Some(name) =
        options.own_name("on_error").filter(|_| options.on_error.is_some() && output::carries_lock_error(output))
    else {
        return;
    };
    let mend = match options.on_contended {
        None | Some(Contended::Skip) => "leave it out, or write `on_contended = |error| ..` for a lock that is taken",
        Some(Contended::Handler(_)) => "leave it out",
    };
    errors
        .at(name.span(), format!("the return type carries every `LockError` by itself, so `on_error` is dead: {mend}"));
}
