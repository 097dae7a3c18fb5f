//! Rules for the defaults of a block.

use super::contradictions;
use crate::analyze::block::Block;
use crate::errors::Errors;
use crate::options::Options;
use proc_macro2::{Span, TokenStream, TokenTree};

/// Options that belong to a single function.
const OF_ONE: &[&str] = &["key", "path", "guard", "fencing"];

/// Applies the rules about the options alone.
pub(crate) fn check_defaults(options: &Options, errors: &mut Errors) {
    contradictions::check_options(options, errors);
    for name in OF_ONE.iter().filter_map(|option| options.own_name(option)) {
        let message = format!(
            "`{name}` belongs to a single function and cannot be a default: write it in the `#[distributed_lock]` of \
             that function"
        );
        errors.at(name.span(), message);
    }
    // A value without a name has its own message.
    if options.is_empty() && errors.is_empty() {
        errors.at(
            Span::call_site(),
            "`#[distributed_lock_defaults]` has no options: write at least one, as in `ttl = 10`",
        );
    }
}

/// Reads the block that contains the functions.
pub(crate) fn read_block(item: TokenStream, errors: &mut Errors) -> Option<Block> {
    Block::read(item).map_err(|found| report_other_item(found, errors)).ok()
}

/// Reports an item that is not a block, and where the attribute belongs.
fn report_other_item(found: Option<TokenTree>, errors: &mut Errors) {
    let is_elsewhere = found.as_ref().is_some_and(|word| word.to_string() == "mod");
    let place = if is_elsewhere {
        "the functions of this module are in another file, so put it on the blocks in that file"
    } else {
        "put it on the `impl`, `trait` or `mod` that contains them"
    };
    errors.on(found, format!("`#[distributed_lock_defaults]` applies to the functions inside a block: {place}"));
}

/// Reports defaults that no function uses.
pub(crate) fn report_unused_defaults(kind: &str, attribute: &str, count: usize, errors: &mut Errors) {
    if count == 0 {
        let message = format!(
            "no function in this `{kind}` has `#[{attribute}(..)]`, so these defaults have no effect: remove them, or \
             write the name of the attribute, as in `attribute = locked`"
        );
        errors.at(Span::call_site(), message);
    }
}
