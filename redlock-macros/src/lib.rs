//! The `#[distributed_lock]` attribute. Depend on `redlock-runtime`, which re-exports it.

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
#[expect(missing_docs, reason = "rustdoc would append it to what `redlock-runtime` says where it exports this")]
#[proc_macro_attribute]
pub fn distributed_lock(options: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let options = TokenStream::from(options);
    // An editor looks at one function, and asks nobody where the others are.
    let said = (cfg!(feature = "inventory") && !is_editor()).then(|| options.to_string());
    expand_lock(options, item.into(), is_editor(), said.as_deref()).into()
}

#[cfg(not(fuzzing))]
#[expect(missing_docs, reason = "rustdoc would append it to what `redlock-runtime` says where it exports this")]
#[proc_macro_attribute]
pub fn distributed_lock_defaults(
    options: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    distributed_lock_defaults_tokens(&options.into(), item.into()).into()
}

/// Gives the options to each annotated function in the block. Whatever is wrong, the block stays, and its functions take
/// what could be read, so that nothing else is reported.
fn distributed_lock_defaults_tokens(tokens: &TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let options = options::read_defaults(tokens.clone(), &mut errors);
    check::check_defaults(&options, &mut errors);
    let attribute = options.attribute.as_ref().map_or_else(|| "distributed_lock".to_owned(), ToString::to_string);
    let block = check::read_block(item.clone(), &mut errors);
    let item = block.map_or(item, |block| {
        let (item, count) = expand::with_defaults(&block, &attribute, tokens);
        check::somebody_takes_them(&block.kind, &attribute, count, &mut errors);
        item
    });
    [errors.into_compile_errors().unwrap_or_default(), item].into_iter().collect()
}

/// Whether the code is expanded for an editor, to be looked at and not to be run. A `cfg` in the generated code could
/// tell the same, but the compiler warns of a `cfg` whose name it does not know.
#[cfg(not(fuzzing))]
fn is_editor() -> bool {
    std::env::current_exe().is_ok_and(|program| {
        program.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("rust-analyzer"))
    })
}

/// The whole way: `options` are read, `analyze` and `check` find out what they mean for the function, `expand` writes.
///
/// On any mistake the item stands as it was written beside the errors, so that the compiler does not report, on top of
/// them, that the function is missing.
///
/// With `said`, the text of the options, the function is listed among those of its program.
fn expand_lock(options: TokenStream, item: TokenStream, for_editor: bool, said: Option<&str>) -> TokenStream {
    let mut errors = Errors::default();
    let options = options::read(options, &mut errors);
    let seen = for_editor.then(|| expand::seen_by_an_editor(&options));
    let function = errors.ok(Function::read(item.clone()));
    let lock = function.and_then(|function| check::check(options, function, &mut errors));
    match (errors.into_compile_errors(), lock) {
        (None, Some(lock)) => expand::expand(&lock, for_editor, said),
        // What an editor sees comes first in the function, whether something is wrong or not: only then it finds the same
        // place while a name is being typed.
        (errors, _) => {
            let function = expand::unlocked(item, seen.as_ref());
            let (first, second) = (errors.unwrap_or_default(), function);
            if for_editor { [second, first] } else { [first, second] }.into_iter().collect()
        }
    }
}

/// What the fuzz targets call (`fuzz/`), which are built without a compiler that calls the attribute.
#[cfg(fuzzing)]
pub fn expanded(options: TokenStream, item: TokenStream) -> [TokenStream; 2] {
    [expand_lock(options.clone(), item.clone(), true, None), expand_lock(options, item, false, Some("said"))]
}

/// The same for a block whose functions take the options.
#[cfg(fuzzing)]
pub fn expanded_defaults(options: &TokenStream, item: TokenStream) -> TokenStream {
    distributed_lock_defaults_tokens(options, item)
}

/// The same for a program that does not list its functions.
#[cfg(test)]
fn distributed_lock_tokens(options: TokenStream, item: TokenStream, for_editor: bool) -> TokenStream {
    expand_lock(options, item, for_editor, None)
}
