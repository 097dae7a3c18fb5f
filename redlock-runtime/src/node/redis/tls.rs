//! TLS through rustls, trusting what the operating system trusts.

use super::stream::Stream;
use super::tls_provider;
use std::io;
use std::sync::Arc;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Speaks TLS on `stream`, and refuses a server whose certificate is not for `host`.
pub(super) async fn client<S: Stream>(host: &str, stream: S) -> io::Result<TlsStream<S>> {
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    // Reading the certificates takes a while.
    let configuration = tokio::task::spawn_blocking(configuration).await.map_err(io::Error::other)??;
    TlsConnector::from(Arc::new(configuration)).connect(name, stream).await
}

/// Read anew for each connection, so that a renewed CA bundle is used without a restart.
fn configuration() -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    if usable == 0 {
        return Err(io::Error::other(format!("no trusted certificates found on this system: {:?}", found.errors)));
    }
    let provider = tls_provider::find().ok_or_else(|| io::Error::other("rustls has no cryptography provider"))?;
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
