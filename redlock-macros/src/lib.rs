//! The attributes `#[distributed_lock]` and `#[distributed_lock_defaults]`.
//!
//! Depend on `redlock-runtime` instead of this crate. It re-exports both attributes, and documents every option and
//! every compile-time message. Each version of `redlock-runtime` requires exactly one version of this crate.

mod analyze;
mod check;
mod errors;
mod expand;
#[cfg(test)]
mod handlers;
mod keywords;
mod options;
#[cfg(test)]
mod snapshots;
mod template;

use crate::analyze::item::Function;
use crate::errors::Errors;
use proc_macro2::TokenStream;

#[cfg(not(fuzzing))]
#[expect(missing_docs, reason = "rustdoc would append it to the documentation of the re-export in `redlock-runtime`")]
#[proc_macro_attribute]
pub fn distributed_lock(options: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let options = TokenStream::from(options);
    // An editor looks at one function and does not list the others.
    let options_text = (cfg!(feature = "inventory") && !is_editor()).then(|| options.to_string());
    expand_lock(options, item.into(), is_editor(), options_text.as_deref()).into()
}

#[cfg(not(fuzzing))]
#[expect(missing_docs, reason = "rustdoc would append it to the documentation of the re-export in `redlock-runtime`")]
#[proc_macro_attribute]
pub fn distributed_lock_defaults(
    options: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    distributed_lock_defaults_tokens(&options.into(), item.into()).into()
}

/// Passes the options to each annotated function in the block. On a mistake, the block is kept, and its functions use
/// the options that could be read, so that no other errors follow.
fn distributed_lock_defaults_tokens(tokens: &TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let options = options::read_defaults(tokens.clone(), &mut errors);
    check::check_defaults(&options, &mut errors);
    let attribute = options.attribute.as_ref().map_or_else(|| "distributed_lock".to_owned(), ToString::to_string);
    let block = check::read_block(item.clone(), &mut errors);
    let item = block.map_or(item, |block| {
        let (item, count) = expand::with_defaults(&block, &attribute, tokens);
        check::report_unused_defaults(&block.kind, &attribute, count, &mut errors);
        item
    });
    [errors.into_compile_errors().unwrap_or_default(), item].into_iter().collect()
}

/// Returns `true` if the code is expanded for an editor, which does not run it. A `cfg` in the generated code would be
/// an alternative, but the compiler warns of a `cfg` with an unknown name.
#[cfg(not(fuzzing))]
fn is_editor() -> bool {
    std::env::current_exe().is_ok_and(|program| {
        program.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("rust-analyzer"))
    })
}

/// Expands the attribute: `options` reads it, `analyze` and `check` determine what it means for the function, and
/// `expand` writes the code.
///
/// On a mistake, the item is kept as written beside the errors, so that the compiler does not also report a missing
/// function.
///
/// With `options_text`, the text of the options, the function is registered in the list of the program's functions.
fn expand_lock(options: TokenStream, item: TokenStream, for_editor: bool, options_text: Option<&str>) -> TokenStream {
    let mut errors = Errors::default();
    let options = options::read(options, &mut errors);
    let seen = for_editor.then(|| expand::seen_by_an_editor(&options));
    let function = errors.ok(Function::read(item.clone()));
    let lock = function.and_then(|function| check::check(options, function, &mut errors));
    match (errors.into_compile_errors(), lock) {
        (None, Some(lock)) => expand::expand(&lock, for_editor, options_text),
        // The code for the editor comes first in the function, with or without a mistake. The editor then finds the
        // same position while a name is being typed.
        (errors, _) => {
            let function = expand::unlocked(item, seen.as_ref());
            let (first, second) = (errors.unwrap_or_default(), function);
            if for_editor { [second, first] } else { [first, second] }.into_iter().collect()
        }
    }
}

/// Entry point of the fuzz targets (`fuzz/`), which are built without a compiler that calls the attribute.
#[cfg(fuzzing)]
pub fn expanded(options: TokenStream, item: TokenStream) -> [TokenStream; 2] {
    [expand_lock(options.clone(), item.clone(), true, None), expand_lock(options, item, false, Some("said"))]
}

/// Entry point of the fuzz targets for a block of functions.
#[cfg(fuzzing)]
pub fn expanded_defaults(options: &TokenStream, item: TokenStream) -> TokenStream {
    distributed_lock_defaults_tokens(options, item)
}

/// Expands the attribute for a program that does not list its functions.
#[cfg(test)]
fn distributed_lock_tokens(options: TokenStream, item: TokenStream, for_editor: bool) -> TokenStream {
    expand_lock(options, item, for_editor, None)
}
