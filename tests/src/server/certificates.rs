//! Certificate authority and server certificate for loopback, made by the `openssl` command.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use tokio::process::Command;

use crate::external::OPENSSL;
use crate::private_dir::PrivateDir;

/// Extensions of the certificates. They do not mark an authority, since rustls refuses such a server, and they contain the names that
/// clients use.
const EXTENSIONS: &str = "basicConstraints=CA:FALSE\nsubjectAltName=IP:127.0.0.1,DNS:localhost\n";
const NEW_KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";

/// Authority with the certificates of a server on loopback and of a client, in a private folder.
#[derive(Clone, Debug)]
pub struct Certificates(Arc<PrivateDir>);

impl Certificates {
    /// Makes certificates that are valid for two days: longer than any test run, and too short for any other use.
    pub async fn generate() -> Self {
        let dir = PrivateDir::create();
        fs::write(dir.join("server.ext"), EXTENSIONS).expect("server.ext is written");
        openssl(&dir, &format!("req -x509 {NEW_KEY} -keyout ca.key -out ca.crt -days 2 -subj /CN=redlock-tests")).await;
        for (name, subject) in [("server", "localhost"), ("client", "orders")] {
            openssl(&dir, &format!("req {NEW_KEY} -keyout {name}.key -out {name}.csr -subj /CN={subject}")).await;
            let sign = format!("x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -extfile server.ext");
            openssl(&dir, &format!("{sign} -out {name}.crt -days 2")).await;
        }
        Self(Arc::new(dir))
    }

    /// Makes a server certificate that is signed by its own key, as `openssl req -x509` does. `options` may contain further arguments,
    /// such as `-addext subjectAltName=IP:127.0.0.1`. The certificate is for `localhost`. There is neither an authority nor a client
    /// certificate.
    pub async fn self_signed(options: &str) -> Self {
        let dir = PrivateDir::create();
        let options = if options.is_empty() { String::new() } else { format!(" {options}") };
        openssl(
            &dir,
            &format!("req -x509 {NEW_KEY} -keyout server.key -out server.crt -days 2 -subj /CN=localhost{options}"),
        )
        .await;
        fs::copy(dir.join("server.crt"), dir.join("ca.crt")).expect("the certificate is copied");
        Self(Arc::new(dir))
    }

    /// Replaces the server certificate by one that expired yesterday and is signed by its own key.
    pub async fn expired(self) -> Self {
        openssl(&self.0, "x509 -in server.crt -signkey server.key -days -1 -out expired.crt").await;
        for name in ["server.crt", "ca.crt"] {
            fs::copy(self.0.join("expired.crt"), self.0.join(name)).expect("the certificate is copied");
        }
        self
    }

    pub(super) fn ca_file(&self) -> PathBuf {
        self.0.join("ca.crt")
    }

    /// Returns the certificate of the client, and its key.
    pub(super) fn client_files(&self) -> [PathBuf; 2] {
        ["client.crt", "client.key"].map(|file| self.0.join(file))
    }

    /// Returns the directives of `redis.conf` that name the files of the server.
    pub(super) fn directives(&self) -> impl Iterator<Item = (&'static str, PathBuf)> {
        let files = [("tls-ca-cert-file", "ca.crt"), ("tls-cert-file", "server.crt"), ("tls-key-file", "server.key")];
        files.into_iter().map(|(directive, file)| (directive, self.0.join(file)))
    }
}

async fn openssl(dir: &PrivateDir, arguments: &str) {
    let mut command = Command::new(OPENSSL.path());
    command.args(arguments.split(' ')).current_dir(dir.path()).stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await.unwrap_or_else(|error| OPENSSL.cannot_run(&error));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "openssl {arguments}: {complaint}");
}
