//! The parameters of a node's URL: what operators set without touching the program.

use super::credentials::CredentialsSource;
use super::node_config::Access;
#[cfg(feature = "tls")]
use super::tls_settings::Pem;
use std::borrow::Cow;
use std::time::Duration;

/// Those that the client crate reads of a unix socket. Of other URLs it reads none of them, where they stand before the `?`.
const OF_A_SOCKET: [&str; 3] = ["db", "user", "pass"];

/// The parameters that are left: names and values.
pub(super) type Rest = Vec<(String, String)>;

/// What the parameters of a URL say, and those that are left for the client crate.
///
/// # Errors
/// What is wrong, after "the URL of a node"; nothing of the URL is repeated.
pub(super) fn read<'a>(
    pairs: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>,
    is_socket: bool,
) -> Result<(Access, Rest), &'static str> {
    let (mut access, mut rest) = (Access::default(), Rest::new());
    for (name, value) in pairs {
        match &*name {
            "connect_timeout_ms" => access.connect_timeout = Some(millis(&value)?),
            "password_file" => access.credentials = Some(CredentialsSource::PasswordFile(value.into_owned().into())),
            #[cfg(feature = "tls")]
            "ca_file" => access.tls.authorities = Some(Pem::File(value.into_owned().into())),
            #[cfg(feature = "tls")]
            "cert_file" => access.tls.certificates = Some(Pem::File(value.into_owned().into())),
            #[cfg(feature = "tls")]
            "key_file" => access.tls.key = Some(Pem::File(value.into_owned().into())),
            #[cfg(feature = "tls")]
            "server_name" => access.tls.server_name = Some(value.into_owned()),
            // The client crate says what is wrong with it.
            "protocol" => rest.push((name.into_owned(), value.into_owned())),
            name if is_socket && OF_A_SOCKET.contains(&name) => rest.push((name.to_owned(), value.into_owned())),
            name if OF_A_SOCKET.contains(&name) => return Err(BEFORE),
            _ => return Err(UNKNOWN),
        }
    }
    Ok((access, rest))
}

const BEFORE: &str = "is wrong: user, password and database stand before the `?`, as in redis://user:password@host/3";

#[cfg(feature = "tls")]
const UNKNOWN: &str = "has a parameter that is not known: there are connect_timeout_ms, password_file, ca_file, cert_file, \
                       key_file and server_name; a `?` in a password is written %3F";
#[cfg(not(feature = "tls"))]
const UNKNOWN: &str = "has a parameter that is not known: there are connect_timeout_ms and password_file, and others with a \
                       feature for TLS; a `?` in a password is written %3F";

fn millis(value: &str) -> Result<Duration, &'static str> {
    value.parse().map(Duration::from_millis).map_err(|_| "is wrong: connect_timeout_ms is a whole number, such as 5000")
}
