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
    report_order_without_wait(options, errors);
    report_guard_named_as_argument(options, function, bindings, errors);
    report_guard_outside_of_body(options, form, errors);
    report_fencing_without_guard(options, errors);
    report_options_without_window(options, errors);
    report_needless_on_error(options, output, errors);
}

/// Applies the rules about the options alone. If an option contradicts a default, only the option is reported, because
/// the default may be right for the other functions. Contradicting defaults are reported at their block.
pub(super) fn check_options(options: &Options, errors: &mut Errors) {
    let contradictions = [
        permits_and_mode(options),
        permits_and_mode_of_key(options),
        permits_and_several_keys(options),
        permits_and_fencing(options),
        permits_and_once_per(options),
        permits_and_linger(options),
        once_per_and_several_keys(options),
        linger_and_several_keys(options),
        shared_mode_and_fencing(options),
        shared_list_and_fencing(options),
        shared_mode_and_once_per(options),
        shared_mode_and_linger(options),
        path_and_key(options),
        max_hold_above_ttl(options),
        fencing_after_loss(options),
        once_per_and_min_hold(options),
        linger_and_kept_key(options, "min_hold"),
        linger_and_kept_key(options, "once_per"),
        linger_and_confirmed_release(options),
        once_per_and_fencing(options),
        once_per_without_wait(options),
        once_per_and_reentrant(options),
        on_contended_and_endless_wait(options),
    ];
    for (names, message) in contradictions.into_iter().flatten() {
        let (defaults, own): (Vec<&Ident>, Vec<&Ident>) = names.into_iter().partition(|name| options.is_default(name));
        let source =
            defaults.first().map(|name| format!(" (`{name}` comes from the defaults of the surrounding block)"));
        for name in own {
            errors.at(name.span(), message.clone() + source.as_deref().unwrap_or_default());
        }
    }
}

/// Options that contradict each other, and the message.
type Contradiction<'a> = (Vec<&'a Ident>, String);

/// Returns the names of two options if both are given.
fn both<'a>(options: &'a Options, one: &str, other: &str) -> Option<Vec<&'a Ident>> {
    Some(vec![options.name(one)?, options.name(other)?])
}

fn permits_and_mode(options: &Options) -> Option<Contradiction<'_>> {
    let message = "`permits` (a semaphore) cannot be combined with `mode` (readers and a writer): remove one of the \
                   two";
    Some((both(options, "permits", "mode")?, message.into()))
}

/// A list of one key with a mode of its own.
fn permits_and_mode_of_key(options: &Options) -> Option<Contradiction<'_>> {
    let mode = options.key.as_ref().filter(|key| key.is_one_key())?.first.mode?;
    let message = format!(
        "`permits` (a semaphore) cannot be combined with `{}(..)` (readers and a writer): remove one of the two",
        mode.name()
    );
    Some((both(options, "permits", "key")?, message))
}

fn permits_and_several_keys(options: &Options) -> Option<Contradiction<'_>> {
    let several = several(options)?;
    Some((
        vec![options.name("permits")?, several],
        format!(
            "`permits` (a semaphore) needs a single key and cannot be combined with {}: remove one of the two",
            kind_of_key(options)
        ),
    ))
}

fn permits_and_fencing(options: &Options) -> Option<Contradiction<'_>> {
    let message = "calls with `permits` overlap, so fencing tokens cannot order their writes: remove one of the two";
    Some((both(options, "permits", "fencing")?, message.into()))
}

fn permits_and_once_per(options: &Options) -> Option<Contradiction<'_>> {
    let message = "`once_per` runs the function once in each window, but calls with `permits` run at the same time: \
                   remove one of the two";
    Some((both(options, "permits", "once_per")?, message.into()))
}

fn permits_and_linger(options: &Options) -> Option<Contradiction<'_>> {
    let message =
        "`linger` keeps the lock for the next call of this process, but a permit is never kept: remove one of the two";
    Some((both(options, "permits", "linger").filter(|_| lingers(options))?, message.into()))
}

/// The key of a window contains its number.
fn once_per_and_several_keys(options: &Options) -> Option<Contradiction<'_>> {
    let message = format!(
        "`once_per` needs a single key and cannot be combined with {}: remove one of the two",
        kind_of_key(options)
    );
    Some((vec![several(options)?, options.name("once_per")?], message))
}

fn linger_and_several_keys(options: &Options) -> Option<Contradiction<'_>> {
    let message = format!(
        "`linger` keeps a single key for the next call of this process, but {} is released at once: remove one of the \
         two",
        kind_of_key(options)
    );
    Some((vec![several(options)?, options.name("linger").filter(|_| lingers(options))?], message))
}

/// Returns the option that locks several keys or a path.
fn several(options: &Options) -> Option<&Ident> {
    let key = options.key.as_ref().filter(|key| !key.is_one_key())?;
    options.name(if key.first.is_path { "path" } else { "key" })
}

/// Describes the value of this option in a message.
fn kind_of_key(options: &Options) -> &'static str {
    if options.key.as_ref().is_some_and(|key| key.first.is_path) { "a path" } else { "a list of keys" }
}

/// A list in which each key is shared.
fn shared_list_and_fencing(options: &Options) -> Option<Contradiction<'_>> {
    let is_shared = options.mode == Mode::Exclusive && options.is_shared();
    let message = "every entry of this list is shared, so calls overlap and fencing tokens cannot order their writes: \
                   remove `fencing`, or make one entry exclusive";
    Some((
        vec![options.name("fencing")?, several(options).or_else(|| options.name("key")).filter(|_| is_shared)?],
        message.into(),
    ))
}

/// Fencing tokens order owners that follow each other.
fn shared_mode_and_fencing(options: &Options) -> Option<Contradiction<'_>> {
    let message = "calls with `mode = shared` overlap, so fencing tokens cannot order their writes: remove one of the \
                   two";
    Some((with_shared(options, "fencing")?, message.into()))
}

fn shared_mode_and_once_per(options: &Options) -> Option<Contradiction<'_>> {
    let message = "`once_per` runs the function once in each window, but calls with `mode = shared` run at the same \
                   time: remove one of the two";
    Some((with_shared(options, "once_per")?, message.into()))
}

fn shared_mode_and_linger(options: &Options) -> Option<Contradiction<'_>> {
    let message = "`linger` keeps the lock for the next call of this process, but a shared lock is never kept: remove \
                   one of the two";
    Some((with_shared(options, "linger").filter(|_| lingers(options))?, message.into()))
}

/// Returns the names of `mode` and of another option, if the mode is shared and the other option is given.
fn with_shared<'a>(options: &'a Options, other: &str) -> Option<Vec<&'a Ident>> {
    both(options, "mode", other).filter(|_| options.mode == Mode::Shared && options.is_shared())
}

fn path_and_key(options: &Options) -> Option<Contradiction<'_>> {
    Some((both(options, "path", "key")?, "`path` replaces `key`: remove one of the two".into()))
}

/// Without renewal, the lease ends before a longer `max_hold`.
fn max_hold_above_ttl(options: &Options) -> Option<Contradiction<'_>> {
    let (Some(false), Some(Time::Literal(most)), Some(Time::Literal(ttl))) =
        (options.renew, &options.max_hold, &options.ttl)
    else {
        return None;
    };
    let message = format!(
        "without renewal the lock ends after its `ttl` of {ttl:?}, so a `max_hold` of {most:?} has no effect: remove \
         `max_hold`, or increase the `ttl`"
    );
    let name = options.name("max_hold")?;
    // If `max_hold` is a default, the function's own option must change.
    let own = ["renew", "ttl"].into_iter().find_map(|option| options.own_name(option));
    let own = own.filter(|_| options.is_default(name));
    (most > ttl).then_some((own.into_iter().chain([name]).collect(), message))
}

/// A fencing token protects only while its owner may hold the lock.
fn fencing_after_loss(options: &Options) -> Option<Contradiction<'_>> {
    let message = "with `on_lost = continue` the body keeps running after the lock is lost, and writes with an \
                   outdated fencing token: remove `on_lost` or `fencing`";
    (options.on_lost == Lost::Continue).then_some((vec![options.name("fencing")?], message.into()))
}

fn once_per_and_min_hold(options: &Options) -> Option<Contradiction<'_>> {
    let message = "`once_per` keeps the key of each window, but `min_hold` would keep the key for a different time: \
                   remove one of the two";
    Some((both(options, "once_per", "min_hold")?, message.into()))
}

/// A key that stays locked for all calls is of no use to the next call.
fn linger_and_kept_key<'a>(options: &'a Options, keeps: &str) -> Option<Contradiction<'a>> {
    let message = format!(
        "`linger` keeps the lock for the next call of this process, but `{keeps}` keeps the key locked for all calls: \
         remove one of the two"
    );
    Some((both(options, "linger", keeps).filter(|_| lingers(options))?, message))
}

fn linger_and_confirmed_release(options: &Options) -> Option<Contradiction<'_>> {
    let message = "`release = confirmed` waits until the nodes have released the lock, but `linger` delays the \
                   release: remove one of the two";
    let is_confirmed = options.release == Release::Confirmed;
    Some((both(options, "linger", "release").filter(|_| is_confirmed && lingers(options))?, message.into()))
}

/// Returns `true` if the lock may linger. `linger = 0` turns it off.
fn lingers(options: &Options) -> bool {
    !matches!(options.linger, None | Some(Time::Literal(Duration::ZERO)))
}

/// Each window has a key of its own, and a separate counter of tokens.
fn once_per_and_fencing(options: &Options) -> Option<Contradiction<'_>> {
    let message = "`once_per` uses a separate key for each window, but fencing tokens increase only within one key: \
                   remove one of the two";
    Some((both(options, "once_per", "fencing")?, message.into()))
}

/// Calls that start at the same moment can each find a node taken by another one.
fn once_per_without_wait(options: &Options) -> Option<Contradiction<'_>> {
    let message = "with `wait = none`, calls that start at the same moment can each take some of the nodes, so that \
                   no call gets the window: remove `wait`, so that a call waits for one second at most";
    let names = both(options, "once_per", "wait").filter(|_| matches!(options.wait, Some(Waiting::None)))?;
    Some((names, message.into()))
}

/// A nested call would run again in the window of its caller. A default of a block does not apply to functions with
/// windows.
fn once_per_and_reentrant(options: &Options) -> Option<Contradiction<'_>> {
    let message = "`once_per` runs the function once in each window, but `reentrant` would let a nested call run in \
                   the same window: remove one of the two";
    let names = both(options, "once_per", "reentrant")?;
    let is_own = options.own_name("reentrant").is_some();
    is_own.then(|| (names, message.into()))
}

/// Reports `constant` for a template with arguments.
pub(super) fn report_constant_with_arguments(options: &Options, key: &Key, errors: &mut Errors) {
    let Some(word) = options.key.as_ref().and_then(|key| key.constant.as_ref()) else { return };
    if key.depends_on_the_call() {
        let message = "`constant` means that all calls have the same key, but this key contains an argument: remove \
                       one of the two";
        errors.at(word.span(), message);
    }
}

/// Reports options of windows without `once_per`.
fn report_options_without_window(options: &Options, errors: &mut Errors) {
    if options.name("once_per").is_some() {
        return;
    }
    if let Some(name) = options.own_name("window_start") {
        errors.at(
            name.span(),
            "`window_start` has no effect without `once_per`: write `once_per = \"1d\"` as well, or remove \
             `window_start`",
        );
    }
    if let (Failed::Reopen, Some(name)) = (options.on_failure, options.own_name("on_failure")) {
        let message = "`on_failure = reopen` has no effect without `once_per`, because a lock without a window is \
                       always released: remove it, or write `once_per = \"15m\"` as well";
        errors.at(name.span(), message);
    }
}

/// Reports `wait = none` together with an order of waiting calls.
fn report_order_without_wait(options: &Options, errors: &mut Errors) {
    if let (Some(Waiting::None), Some(fair), Some(wait)) = (&options.wait, &options.fair, options.name("wait")) {
        let message = format!("with `wait = none` a call never waits in a queue, so `{fair}` would have no effect");
        errors.at(wait.span(), message);
    }
}

/// `on_contended` with `wait = forever`: such a call never fails because the lock is taken.
fn on_contended_and_endless_wait(options: &Options) -> Option<Contradiction<'_>> {
    let (Some(Waiting::Forever), Some(_)) = (&options.wait, &options.on_contended) else { return None };
    let message = "with `wait = forever` a call waits until it has the lock, so `on_contended` is never used: remove \
                   it, or limit the wait, as in `wait = \"30s\"`";
    let name = options.name("on_contended")?;
    // If `on_contended` is a default, the function's `wait` must change.
    let names = if options.is_default(name) { both(options, "wait", "on_contended")? } else { vec![name] };
    Some((names, message.into()))
}

/// Reports a guard whose name would hide an argument.
fn report_guard_named_as_argument(options: &Options, function: &Function, bindings: &[Binding], errors: &mut Errors) {
    let Some(guard) = &options.guard else { return };
    if bindings.iter().any(|binding| guard.unraw() == binding.name) {
        let function = &function.signature.ident;
        let message = format!("`{guard}` is already an argument of `{function}`: give the guard another name");
        errors.at(guard.span(), message);
    }
}

/// Reports a guard on a function whose future is created before the lock is acquired.
fn report_guard_outside_of_body(options: &Options, form: Option<&Form>, errors: &mut Errors) {
    if let (Some(guard), Some(Form::Future(_))) = (&options.guard, form) {
        let message = "this function creates its future before it acquires the lock, so the future cannot use the \
                       guard: end the function with `async move { .. }`";
        errors.at(guard.span(), message);
    }
}

/// Reports `fencing` without a guard, which provides the token.
fn report_fencing_without_guard(options: &Options, errors: &mut Errors) {
    if options.on_lost == Lost::Continue || options.is_shared() {
        // Another rule reports these options.
        return;
    }
    if let (true, None, Some(name)) = (options.is_fenced, &options.guard, options.name("fencing")) {
        let message = "the body cannot read the fencing token without a guard: write `guard = lock` as well, and send \
                       `lock.fencing_token()` with each write";
        errors.at(name.span(), message);
    }
}

/// Reports `on_error` on a function whose return type already carries every `LockError`. Only types that show this by
/// name are checked.
fn report_needless_on_error(options: &Options, output: &Type, errors: &mut Errors) {
    let Some(name) =
        options.own_name("on_error").filter(|_| options.on_error.is_some() && output::carries_lock_error(output))
    else {
        return;
    };
    let remedy = match options.on_contended {
        None | Some(Contended::Skip) => {
            "remove it, or write `on_contended = |error| ..` to handle a lock that is already taken"
        }
        Some(Contended::Handler(_)) => "remove it",
    };
    errors.at(
        name.span(),
        format!("the return type already carries every `LockError`, so `on_error` is not needed: {remedy}"),
    );
}
