//! TLS through rustls. By default, it trusts the authorities of the operating system.

use super::own_authorities::OwnAuthorities;
use super::stream::Stream;
use super::tls_provider;
use super::tls_settings::TlsSettings;
use std::io;
use std::sync::Arc;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Speaks TLS on `stream`, and refuses a server whose certificate is not for `host`, or the name in `settings`.
pub(super) async fn client<S: Stream>(host: &str, settings: &TlsSettings, stream: S) -> io::Result<TlsStream<S>> {
    let name = settings.server_name.as_deref().unwrap_or(host);
    let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
    let settings = settings.clone();
    // Reading the certificates takes a while.
    let configuration = tokio::task::spawn_blocking(move || configuration(&settings));
    let configuration = configuration.await.map_err(io::Error::other)??;
    TlsConnector::from(Arc::new(configuration)).connect(name, stream).await
}

/// Creates the configuration, for each connection again, so that renewed certificates are used without a restart.
fn configuration(settings: &TlsSettings) -> io::Result<ClientConfig> {
    let provider = tls_provider::find().ok_or_else(|| io::Error::other("rustls has no cryptography provider"))?;
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    let builder = match settings.authorities()? {
        Some(authorities) => {
            let verifier = OwnAuthorities::new(authorities, provider)?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
        None => builder.with_root_certificates(system_roots()?),
    };
    match settings.identity()? {
        Some((certificates, key)) => builder.with_client_auth_cert(certificates, key).map_err(io::Error::other),
        None => Ok(builder.with_no_client_auth()),
    }
}

/// Returns the authorities that the operating system trusts.
fn system_roots() -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    if usable == 0 {
        return Err(io::Error::other(format!("no trusted certificates found on this system: {:?}", found.errors)));
    }
    Ok(roots)
}
