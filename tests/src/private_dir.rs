//! A temporary directory that only this user can enter, removed on drop.

use std::collections::hash_map::RandomState;
use std::fs::{self, DirBuilder};
use std::hash::BuildHasher;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Path of the directory. It is short, because a unix socket inside must fit into the 104 bytes that macOS allows.
#[derive(Debug)]
pub(crate) struct PrivateDir(PathBuf);

impl PrivateDir {
    pub(crate) fn create() -> Self {
        // `RandomState` differs on every call: unique across threads, processes and leftovers of earlier runs.
        let unique = RandomState::new().hash_one(std::process::id());
        let path = std::env::temp_dir().join(format!("redlock-{unique:016x}"));
        DirBuilder::new().mode(0o700).create(&path).expect("a new directory under the temporary one");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn join(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        // Nothing depends on the removal, and a second panic would hide the first.
        let _ = fs::remove_dir_all(&self.0);
    }
}
