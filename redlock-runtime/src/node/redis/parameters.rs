//! The parameters of a node's URL: settings that operators can change without the program.

use super::credentials::CredentialsSource;
use super::node_config::Access;
#[cfg(feature = "tls")]
use super::tls_settings::Pem;
use std::time::Duration;

/// Reads the settings in the parameters of a URL, which are names and values.
///
/// # Errors
/// The fault, as a continuation of "the URL of a node". No part of the URL is repeated.
pub(super) fn read(parameters: &[(String, String)]) -> Result<Access, &'static str> {
    let mut access = Access::default();
    for (name, value) in parameters {
        match &**name {
            "connect_timeout_ms" => access.connect_timeout = Some(millis(value)?),
            "password_file" => access.credentials = Some(CredentialsSource::PasswordFile(value.into())),
            "map" => access.addresses.add(value)?,
            "confirm_replicas" => access.confirm_replicas = Some(number(value)?),
            "sentinel_user" => access.sentinel.get_or_insert_default().user = Some(value.clone()),
            "sentinel_password_file" => {
                access.sentinel.get_or_insert_default().password_file = Some(value.into());
            }
            #[cfg(feature = "tls")]
            "ca_file" => access.tls.authorities = Some(Pem::File(value.into())),
            #[cfg(feature = "tls")]
            "cert_file" => access.tls.certificates = Some(Pem::File(value.into())),
            #[cfg(feature = "tls")]
            "key_file" => access.tls.key = Some(Pem::File(value.into())),
            #[cfg(feature = "tls")]
            "server_name" => access.tls.server_name = Some(value.clone()),
            _ => return Err(UNKNOWN),
        }
    }
    Ok(access)
}

#[cfg(feature = "tls")]
const UNKNOWN: &str = "has an unknown parameter: the parameters are connect_timeout_ms, password_file, ca_file, \
                       cert_file, key_file, server_name, confirm_replicas, map, sentinel_user and \
                       sentinel_password_file; a `?` in a password is written %3F";
#[cfg(not(feature = "tls"))]
const UNKNOWN: &str = "has an unknown parameter: the parameters are connect_timeout_ms, password_file, \
                       confirm_replicas, map, sentinel_user and sentinel_password_file, and others with a feature for \
                       TLS; a `?` in a password is written %3F";

fn number(value: &str) -> Result<u32, &'static str> {
    value.parse().map_err(|_| "is wrong: confirm_replicas is a whole number, such as 1")
}

fn millis(value: &str) -> Result<Duration, &'static str> {
    value.parse().map(Duration::from_millis).map_err(|_| "is wrong: connect_timeout_ms is a whole number, such as 5000")
}
