//! Table of the options: syntax, example and reader.

use super::key::{read_key, read_path};
use super::types::Options;
use super::values::{
    read_attribute, read_crate, read_fencing, read_guard, read_linger, read_manager, read_max_hold, read_min_hold,
    read_mode, read_on_contended, read_on_error, read_on_failure, read_on_lost, read_once_per, read_order_check,
    read_permits, read_reentrant, read_release, read_renew, read_ttl, read_wait, read_window_start,
};
use syn::parse::ParseStream;

/// Row of the table.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) example: &'static str,
    pub(super) form: Form,
    pub(super) read: fn(&mut Options, ParseStream<'_>) -> syn::Result<()>,
}

/// Syntax after the name of an option.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `= value`
    Value,
    /// `= value` or `(value, ..)`
    ValueOrList,
    /// Nothing.
    Flag,
}

/// Creates a row of the usual form, `name = value`.
const fn value(
    name: &'static str,
    example: &'static str,
    read: fn(&mut Options, ParseStream<'_>) -> syn::Result<()>,
) -> Row {
    Row { name, example, form: Form::Value, read }
}

/// All options, in the order of the messages.
pub(super) const OPTIONS: &[Row] = &[
    Row { form: Form::ValueOrList, ..value("key", "key = \"order:{order_id}\"", read_key) },
    Row { form: Form::ValueOrList, ..value("path", "path = \"/{tenant}/{folder}\"", read_path) },
    value("mode", "mode = shared", read_mode),
    value("permits", "permits = 4", read_permits),
    value("ttl", "ttl = 30", read_ttl),
    value("wait", "wait = \"5s\"", read_wait),
    value("renew", "renew = false", read_renew),
    value("max_hold", "max_hold = \"5m\"", read_max_hold),
    value("min_hold", "min_hold = \"5s\"", read_min_hold),
    value("linger", "linger = \"2s\"", read_linger),
    value("once_per", "once_per = \"15m\"", read_once_per),
    value("window_start", "window_start = \"6h\"", read_window_start),
    value("guard", "guard = lock", read_guard),
    Row { form: Form::Flag, ..value("fencing", "fencing", read_fencing) },
    Row { form: Form::Flag, ..value("reentrant", "reentrant", read_reentrant) },
    value("order_check", "order_check = off", read_order_check),
    value("on_contended", "on_contended = skip", read_on_contended),
    value("on_failure", "on_failure = reopen", read_on_failure),
    value("on_error", "on_error = |error| ..", read_on_error),
    value("on_lost", "on_lost = continue", read_on_lost),
    value("release", "release = confirmed", read_release),
    value("manager", "manager = self.locks", read_manager),
    value("crate", "crate = ::redlock_runtime", read_crate),
];

/// Option of the defaults: the name of the functions' attribute.
pub(super) const ATTRIBUTE: Row = value("attribute", "attribute = locked", read_attribute);
