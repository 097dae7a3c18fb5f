//! Rules for an annotated function and its options, which are applied before code is generated: one function per rule.
//!
//! This module contains every rule that needs more than the text of one option, whether it rejects (`requirements`,
//! `contradictions`) or warns (`warnings`). The facts are collected in `analyze`. The result is a [`Lock`], from which
//! `expand` can generate code without finding a mistake.

mod contradictions;
mod defaults;
mod misspelt;
mod recursion;
mod requirements;
mod warnings;

pub(crate) use self::defaults::{check_defaults, read_block, report_unused_defaults};
pub(crate) use self::warnings::Warning;

use self::warnings::Checked;
use crate::analyze::bindings::Binding;
use crate::analyze::form::{self, Form};
use crate::analyze::item::{self, Function};
use crate::analyze::key::{self, Key};
use crate::analyze::mentions::Mentions;
use crate::errors::Errors;
use crate::options::Options;
use quote::ToTokens;
use syn::Type;

/// Function that can be locked, with everything that is known about it.
pub(crate) struct Lock {
    pub(crate) options: Options,
    pub(crate) function: Function,
    pub(crate) key: Key,
    pub(crate) form: Form,
    /// Variables that the body sees.
    pub(crate) bindings: Vec<Binding>,
    /// Output type of the function when it is awaited.
    pub(crate) output: Type,
    pub(crate) warnings: Vec<Warning>,
    /// Names that the attribute uses outside the body.
    pub(crate) in_options: Mentions,
    /// Names that the body uses.
    pub(crate) in_body: Mentions,
}

/// Applies every rule. Returns `None` if nothing can be expanded. Every mistake is added to `errors`.
pub(crate) fn check(options: Options, function: Function, errors: &mut Errors) -> Option<Lock> {
    let (form, bindings) = form::read(&function, options.guard.is_some());
    let output = form::read_output(&function, form.as_ref());
    requirements::report_function_that_cannot_wait(&function, form.as_ref(), errors);
    requirements::report_unit_output(&options, &function, form.as_ref(), &output, errors);
    contradictions::check(&options, &function, form.as_ref(), &bindings, &output, errors);
    misspelt::check(&options, &bindings, errors);
    requirements::report_second_attribute(&options, &function, errors);
    requirements::report_default_with_self(&options, &function, errors);
    requirements::report_unnamed_guard(&options, &function, form.as_ref(), &bindings, errors);
    requirements::report_unfenced_guard(&options, &function, errors);
    let template = requirements::key_or_report(&options, &function, &bindings, errors)?;
    let key = key::read(template, &function.signature.ident, &bindings, errors)?;
    requirements::report_ambiguous_argument(&key, &function, errors);
    contradictions::report_constant_with_arguments(&options, &key, errors);
    let form = form?;
    let mut in_options = Mentions::from_options(&options);
    let in_body = Mentions::from_tokens(form.body(&function).stream());
    let warnings = warnings::check(&Checked {
        options: &options,
        function: &function,
        form: &form,
        bindings: &bindings,
        key: &key,
        in_options: &in_options,
        in_body: &in_body,
    });
    key.add_mentions(&mut in_options);
    add_mentions_of_attributes(&function, &mut in_options);
    Some(Lock { options, function, key, form, bindings, output, warnings, in_options, in_body })
}

/// Adds the names that attributes below, which expand later, use.
fn add_mentions_of_attributes(function: &Function, mentions: &mut Mentions) {
    if function.is_rewritten() {
        mentions.add_everything();
    }
    for attribute in function.attributes.iter().filter(|attribute| item::is_lock(attribute)) {
        mentions.add(attribute.to_token_stream());
    }
}
