//! What must be true of the defaults of a block.

use super::contradictions;
use crate::analyze::block::Block;
use crate::errors::Errors;
use crate::options::Options;
use proc_macro2::{Span, TokenStream, TokenTree};

/// The options that belong to one function.
const OF_ONE: &[&str] = &["key", "path", "guard", "fencing"];

/// Applies the rules that look at the options alone.
pub(crate) fn check_defaults(options: &Options, errors: &mut Errors) {
    contradictions::check_options(options, errors);
    for name in OF_ONE.iter().filter_map(|option| options.own_name(option)) {
        let message = format!("`{name}` belongs to one function: write it in the `#[distributed_lock]` there");
        errors.at(name.span(), message);
    }
    // A value without a name is told by itself.
    if options.is_empty() && errors.is_empty() {
        errors.at(Span::call_site(), "there are no defaults: write options, as in `ttl = 10`");
    }
}

/// The block around the functions.
pub(crate) fn read_block(item: TokenStream, errors: &mut Errors) -> Option<Block> {
    Block::read(item).map_err(|found| is_no_block(found, errors)).ok()
}

/// Says of anything that is no block where the attribute belongs.
fn is_no_block(found: Option<TokenTree>, errors: &mut Errors) {
    let is_elsewhere = found.as_ref().is_some_and(|word| word.to_string() == "mod");
    let place = if is_elsewhere {
        "the functions of this module stand in another file: put it on the blocks there"
    } else {
        "put it on the `impl`, the `trait` or the `mod` around them"
    };
    errors.on(found, format!("`#[distributed_lock_defaults]` is for the functions inside of a block: {place}"));
}

/// Defaults that no function takes.
pub(crate) fn somebody_takes_them(kind: &str, attribute: &str, count: usize, errors: &mut Errors) {
    if count == 0 {
        let message = format!(
            "no function in this `{kind}` has `#[{attribute}(..)]`, so nothing takes these defaults: leave them out, or \
             say by `attribute = ..` how the attribute is called here"
        );
        errors.at(Span::call_site(), message);
    }
}
