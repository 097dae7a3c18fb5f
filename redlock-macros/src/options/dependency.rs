//! Finds the name under which the compiled crate depends on `redlock-runtime`.
//!
//! The name is in the compiler's arguments: `--extern locks=/target/libredlock_runtime-1a2b.rmeta`. This works for
//! every build system, workspace, target and kind of dependency. A manifest has a dozen ways to write a dependency,
//! some of them in another file, and would need a TOML parser in every build. An editor's server has no such arguments,
//! so the usual name is used there.

use proc_macro2::{Ident, Span};
use std::sync::OnceLock;
use syn::{Path, PathSegment, Token};

/// Name of the dependency without a rename.
const USUAL: &str = "redlock_runtime";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Dependency {
    Usual,
    Renamed(String),
    /// Two versions, neither under the usual name.
    Several,
    /// Not among the dependencies.
    Missing,
}

/// Finds the dependency, once per compiler process.
pub(super) fn find() -> &'static Dependency {
    static FOUND: OnceLock<Dependency> = OnceLock::new();
    FOUND.get_or_init(|| {
        if std::env::var("CARGO_CRATE_NAME").is_ok_and(|name| name == USUAL) {
            return Dependency::Usual;
        }
        from_arguments(std::env::args_os().flat_map(|argument| expanded(&argument.to_string_lossy())))
    })
}

/// Creates the path `::name`.
pub(super) fn path(name: &str) -> Path {
    let name = PathSegment::from(Ident::new(name, Span::call_site()));
    Path { leading_colon: Some(<Token![::]>::default()), segments: [name].into_iter().collect() }
}

/// Returns the arguments in the file of `@file`, one per line. Any other argument is returned itself.
fn expanded(argument: &str) -> Vec<String> {
    let file = argument.strip_prefix('@').and_then(|path| std::fs::read_to_string(path).ok());
    file.map_or_else(|| vec![argument.to_owned()], |text| text.lines().map(ToOwned::to_owned).collect())
}

/// Reads the arguments of the compiler.
fn from_arguments(arguments: impl Iterator<Item = String>) -> Dependency {
    let mut renamed = None;
    let mut is_complete = false;
    let mut is_extern = false;
    for argument in arguments {
        // The file cannot be read.
        if argument.starts_with('@') {
            return Dependency::Usual;
        }
        let value = if is_extern { Some(argument.as_str()) } else { argument.strip_prefix("--extern=") };
        is_extern = argument == "--extern";
        let Some(value) = value else { continue };
        let (name, file) = value.split_once('=').unwrap_or((value, ""));
        let name = name.rsplit(':').next().unwrap_or(name);
        if name == USUAL {
            return Dependency::Usual;
        }
        is_complete |= !file.is_empty();
        if crate_of(file) == Some(USUAL) {
            if renamed.as_ref().is_some_and(|other| other != name) {
                return Dependency::Several;
            }
            renamed = Some(name.to_owned());
        }
    }
    match renamed {
        Some(name) => Dependency::Renamed(name),
        None if is_complete => Dependency::Missing,
        None => Dependency::Usual,
    }
}

/// Returns `redlock_runtime` for `/target/libredlock_runtime-1a2b.rmeta`.
fn crate_of(file: &str) -> Option<&str> {
    let file = file.rsplit(['/', '\\']).next()?;
    file.strip_prefix("lib")?.split(['-', '.']).next()
}

#[cfg(test)]
mod tests {
    use super::{Dependency, from_arguments};

    #[test]
    fn dependency_name_is_read_from_compiler_arguments() {
        let renamed = |name: &str| Dependency::Renamed(name.into());
        let table = [
            ("rustc --extern redlock_runtime=/t/libredlock_runtime-1a.rmeta", Dependency::Usual),
            ("rustc --extern locks=/t/libredlock_runtime-1a.rmeta --extern a=/t/liba-2.rlib", renamed("locks")),
            (
                "rustc --extern old=/t/libredlock_runtime-1.rlib --extern new=/t/libredlock_runtime-2.rlib",
                Dependency::Several,
            ),
            ("rustc --extern=locks=C:\\t\\libredlock_runtime.rlib", renamed("locks")),
            ("rustc --extern priv:locks=/t/libredlock_runtime-1a.rlib", renamed("locks")),
            (
                "rustc --extern locks=/t/libredlock_runtime-1.rlib --extern redlock_runtime=/t/libx.rlib",
                Dependency::Usual,
            ),
            ("rustc --extern base=/t/libbase-1a.rmeta", Dependency::Missing),
            ("rustc --extern redlock_runtime", Dependency::Usual),
            ("rustc --extern proc_macro", Dependency::Usual),
            ("rustc --extern base=/t/libbase-1a.rmeta @rest", Dependency::Usual),
            ("rust-analyzer-proc-macro-srv", Dependency::Usual),
        ];
        for (arguments, expected) in table {
            assert_eq!(from_arguments(arguments.split(' ').map(str::to_owned)), expected, "{arguments}");
        }
    }
}
