//! Reasons for failed TLS handshakes, in texts that name the remedy.

use std::io;
use tokio_rustls::rustls::{AlertDescription, CertificateError, Error};

/// Returns the reason in the error of a TLS handshake; `None` if the error has another cause.
pub(super) fn reason(error: &io::Error) -> Option<String> {
    match error.get_ref()?.downcast_ref::<Error>()? {
        Error::InvalidCertificate(fault) => Some(certificate(fault)),
        // The server speaks another protocol.
        Error::InvalidMessage(_) => Some("the server does not speak TLS on this port: check host and port, and write redis:// if it is Redis without TLS".to_owned()),
        // The fault is in our own settings.
        Error::General(what) => Some(what.clone()),
        Error::AlertReceived(AlertDescription::CertificateRequired) => Some(
            "the server requires a client certificate: set one with `client_certificate_files`, or cert_file= and \
             key_file= in the URL"
                .to_owned(),
        ),
        other => Some(other.to_string()),
    }
}

/// Describes the fault of a certificate. The client crate has only debug texts for most faults.
fn certificate(fault: &CertificateError) -> String {
    let fault = match fault {
        // In the other two cases, the authority has the same name and another key, of the same kind or of another one.
        CertificateError::UnknownIssuer
        | CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "is not signed by a trusted authority: set `ca_file` or SSL_CERT_FILE to the certificate of that \
             authority, or to the server's own certificate if it is self-signed"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "is not valid yet: compare the clocks"
        }
        CertificateError::NotValidForName => WRONG_NAME,
        CertificateError::NotValidForNameContext { presented, .. } if presented.is_empty() => NO_NAME,
        CertificateError::NotValidForNameContext { presented, .. } => {
            let names: Vec<_> = presented.iter().map(|name| name_in(name)).collect();
            return format!("the certificate of the server {WRONG_NAME}; it is for {}", names.join(", "));
        }
        CertificateError::Revoked => "was revoked",
        fault if is_authority_as_server(fault) => {
            "is marked as the certificate of an authority, as `openssl req -x509` does: set `ca_file` to this very \
             certificate"
        }
        fault if is_other(fault, "UnsupportedCertVersion") => NO_NAME,
        other => return format!("the certificate of the server is refused: {other}"),
    };
    format!("the certificate of the server {fault}")
}

const WRONG_NAME: &str = "is not for the host in the URL: use one of its names as the host or with server_name=";

const NO_NAME: &str = "has no subjectAltName, and the name in its CN is ignored: create a new certificate with a \
                       subjectAltName, for example by openssl with `-addext subjectAltName=DNS:redis.internal`";

/// Returns `true` if a certificate is refused because it is marked as the certificate of an authority.
pub(super) fn is_authority_as_server(fault: &CertificateError) -> bool {
    is_other(fault, "CaUsedAsEndEntity")
}

/// Returns `true` for a fault called `name` without a separate variant.
fn is_other(fault: &CertificateError, name: &str) -> bool {
    matches!(fault, CertificateError::Other(other) if format!("{other:?}").contains(name))
}

/// Returns the name in a debug text such as `DnsName("redis.internal")`.
fn name_in(text: &str) -> &str {
    let inner = text.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(text).trim_matches('"')
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_rustls::rustls::InvalidMessage;
    use tokio_rustls::rustls::pki_types::ServerName;

    fn wrong_name(presented: &[&str]) -> Error {
        let expected = ServerName::try_from("redis.internal").unwrap();
        let presented = presented.iter().map(|name| (*name).to_owned()).collect();
        Error::InvalidCertificate(CertificateError::NotValidForNameContext { expected, presented })
    }

    #[test]
    fn tls_failure_reasons_advise_a_fix() {
        let table = [
            (Error::InvalidCertificate(CertificateError::UnknownIssuer), "SSL_CERT_FILE"),
            (Error::InvalidCertificate(CertificateError::Expired), "has expired"),
            (Error::InvalidCertificate(CertificateError::NotValidForName), "not for the host"),
            (wrong_name(&[]), "has no subjectAltName"),
            (wrong_name(&["DnsName(\"a.test\")", "IpAddress(10.0.0.1)"]), "server_name=; it is for a.test, 10.0.0.1"),
            (Error::InvalidMessage(InvalidMessage::InvalidContentType), "write redis://"),
        ];
        for (error, expected) in table {
            let reason = reason(&io::Error::new(io::ErrorKind::InvalidData, error)).unwrap();
            assert!(reason.contains(expected), "{reason}");
        }
        assert_eq!(reason(&io::Error::from(io::ErrorKind::ConnectionRefused)), None);
        assert_eq!(reason(&io::Error::other("not of TLS")), None);
    }
}
