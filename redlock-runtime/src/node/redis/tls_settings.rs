//! Trusted certificates and client certificate for TLS, as files or texts in PEM format.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_rustls::rustls::Error;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};

/// Deviations from the default: the authorities of the operating system, no client certificate, the host of the URL.
#[derive(Clone, Default)]
pub(super) struct TlsSettings {
    pub(super) authorities: Option<Pem>,
    pub(super) certificates: Option<Pem>,
    pub(super) key: Option<Pem>,
    pub(super) server_name: Option<String>,
}

/// Source of a PEM text.
#[derive(Clone)]
pub(super) enum Pem {
    /// Read at each use, so that a renewed file is used without a restart.
    File(PathBuf),
    Text(Arc<[u8]>),
}

impl TlsSettings {
    /// Returns these settings, completed by those of `other`.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            authorities: self.authorities.or(other.authorities),
            certificates: self.certificates.or(other.certificates),
            key: self.key.or(other.key),
            server_name: self.server_name.or(other.server_name),
        }
    }

    /// Returns the fault of the settings for a URL that asks for TLS or does not. The text continues "the URL of a node".
    pub(super) fn fault(&self, asks_for_tls: bool) -> Option<&'static str> {
        let Self { authorities, certificates, key, server_name } = self;
        let is_default = authorities.is_none() && certificates.is_none() && key.is_none() && server_name.is_none();
        let is_wrong = |name: &String| ServerName::try_from(name.as_str()).is_err();
        if !asks_for_tls && !is_default {
            return Some("has settings for TLS and does not use TLS: write rediss://");
        }
        if certificates.is_some() != key.is_some() {
            return Some("has a client certificate without its key, or a key without its certificate: set both");
        }
        server_name.as_ref().is_some_and(is_wrong).then_some("has a server name that is not a host name")
    }

    /// Returns `true` if a file is read at each use, and may be complete later.
    pub(super) fn has_files(&self) -> bool {
        let pems = [&self.authorities, &self.certificates, &self.key];
        pems.into_iter().any(|pem| matches!(pem, Some(Pem::File(_))))
    }

    /// Returns the trusted certificates, if they replace the authorities of the operating system.
    pub(super) fn authorities(&self) -> io::Result<Option<Vec<CertificateDer<'static>>>> {
        self.authorities.as_ref().map(|pem| pem.certificates("of the authorities")).transpose()
    }

    /// Returns the chain of the client certificate, and its key.
    pub(super) fn identity(&self) -> io::Result<Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>> {
        let (Some(certificates), Some(key)) = (&self.certificates, &self.key) else { return Ok(None) };
        Ok(Some((certificates.certificates("of this client")?, key.key()?)))
    }
}

impl Pem {
    fn certificates(&self, whose: &str) -> io::Result<Vec<CertificateDer<'static>>> {
        let text = self.read(&format!("the certificates {whose}"))?;
        let found = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
        let found = found.map_err(|error| fault(&format!("the certificates {whose}{}: {error}", self.place())))?;
        if found.is_empty() {
            return Err(fault(&format!("no certificate {whose} is{}: PEM begins with -----BEGIN", self.place())));
        }
        Ok(found)
    }

    fn key(&self) -> io::Result<PrivateKeyDer<'static>> {
        let text = self.read("the key of this client")?;
        PrivateKeyDer::from_pem_slice(&text)
            .map_err(|error| fault(&format!("the key of this client{}: {error}", self.place())))
    }

    fn read(&self, what: &str) -> io::Result<Arc<[u8]>> {
        match self {
            Self::Text(text) => Ok(Arc::clone(text)),
            Self::File(path) => std::fs::read(path)
                .map(Into::into)
                .map_err(|error| fault(&format!("{what}{} cannot be read: {error}", self.place()))),
        }
    }

    /// Returns the source for a message.
    fn place(&self) -> String {
        match self {
            Self::Text(_) => " in the text".to_owned(),
            Self::File(path) => format!(" in {}", path.display()),
        }
    }
}

/// Creates a TLS error, for `tls_failure`.
fn fault(what: &str) -> io::Error {
    io::Error::other(Error::General(what.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pem_errors_name_the_source_but_not_the_content() {
        let text = |text: &str| Some(Pem::Text(text.as_bytes().into()));
        let broken = "-----BEGIN CERTIFICATE-----\nhunter2\n";
        let missing = || Some(Pem::File("/nowhere/ca.pem".into()));
        let table = [
            (TlsSettings { authorities: missing(), ..TlsSettings::default() }, "in /nowhere/ca.pem cannot be read: "),
            (
                TlsSettings { authorities: text("hunter2"), ..TlsSettings::default() },
                "no certificate of the authorities",
            ),
            (
                TlsSettings { authorities: text(broken), ..TlsSettings::default() },
                "the certificates of the authorities",
            ),
            (
                TlsSettings { certificates: text(broken), key: text(broken), ..TlsSettings::default() },
                "the certificates of this client",
            ),
        ];
        for (settings, expected) in table {
            let error = settings.authorities().err().or_else(|| settings.identity().err()).unwrap().to_string();
            assert!(error.contains(expected) && !error.contains("hunter2"), "{error}");
        }
        let settings = TlsSettings::default();
        assert!(settings.authorities().unwrap().is_none() && settings.identity().unwrap().is_none());
    }

    #[test]
    fn conflicting_tls_settings_are_rejected_before_connecting() {
        let pem = || Some(Pem::Text(Arc::from(*b"")));
        let name = |name: &str| TlsSettings { server_name: Some(name.into()), ..TlsSettings::default() };
        let table = [
            (TlsSettings::default(), [None, None]),
            (TlsSettings { authorities: pem(), ..TlsSettings::default() }, [Some("does not use TLS"), None]),
            (
                TlsSettings { certificates: pem(), ..TlsSettings::default() },
                [Some("does not use TLS"), Some("set both")],
            ),
            (TlsSettings { key: pem(), ..TlsSettings::default() }, [Some("does not use TLS"), Some("set both")]),
            (name("redis.internal"), [Some("does not use TLS"), None]),
            (name("no name!"), [Some("does not use TLS"), Some("not a host name")]),
        ];
        for (settings, expected) in table {
            for (asks_for_tls, expected) in [false, true].into_iter().zip(expected) {
                let fault = settings.fault(asks_for_tls);
                assert_eq!(fault.is_some(), expected.is_some(), "{fault:?}");
                assert!(fault.unwrap_or_default().contains(expected.unwrap_or_default()), "{fault:?}");
            }
        }
    }
}
