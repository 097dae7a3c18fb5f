//! The attribute causes no lint of the compiler, and none of any group of clippy.
//!
//! The files of `tests/ui` that compile are linted twice: as they are, and with an attribute of the same name that does
//! not change the function. A lint that fires at a line only in the first run is caused by the attribute.

use super::{Case, DEPENDENCIES, cases, target_dir};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// All groups of clippy.
const GROUPS: [&str; 9] =
    ["cargo", "complexity", "correctness", "nursery", "pedantic", "perf", "restriction", "style", "suspicious"];

/// Lint that the attribute moves to another line: in a function of a `macro_rules!`, from the line of the macro to that
/// of its caller's body.
const MOVED: &str = "clippy::missing_inline_in_public_items";

/// Lints of expressions inside the attribute, which the attribute of the plain files does not have. Each of them fires
/// too at a statement of a plain function, because it is a lint of the user's own expression.
const OF_EXPRESSIONS: [(&str, &str); 5] = [
    ("clippy::arithmetic_side_effects", "let _: fn(u8) -> u8 = |left| left + 1;"),
    ("clippy::implicit_return", "let _: fn(u8) -> u8 = |error| error;"),
    ("clippy::non_ascii_literal", "let _ = \"größe:{id}\";"),
    ("clippy::std_instead_of_core", "let _ = std::time::Duration::from_secs(1);"),
    ("clippy::unreachable", "let _: fn() -> u8 = || unreachable!(\"never\");"),
];

/// File with a plain function for each of these statements, at the line of its number.
const EXPRESSIONS: &str = "expressions.rs";

/// Part of the files `inferred*` that compiles only with the attribute, and what a plain function must have there.
const INFERRED: (&str, &str) = ("Ok(Box::new(*id))", "Ok(Box::new(*id) as Box<dyn Send>)");

#[test]
fn attribute_causes_no_lints() {
    let cases = files();
    let found = lint(&cases);
    let said = |package: &str| found.get(package).cloned().unwrap_or_default();
    let (plain, locked) = (said("plain"), said("locked"));
    assert!(plain.len() > 500, "{} lints fire on the plain files, which shows little", plain.len());
    for (line, (code, statement)) in (1..).zip(OF_EXPRESSIONS) {
        let is_said = plain.iter().any(|lint| lint.place() == (code, EXPRESSIONS, line));
        assert!(is_said, "{code} does not fire at {statement}");
    }
    let is_said = |lint: &Lint| plain.iter().any(|other| lint.place() == other.place());
    let number_beside =
        |lint: &Lint, lints: &BTreeSet<Lint>| lints.iter().filter(|other| other.is_beside(lint)).count();
    let is_moved = |lint: &Lint| lint.code == MOVED && number_beside(lint, &locked) == number_beside(lint, &plain);
    let is_of_an_expression =
        |lint: &Lint| OF_EXPRESSIONS.iter().any(|(code, _)| lint.code == *code) && lint.is_in_an_option();
    let is_wrong = |lint: &&Lint| !is_said(lint) && !is_moved(lint) && !is_of_an_expression(lint);
    let wrong: BTreeSet<_> = locked.iter().filter(is_wrong).collect();
    let mut text = String::new();
    for Lint { code, file, line, .. } in wrong {
        writeln!(text, "{code}: {}:{line}", file.display()).unwrap();
    }
    assert!(text.is_empty(), "these fire because of the attribute:\n{text}");
}

/// Lint that fires at a line, in generated code or at the user's own tokens.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Lint {
    code: String,
    file: PathBuf,
    line: u64,
    is_generated: bool,
}

impl Lint {
    /// Returns the lint with its position. No two files have the same name.
    fn place(&self) -> (&str, &str, u64) {
        (&self.code, self.file.file_name().unwrap().to_str().unwrap(), self.line)
    }

    /// Returns `true` if this is the same lint in the same file.
    fn is_beside(&self, other: &Self) -> bool {
        (&self.code, self.file.file_name()) == (&other.code, other.file.file_name())
    }

    /// Returns `true` if it is about an expression of the attribute. The attribute of the plain files has none.
    fn is_in_an_option(&self) -> bool {
        let text = fs::read_to_string(&self.file).unwrap();
        let before = text.lines().take(usize::try_from(self.line).unwrap()).collect::<Vec<_>>();
        let last = before.iter().rev().find(|line| line.contains("distributed_lock(") || line.contains("fn "));
        !self.is_generated && last.is_some_and(|line| line.contains("distributed_lock("))
    }

    fn read(message: &Value) -> Option<Self> {
        let span = message["spans"].as_array()?.iter().find(|span| span["is_primary"] == true)?;
        let code = message["code"]["code"].as_str()?.to_owned();
        let (file, line) = (span["file_name"].as_str()?.into(), span["line_start"].as_u64()?);
        let is_generated = span["expansion"]["macro_decl_name"] == "#[distributed_lock]";
        Some(Self { code, file, line, is_generated })
    }
}

/// Returns the files that compile, with and without the attribute.
fn files() -> Vec<Case> {
    let compiles = |case: &Case| case.kind == "pass" || case.target() == "same-lints";
    cases().into_values().filter(compiles).collect()
}

/// Lints both packages, and returns the lints of each.
fn lint(cases: &[Case]) -> BTreeMap<String, BTreeSet<Lint>> {
    let workspace = write_workspace(cases);
    let mut clippy = Command::new(env!("CARGO"));
    clippy.args([
        "clippy",
        "--quiet",
        "--offline",
        "--workspace",
        "--examples",
        "--keep-going",
        "--message-format=json",
    ]);
    clippy.arg("--manifest-path").arg(workspace.join("Cargo.toml")).arg("--target-dir").arg(target_dir());
    clippy.args(["--", "--cap-lints=warn"]);
    clippy.args(GROUPS.map(|group| format!("-Wclippy::{group}")));
    clippy.args(allowed_by_default().iter().map(|lint| format!("-W{lint}")));
    let output = clippy.env_remove("RUSTFLAGS").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let mut found = BTreeMap::<_, BTreeSet<_>>::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let Some((package, _)) = line["target"]["name"].as_str().and_then(|name| name.split_once('-')) else {
            continue;
        };
        assert_ne!(line["message"]["level"], "error", "{}", line["message"]["rendered"]);
        found.entry(package.to_owned()).or_default().extend(Lint::read(&line["message"]));
    }
    assert!(output.status.success(), "{errors}");
    found
}

/// Returns the lints of the compiler that are off by default.
fn allowed_by_default() -> Vec<String> {
    let output = Command::new(Path::new(env!("CARGO")).with_file_name("rustc")).args(["-W", "help"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let allowed = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        (words.next()? == "allow").then(|| name.to_owned())
    });
    let allowed: Vec<_> = allowed.collect();
    assert!(allowed.len() > 20, "{allowed:?}");
    allowed
}

/// Writes a workspace with two packages of the same files. In one of them, `redlock_runtime` is a crate that re-exports
/// the real one, with attributes that do nothing.
fn write_workspace(cases: &[Case]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let workspace = target_dir().join("lints");
    let runtime = format!("path = \"{}\", default-features = false", root.join("redlock-runtime").display());
    let write = |package: &str, manifest: &str, lib: &str| {
        fs::create_dir_all(workspace.join(package)).unwrap();
        let manifest =
            format!("[package]\nname = \"{package}\"\nedition = \"2024\"\n[lib]\npath = \"lib.rs\"\n{manifest}");
        fs::write(workspace.join(package).join("Cargo.toml"), manifest).unwrap();
        fs::write(workspace.join(package).join("lib.rs"), lib).unwrap();
    };
    let of_cases = |package: &str, cases: &[Case], runtime: &str| {
        let examples = cases.iter().map(|case| case.example(&format!("{package}-{}", case.target())));
        let manifest = format!("[dev-dependencies]\n{DEPENDENCIES}redlock-runtime = {{ {runtime} }}\n");
        write(package, &(manifest + &examples.collect::<String>()), "");
    };
    of_cases("locked", cases, &format!("{runtime}, features = [\"inventory\"]"));
    of_cases("plain", &plain_cases(cases, &workspace), "package = \"plain-runtime\", path = \"../plain-runtime\"");
    let dependencies = format!(
        "[dependencies]\nreal = {{ package = \"redlock-runtime\", {runtime} }}\nattribute.path = \"../attribute\"\n"
    );
    write("plain-runtime", &dependencies, PLAIN_RUNTIME);
    write("attribute", "proc-macro = true\n", ATTRIBUTE);
    fs::write(workspace.join("Cargo.toml"), "[workspace]\nresolver = \"3\"\nmembers = [\"locked\", \"plain\"]\n")
        .unwrap();
    fs::copy(root.join("Cargo.lock"), workspace.join("Cargo.lock")).unwrap();
    workspace
}

/// Returns the cases for the attribute that does nothing, with the file of expressions. Changes those that would not
/// compile.
fn plain_cases(cases: &[Case], workspace: &Path) -> Vec<Case> {
    let written = |name: &str, text: String| {
        let source = workspace.join(name);
        fs::write(&source, text).unwrap();
        Case { kind: "pass", source }
    };
    let plain = cases.iter().map(|case| {
        let name = case.source.file_name().unwrap().to_str().unwrap();
        if name.starts_with("inferred") {
            written(name, fs::read_to_string(&case.source).unwrap().replace(INFERRED.0, INFERRED.1))
        } else {
            Case { kind: case.kind, source: case.source.clone() }
        }
    });
    let functions =
        (1..).zip(OF_EXPRESSIONS).map(|(number, (_, statement))| format!("fn f{number}() {{ {statement} }}\n"));
    plain.chain([written(EXPRESSIONS, functions.collect())]).collect()
}

const PLAIN_RUNTIME: &str = "pub use ::attribute::{distributed_lock, distributed_lock_defaults};
pub use real::*;

/// Guard of a body.
pub fn guard() -> &'static FencedGuard {
    unimplemented!()
}
";

/// Returns the function unchanged, except for the guard that its body names.
const ATTRIBUTE: &str = r#"use proc_macro::{Group, TokenStream, TokenTree};

#[proc_macro_attribute]
pub fn distributed_lock(options: TokenStream, item: TokenStream) -> TokenStream {
    let options: Vec<TokenTree> = options.into_iter().collect();
    let guard = options.windows(3).find(|words| words[0].to_string() == "guard").map(|words| words[2].to_string());
    let Some(guard) = guard else { return item };
    let mut item: Vec<TokenTree> = item.into_iter().collect();
    if let Some(TokenTree::Group(body)) = item.pop() {
        let shown: TokenStream = format!("let {guard} = ::redlock_runtime::guard();").parse().unwrap();
        let mut shown = Group::new(body.delimiter(), shown.into_iter().chain(body.stream()).collect());
        shown.set_span(body.span());
        item.push(shown.into());
    }
    item.into_iter().collect()
}

#[proc_macro_attribute]
pub fn distributed_lock_defaults(_: TokenStream, item: TokenStream) -> TokenStream {
    item
}
"#;
