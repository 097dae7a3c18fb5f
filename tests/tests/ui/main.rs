//! Compiles every file under `tests/ui` in one run of cargo, and compares the messages of the compiler.
//!
//! - `ours`: the texts are written in this project. The expectation contains them.
//! - `rustc`: the compiler writes the texts. The expectation contains code and position.
//! - `same`: the compiler reports the same at the same positions as without the attribute. The expectation lists
//!   differences.
//! - `pass`: no messages, and no warnings. The `attribute` tests contain these files too, for clippy.
//!
//! No message of the compiler, and none of its notes, names the module `__private`.
//!
//! `UI_BLESS=1 cargo test -p redlock-tests --test ui` updates the expectations. Read the difference before you commit
//! it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests are tests too")]

mod lints;

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const KINDS: [&str; 4] = ["ours", "rustc", "same", "pass"];

#[test]
fn ui() {
    let cases = cases();
    let found = check(&cases);
    let mut wrong = String::new();
    for case in cases.values().filter(|case| case.kind != "plain") {
        let messages = |target: &str| found.get(target).map_or(&[][..], Vec::as_slice);
        let text = match case.kind {
            "same" => differences(messages(&case.plain().target()), messages(&case.target())),
            kind => text(messages(&case.target()), kind != "rustc"),
        };
        if let Err(difference) = case.compare(&text) {
            writeln!(wrong, "{}\n{difference}", case.source.display()).unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n\n{wrong}\n`UI_BLESS=1` writes what was found as expected.\n");
    let rendered = found.values().flatten().map(|message| &*message.rendered);
    let internal: String = rendered.filter(|text| text.contains("__private")).collect();
    assert!(internal.is_empty(), "these messages and their notes name the internal module:\n\n{internal}");
}

struct Case {
    kind: &'static str,
    source: PathBuf,
}

/// Returns all cases by the name of their target.
fn cases() -> BTreeMap<String, Case> {
    let folder = |kind: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("ui").join(kind);
    let files = |kind: &'static str| {
        let paths = fs::read_dir(folder(kind)).unwrap().map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension() == Some("rs".as_ref())).map(move |source| Case { kind, source })
    };
    let written = KINDS.into_iter().flat_map(files);
    let all = written.flat_map(|case| if case.kind == "same" { vec![case.plain(), case] } else { vec![case] });
    all.map(|case| (case.target(), case)).collect()
}

impl Case {
    fn target(&self) -> String {
        format!("{}-{}", self.kind, self.source.file_stem().unwrap().display())
    }

    /// Returns the edition in the first line (`// edition: 2021`), or 2024.
    fn edition(&self) -> String {
        let text = fs::read_to_string(&self.source).unwrap();
        text.lines().next().and_then(|line| line.strip_prefix("// edition: ")).unwrap_or("2024").to_owned()
    }

    /// Returns the target in the syntax of a manifest.
    fn example(&self, target: &str) -> String {
        let (path, edition) = (self.source.display(), self.edition());
        format!("[[example]]\nname = {target:?}\npath = \"{path}\"\nedition = {edition:?}\ncrate-type = [\"lib\"]\n")
    }

    /// Returns the case of the same file without the attribute.
    fn plain(&self) -> Self {
        Self { kind: "plain", source: package().join(self.source.file_name().unwrap()) }
    }

    fn write_plain(&self) {
        let text = fs::read_to_string(&self.source).unwrap();
        let lines = text.lines().map(|line| if line.trim().starts_with("#[redlock_runtime::") { "" } else { line });
        fs::write(self.plain().source, lines.collect::<Vec<_>>().join("\n")).unwrap();
    }

    fn compare(&self, found: &str) -> Result<(), String> {
        if self.kind == "pass" {
            return if found.is_empty() { Ok(()) } else { Err(format!("--- must compile in silence\n{found}")) };
        }
        let path = self.source.with_extension("stderr");
        if env::var_os("UI_BLESS").is_some() {
            if found.is_empty() { fs::remove_file(&path).unwrap_or_default() } else { fs::write(&path, found).unwrap() }
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        match found {
            "" if self.kind != "same" => Err("--- must not compile".into()),
            found if found == expected => Ok(()),
            found => Err(format!("--- expected\n{expected}--- found\n{found}")),
        }
    }
}

/// Returns the messages in the order of their lines.
fn text(messages: &[Message], with_text: bool) -> String {
    let lines = messages.iter().map(|message| message.line(with_text)).collect();
    sorted(lines)
}

fn sorted(mut lines: Vec<String>) -> String {
    let number = |line: &str| line.trim_start_matches(['-', '+', ' ']).split(':').next()?.parse::<u64>().ok();
    lines.sort_by_key(|line| number(line));
    lines.iter().fold(String::new(), |text, line| text + line + "\n")
}

/// Returns the messages that appear only without the attribute, and only with it.
fn differences(plain: &[Message], locked: &[Message]) -> String {
    assert!(!plain.is_empty(), "a case in which nothing is said shows nothing");
    let lines = |messages: &[Message]| messages.iter().map(|message| message.line(false)).collect::<Vec<_>>();
    let (plain, locked) = (lines(plain), lines(locked));
    sorted([only(&plain, &locked, "-"), only(&locked, &plain, "+")].concat())
}

fn only(lines: &[String], others: &[String], mark: &str) -> Vec<String> {
    let mut left = others.to_vec();
    let mut only = Vec::new();
    for line in lines {
        match left.iter().position(|other| other == line) {
            Some(found) => drop(left.swap_remove(found)),
            None => only.push(format!("{mark} {line}")),
        }
    }
    only
}

/// Message of the compiler.
#[derive(Clone)]
struct Message {
    place: String,
    level: String,
    text: String,
    /// Notes of this project that the compiler appends.
    notes: Vec<String>,
    /// Everything that the compiler prints, with its own notes.
    rendered: String,
}

impl Message {
    /// Reads a message. Returns `None` for the summary at the end.
    fn read(message: &Value) -> Option<Self> {
        let spans = message["spans"].as_array()?;
        let span = spans.iter().find(|span| span["is_primary"] == true)?;
        let end = if span["line_end"] == span["line_start"] {
            span["column_end"].to_string()
        } else {
            format!("{}:{}", span["line_end"], span["column_end"])
        };
        let place = format!("{}:{}..{end}", span["line_start"], span["column_start"]);
        let code = message["code"]["code"].as_str().map(|code| format!("[{code}]")).unwrap_or_default();
        let level = format!("{}{code}", message["level"].as_str()?);
        let notes = message["children"].as_array()?.iter().filter_map(note).collect();
        let rendered = message["rendered"].as_str()?.to_owned();
        Some(Self { place, level, text: message["message"].as_str()?.to_owned(), notes, rendered })
    }

    fn line(&self, with_text: bool) -> String {
        let Self { place, level, text, notes, .. } = self;
        if with_text {
            notes.iter().fold(format!("{place}: {level}: {text}"), |line, note| format!("{line}\n    note: {note}"))
        } else {
            format!("{place}: {level}")
        }
    }
}

/// Returns the text of a note without a position, unless the compiler writes it itself.
fn note(message: &Value) -> Option<String> {
    let text = message["message"].as_str()?;
    let is_compilers = ["required", "this error originates", "`#[", "see issue", "the full", "consider", "#["];
    let is_ours = message["level"] == "note"
        && message["spans"].as_array().is_some_and(Vec::is_empty)
        && !is_compilers.iter().any(|start| text.starts_with(start));
    is_ours.then(|| text.to_owned())
}

/// Compiles all cases and returns the messages of each.
fn check(cases: &BTreeMap<String, Case>) -> BTreeMap<String, Vec<Message>> {
    let package = write_package(cases);
    let output = Command::new(env!("CARGO"))
        .args(["check", "--quiet", "--offline", "--examples", "--keep-going", "--message-format=json"])
        .arg("--manifest-path")
        .arg(package.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target_dir())
        .env_remove("RUSTFLAGS")
        .output()
        .unwrap();
    let mut found = BTreeMap::<String, Vec<Message>>::new();
    let mut compiled = 0;
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let Some(target) = line["target"]["name"].as_str().filter(|name| cases.contains_key(*name)) else { continue };
        compiled += 1;
        found.entry(target.to_owned()).or_default().extend(Message::read(&line["message"]));
    }
    assert!(compiled >= cases.len(), "cargo failed:\n{}", String::from_utf8_lossy(&output.stderr));
    found
}

/// Dependencies of a package in addition to `redlock-runtime`.
const DEPENDENCIES: &str = "async-trait = \"*\"\n\
    axum = { version = \"*\", default-features = false, features = [\"json\", \"macros\", \"query\"] }\n\
    serde = { version = \"*\", features = [\"derive\"] }\n\
    tracing = \"*\"\n\
    tonic = { version = \"*\", default-features = false, features = [\"codegen\"] }\n\
    tokio = { version = \"*\", features = [\"macros\", \"rt-multi-thread\", \"time\"] }\n";

/// Writes a package outside the workspace with one target for each case, so that one run of cargo compiles all of them.
fn write_package(cases: &BTreeMap<String, Case>) -> PathBuf {
    let package = package();
    fs::create_dir_all(&package).unwrap();
    cases.values().filter(|case| case.kind == "same").for_each(Case::write_plain);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut manifest = format!(
        "[package]\nname = \"ui\"\nedition = \"2024\"\n[workspace]\n[lib]\npath = \"lib.rs\"\n\
         [profile.dev]\ndebug = \"line-tables-only\"\n[dev-dependencies]\n{DEPENDENCIES}\
         redlock-runtime = {{ path = \"{}\", default-features = false, features = [\"macros\"] }}\n",
        root.join("redlock-runtime").display()
    );
    for (target, case) in cases {
        manifest += &case.example(target);
    }
    fs::write(package.join("lib.rs"), "").unwrap();
    fs::write(package.join("Cargo.toml"), manifest).unwrap();
    fs::copy(root.join("Cargo.lock"), package.join("Cargo.lock")).unwrap();
    package
}

fn package() -> PathBuf {
    target_dir().join("ui")
}

/// Returns the target directory of the workspace, which contains most dependencies already.
fn target_dir() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().to_owned()
}
