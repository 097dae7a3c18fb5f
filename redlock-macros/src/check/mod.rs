//! What must be true of an annotated function and its options before anything is generated: one function per rule.
//!
//! Here belongs every rule that looks at more than the text of one option, whether it refuses (`requirements`,
//! `contradictions`) or warns (`warnings`). What the rules ask for is found out in `analyze`, and nothing here writes
//! code: what passes is a [`Lock`], of which `expand` can write the code without finding a mistake.

mod contradictions;
mod defaults;
mod misspelt;
mod recursion;
mod requirements;
mod warnings;

pub(crate) use self::defaults::{check_defaults, read_block, somebody_takes_them};
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

/// A function that can be locked.
pub(crate) struct Lock {
    pub(crate) options: Options,
    pub(crate) function: Function,
    pub(crate) key: Key,
    pub(crate) form: Form,
    /// The names that the body sees.
    pub(crate) bindings: Vec<Binding>,
    /// What the function gives when it is awaited.
    pub(crate) output: Type,
    pub(crate) warnings: Vec<Warning>,
    /// The names that the attribute uses outside of the body.
    pub(crate) in_options: Mentions,
    /// The names that the body uses.
    pub(crate) in_body: Mentions,
}

/// Applies every rule. `None` when a rule was broken that leaves nothing to expand; a broken rule is always in
/// `errors`.
pub(crate) fn check(options: Options, function: Function, errors: &mut Errors) -> Option<Lock> {
    let (form, bindings) = form::read(&function, options.guard.is_some());
    let output = form::read_output(&function, form.as_ref());
    requirements::function_can_wait(&function, form.as_ref(), errors);
    requirements::has_room_for_an_error(&options, &function, form.as_ref(), &output, errors);
    contradictions::check(&options, &function, form.as_ref(), &bindings, &output, errors);
    misspelt::check(&options, &bindings, errors);
    requirements::no_second_attribute_with_this_key(&options, &function, errors);
    requirements::defaults_fit_without_self(&options, &function, errors);
    requirements::guard_has_a_name(&options, &function, form.as_ref(), &bindings, errors);
    let template = requirements::has_key(&options, &function, &bindings, errors)?;
    let key = key::read(template, &function.signature.ident, &bindings, errors)?;
    requirements::key_names_one_argument(&key, &function, errors);
    contradictions::constant_keys_have_no_arguments(&options, &key, errors);
    let form = form?;
    let mut in_options = Mentions::of_options(&options);
    let in_body = Mentions::of(form.body(&function).stream());
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

/// Adds the names that the attributes below use, which expand later.
fn add_mentions_of_attributes(function: &Function, mentions: &mut Mentions) {
    if function.is_rewritten() {
        mentions.add_everything();
    }
    for attribute in function.attributes.iter().filter(|attribute| item::is_lock(attribute)) {
        mentions.add(attribute.to_token_stream());
    }
}
