//! Whom TLS trusts, and what it shows: files or texts in the form of PEM.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{Error, RootCertStore};

/// What differs from the default: the authorities of the operating system, no certificate of our own, the host of the URL.
#[derive(Clone, Default)]
pub(super) struct TlsSettings {
    pub(super) authorities: Option<Pem>,
    pub(super) certificates: Option<Pem>,
    pub(super) key: Option<Pem>,
    pub(super) server_name: Option<String>,
}

/// Where PEM is found.
#[derive(Clone)]
pub(super) enum Pem {
    /// Read each time that it is needed, so that what is renewed is used without a restart.
    File(PathBuf),
    Text(Arc<[u8]>),
}

impl TlsSettings {
    /// What is said here, and what only `other` says.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            authorities: self.authorities.or(other.authorities),
            certificates: self.certificates.or(other.certificates),
            key: self.key.or(other.key),
            server_name: self.server_name.or(other.server_name),
        }
    }

    /// Whether nothing differs from the default.
    pub(super) const fn is_default(&self) -> bool {
        let Self { authorities, certificates, key, server_name } = self;
        authorities.is_none() && certificates.is_none() && key.is_none() && server_name.is_none()
    }

    /// The authorities to trust, if others than those of the operating system.
    pub(super) fn roots(&self) -> io::Result<Option<RootCertStore>> {
        let Some(pem) = &self.authorities else { return Ok(None) };
        let mut roots = RootCertStore::empty();
        for certificate in pem.certificates("of the authorities")? {
            roots.add(certificate).map_err(io::Error::other)?;
        }
        Ok(Some(roots))
    }

    /// The chain of certificates to show, and its key.
    pub(super) fn identity(&self) -> io::Result<Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>> {
        match (&self.certificates, &self.key) {
            (Some(certificates), Some(key)) => Ok(Some((certificates.certificates("of this client")?, key.key()?))),
            (None, None) => Ok(None),
            (Some(_), None) => Err(fault("a certificate of this client has no key: name its file as well")),
            (None, Some(_)) => Err(fault("a key of this client has no certificate: name its file as well")),
        }
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

    /// Where it stands, in a message.
    fn place(&self) -> String {
        match self {
            Self::Text(_) => " in the text".to_owned(),
            Self::File(path) => format!(" in {}", path.display()),
        }
    }
}

/// An error of TLS, for `tls_failure`.
fn fault(what: &str) -> io::Error {
    io::Error::other(Error::General(what.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_with_its_place_and_without_its_content() {
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
            (TlsSettings { certificates: text(broken), ..TlsSettings::default() }, "has no key"),
            (TlsSettings { key: text(broken), ..TlsSettings::default() }, "has no certificate"),
        ];
        for (settings, expected) in table {
            assert!(!settings.is_default());
            let error = settings.roots().err().or_else(|| settings.identity().err()).unwrap().to_string();
            assert!(error.contains(expected) && !error.contains("hunter2"), "{error}");
        }
        let settings = TlsSettings::default();
        assert!(settings.is_default() && settings.roots().unwrap().is_none() && settings.identity().unwrap().is_none());
    }
}
