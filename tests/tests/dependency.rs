//! Generated code finds `redlock-runtime` under any name that a crate gives to the dependency. Without such a dependency, the error
//! explains it.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// A crate with one annotated function.
struct Case {
    name: &'static str,
    /// Manifest line of the dependency. `RUNTIME` is replaced by the path and features of the crate.
    dependency: &'static str,
    /// Path of the dependency in the code.
    path: &'static str,
    option: &'static str,
    expected: &'static str,
}

const CASES: &[Case] = &[
    Case {
        name: "renamed",
        dependency: "locks = { package = \"redlock-runtime\", RUNTIME }",
        path: "locks",
        option: "",
        expected: "",
    },
    Case { name: "inherited", dependency: "shop-locks.workspace = true", path: "shop_locks", option: "", expected: "" },
    Case {
        name: "reexported",
        dependency: "base.path = \"../base\"",
        path: "base::locks",
        option: "",
        expected: "this crate does not depend on `redlock-runtime` under any name",
    },
    Case {
        name: "named",
        dependency: "base.path = \"../base\"",
        path: "base::locks",
        option: ", crate = base::locks",
        expected: "",
    },
];

/// The program of README.md in a crate that was made with `cargo add redlock-runtime --rename redlock`.
const QUICK_START: &str = "quick_start";

#[test]
fn crate_is_found_under_any_dependency_name() {
    let workspace = write_workspace();
    for Case { name, expected, .. } in CASES {
        let said = check(&workspace, name);
        assert_eq!(said.is_empty(), expected.is_empty(), "{name}: {said}");
        assert!(said.contains(expected), "{name}: {said}");
        assert!(!said.contains("E0433"), "{name}: {said}");
    }
    let errors = check(&workspace, QUICK_START);
    assert!(errors.is_empty(), "{errors}");
}

/// Compiles one crate, and returns the messages of the compiler.
fn check(workspace: &Path, name: &str) -> String {
    let output = Command::new(env!("CARGO"))
        .args(["check", "--quiet", "--offline", "--package", name])
        .arg("--manifest-path")
        .arg(workspace.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target_dir())
        .env_remove("RUSTFLAGS")
        .output()
        .unwrap();
    String::from_utf8(output.stderr).unwrap()
}

/// Writes a workspace with a crate for each case, and a crate that re-exports the attribute.
fn write_workspace() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let runtime = format!(
        "path = \"{}\", default-features = false, features = [\"macros\"]",
        root.join("redlock-runtime").display()
    );
    let workspace = target_dir().join("dependency");
    fs::create_dir_all(&workspace).unwrap();
    let names: Vec<&str> = CASES.iter().map(|case| case.name).chain([QUICK_START]).collect();
    let manifest = format!(
        "[workspace]\nresolver = \"3\"\nmembers = {:?}\n[workspace.dependencies]\n\
         shop-locks = {{ package = \"redlock-runtime\", {runtime} }}\n",
        [names.as_slice(), &["base"]].concat()
    );
    fs::write(workspace.join("Cargo.toml"), manifest).unwrap();
    fs::copy(root.join("Cargo.lock"), workspace.join("Cargo.lock")).unwrap();
    let base = format!("redlock-runtime = {{ {runtime} }}");
    write_crate(&workspace, "base", &base, "pub use redlock_runtime as locks;\n");
    for Case { name, dependency, path, option, .. } in CASES {
        let code = format!(
            "#![deny(warnings)]\n#[{path}::distributed_lock(key = \"order:{{id}}\"{option})]\n\
             pub async fn capture(id: u64) -> Result<u64, {path}::LockError> {{\n    Ok(id)\n}}\n"
        );
        write_crate(&workspace, name, &dependency.replace("RUNTIME", &runtime), &code);
    }
    write_quick_start(&workspace, &runtime);
    workspace
}

/// Writes the program of README.md, in which the crate is called `redlock`.
fn write_quick_start(workspace: &Path, runtime: &str) {
    let dependencies = format!(
        "redlock = {{ package = \"redlock-runtime\", {runtime} }}\n\
         tokio = {{ version = \"1\", features = [\"macros\", \"rt-multi-thread\", \"signal\", \"time\"] }}"
    );
    let program = include_str!("../../examples/src/bin/first_program.rs");
    let renamed = program.replace("redlock_runtime", "redlock");
    assert_ne!(renamed, program);
    // A library is compiled like the program, and has no caller of `main`.
    write_crate(workspace, QUICK_START, &dependencies, &format!("#![allow(dead_code)]\n{renamed}"));
}

fn write_crate(workspace: &Path, name: &str, dependency: &str, code: &str) {
    let folder = workspace.join(name);
    fs::create_dir_all(folder.join("src")).unwrap();
    let manifest = format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n[dependencies]\n{dependency}\n");
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::write(folder.join("src/lib.rs"), code).unwrap();
}

/// Returns the target folder of the workspace, which contains most dependencies already.
fn target_dir() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().to_owned()
}
