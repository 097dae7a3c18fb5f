//! External programs and libraries of the harness, and the remedy for a missing one.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// One external program or library, replaceable through an environment variable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct External {
    name: &'static str,
    variable: &'static str,
    debian_package: &'static str,
}

pub(crate) const REDIS_SERVER: External =
    External { name: "redis-server", variable: "REDIS_SERVER", debian_package: "redis-server" };
pub(crate) const REDIS_CLI: External =
    External { name: "redis-cli", variable: "REDIS_CLI", debian_package: "redis-tools" };
pub(crate) const OPENSSL: External = External { name: "openssl", variable: "OPENSSL", debian_package: "openssl" };
pub(crate) const CC: External = External { name: "cc", variable: "CC", debian_package: "gcc libc6-dev" };
pub(crate) const LIBFAKETIME: External =
    External { name: "libfaketime.so.1", variable: "LIBFAKETIME", debian_package: "faketime" };

impl External {
    /// Returns the path to run: the environment variable if set, else the plain name.
    pub(crate) fn path(self) -> OsString {
        env::var_os(self.variable).unwrap_or_else(|| self.name.into())
    }

    /// Returns the file to load: the environment variable if set, else the first existing file of `places`.
    pub(crate) fn file(self, places: &[PathBuf]) -> PathBuf {
        let named = env::var_os(self.variable).map(PathBuf::from);
        let file = named.or_else(|| places.iter().find(|place| place.exists()).cloned());
        file.filter(|file| file.exists()).unwrap_or_else(|| self.cannot_run(&io::ErrorKind::NotFound.into()))
    }

    /// Fails the test with the remedy. A skipped test would look like a passed one.
    pub(crate) fn cannot_run(self, error: &io::Error) -> ! {
        let Self { name, variable, debian_package } = self;
        panic!(
            "cannot run {}: {error}; install it with `apt-get install {debian_package}` \
             or set {variable} to the path of a {name} binary",
            self.path().display(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "install it with `apt-get install redis-server`")]
    fn missing_program_fails_with_the_install_command() {
        REDIS_SERVER.cannot_run(&io::ErrorKind::NotFound.into());
    }
}
