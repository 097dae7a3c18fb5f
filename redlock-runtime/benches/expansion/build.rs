//! Scratch crates below the target directory, and the CPU time that the compiler needs for each.

use crate::source::{Variant, program};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Cargo command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Check,
    Dev,
    Release,
}

impl Mode {
    pub(crate) const ALL: [Self; 3] = [Self::Check, Self::Dev, Self::Release];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Check => "cargo check",
            Self::Dev => "dev build",
            Self::Release => "release build",
        }
    }

    const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Check => &["check"],
            Self::Dev => &["build"],
            Self::Release => &["build", "--release"],
        }
    }
}

pub(crate) struct Scratch {
    root: PathBuf,
}

impl Scratch {
    pub(crate) fn create(functions: usize) -> Self {
        let runtime = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("expansion");
        let members = Variant::ALL.map(|variant| format!("{:?}", variant.name())).join(", ");
        write(&root.join("Cargo.toml"), &format!("[workspace]\nresolver = \"3\"\nmembers = [{members}]\n"));
        let lock = runtime.join("../Cargo.lock");
        std::fs::copy(lock, root.join("Cargo.lock")).expect("the workspace has a lock file");
        for variant in Variant::ALL {
            let manifest = format!(
                "[package]\nname = {:?}\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\nredlock-runtime = {{ path = \
                 {:?} }}\ntokio = {{ version = \"1\", features = [\"rt\", \"time\"] }}\ntracing = {{ version = \"0.1\" }}\n",
                variant.name(),
                runtime.display(),
            );
            write(&root.join(variant.name()).join("Cargo.toml"), &manifest);
            write(&root.join(variant.name()).join("src/main.rs"), &program(variant, functions));
        }
        Self { root }
    }

    /// Builds everything once, so that later builds compile only the scratch crates.
    pub(crate) fn build_dependencies(&self) {
        for mode in Mode::ALL {
            run(self.cargo(mode).arg("--workspace"));
        }
    }

    /// Returns the CPU time of compiling one crate. Its dependencies are built already.
    pub(crate) fn cpu_time(&self, variant: Variant, mode: Mode) -> Duration {
        let source = self.root.join(variant.name()).join("src/main.rs");
        let file = std::fs::File::options().append(true).open(source).expect("the source was written");
        file.set_modified(std::time::SystemTime::now()).expect("the time of a file can be set");
        let before = children_cpu_time();
        run(self.cargo(mode).args(["-p", variant.name()]));
        children_cpu_time().saturating_sub(before)
    }

    /// Returns the size of the release program's machine code in bytes, or `None` if the program `size` is not
    /// installed.
    pub(crate) fn text_size(&self, variant: Variant) -> Option<u64> {
        let output = Command::new("size").arg(self.program(variant)).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        text.lines().nth(1)?.split_whitespace().next()?.parse().ok()
    }

    /// Returns the sizes of the futures of the first functions, in bytes.
    pub(crate) fn future_sizes(&self, variant: Variant) -> Vec<usize> {
        let output = Command::new(self.program(variant)).arg("sizes").output().expect("the program runs");
        let text = String::from_utf8(output.stdout).expect("the program prints text");
        text.lines().map(|line| line.parse().expect("the program prints numbers")).collect()
    }

    fn program(&self, variant: Variant) -> PathBuf {
        self.root.join("target/release").join(variant.name())
    }

    fn cargo(&self, mode: Mode) -> Command {
        let mut cargo = Command::new(env!("CARGO"));
        // Incremental compilation would reuse cached results.
        cargo.current_dir(&self.root).env("CARGO_INCREMENTAL", "0").env("CARGO_TARGET_DIR", self.root.join("target"));
        cargo.args(mode.arguments()).args(["--quiet", "-j1"]);
        cargo
    }
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder can be made");
    std::fs::write(path, text).expect("a file can be written");
}

fn run(command: &mut Command) {
    let output = command.output().expect("cargo starts");
    assert!(output.status.success(), "{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
}

/// Returns the user and system time of all child processes that have exited, including their children.
///
/// `/proc` has a resolution of 10 ms, which is enough for builds that take seconds.
fn children_cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("this benchmark runs on Linux");
    let (_, fields) = stat.rsplit_once(')').expect("the name of the program is in parentheses");
    let ticks: u64 =
        fields.split_whitespace().skip(13).take(2).map(|field| field.parse::<u64>().expect("a number")).sum();
    Duration::from_millis(ticks * 10)
}
