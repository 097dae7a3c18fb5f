//! Trust in the certificates that the settings name, in place of those of the operating system.
//!
//! Each of them is an authority, which may have signed the certificate of the server. It may also be the certificate of the server itself:
//! `openssl req -x509` signs it with its own key and marks it as an authority. rustls refuses an authority as the certificate of a server.
//! Here it is accepted if it is one of the named certificates, byte by byte. Its name, its time and the signature of the handshake are
//! checked as for any other.

use super::tls_failure::is_authority_as_server;
use std::io;
use std::sync::Arc;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};

#[derive(Debug)]
pub(super) struct OwnAuthorities {
    named: Vec<CertificateDer<'static>>,
    by_signature: Arc<WebPkiServerVerifier>,
}

impl OwnAuthorities {
    /// Trusts only the `named` certificates.
    ///
    /// # Errors
    /// If one of them is not a certificate.
    pub(super) fn new(named: Vec<CertificateDer<'static>>, provider: Arc<CryptoProvider>) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in &named {
            roots.add(certificate.clone()).map_err(io::Error::other)?;
        }
        let by_signature = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        Ok(Self { named, by_signature: by_signature.map_err(io::Error::other)? })
    }
}

impl ServerCertVerifier for OwnAuthorities {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.by_signature.verify_server_cert(certificate, others, name, ocsp, now) {
            // The time was checked before this error.
            Err(Error::InvalidCertificate(fault))
                if is_authority_as_server(&fault) && self.named.iter().any(|named| named == certificate) =>
            {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_signature.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_signature.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_signature.supported_verify_schemes()
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        self.by_signature.root_hint_subjects()
    }
}
