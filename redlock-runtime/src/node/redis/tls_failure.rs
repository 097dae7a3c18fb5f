//! Why TLS did not come about, in words that say what to do.

use std::io;
use tokio_rustls::rustls::{AlertDescription, CertificateError, Error};

/// The reason in the error of a TLS handshake; `None` when it is about something else.
pub(super) fn reason(error: &io::Error) -> Option<String> {
    match error.get_ref()?.downcast_ref::<Error>()? {
        Error::InvalidCertificate(fault) => Some(certificate(fault)),
        // Whatever answers speaks another protocol.
        Error::InvalidMessage(_) => Some("the server does not speak it on this port: write redis://".to_owned()),
        // What is wrong with our own settings.
        Error::General(what) => Some(what.clone()),
        Error::AlertReceived(AlertDescription::CertificateRequired) => Some(
            "the server asks for a certificate of its clients: name one with `client_certificate_files`, or cert_file= and \
             key_file= in the URL"
                .to_owned(),
        ),
        other => Some(other.to_string()),
    }
}

/// What is wrong with a certificate. The client crate has only the form for programmers for most of it.
fn certificate(fault: &CertificateError) -> String {
    let fault = match fault {
        // The second one is by an authority of the same name.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "is signed by nobody who is trusted here: name the file of that authority with `ca_file`, or in SSL_CERT_FILE"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "is not valid yet: compare the clocks"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "is not for the host in the URL: write the name that it is for, also as server_name="
        }
        CertificateError::Revoked => "was revoked",
        // Its name is in no list of causes.
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "is signed by itself, as that of an authority: give the server one that an authority has signed"
        }
        other => return format!("the certificate of the server is refused: {other}"),
    };
    format!("the certificate of the server {fault}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_rustls::rustls::InvalidMessage;

    #[test]
    fn reasons_say_what_to_do() {
        let table = [
            (Error::InvalidCertificate(CertificateError::UnknownIssuer), "SSL_CERT_FILE"),
            (Error::InvalidCertificate(CertificateError::Expired), "has expired"),
            (Error::InvalidCertificate(CertificateError::NotValidForName), "not for the host"),
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
