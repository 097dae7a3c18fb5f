//! A certificate authority and a server certificate for loopback, made by the `openssl` command.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use tokio::process::Command;

use crate::external::OPENSSL;
use crate::private_dir::PrivateDir;

/// Not an authority itself (rustls refuses those as servers), and named as clients will call it.
const EXTENSIONS: &str = "basicConstraints=CA:FALSE\nsubjectAltName=IP:127.0.0.1,DNS:localhost\n";
const NEW_KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";

pub(super) fn ca_file(dir: &PrivateDir) -> PathBuf {
    dir.join("ca.crt")
}

/// The certificate of a client, and its key.
pub(super) fn client_files(dir: &PrivateDir) -> [PathBuf; 2] {
    ["client.crt", "client.key"].map(|file| dir.join(file))
}

/// The directives of `redis.conf` that name the files made by [`generate`].
pub(super) fn directives(dir: &PrivateDir) -> impl Iterator<Item = (&'static str, PathBuf)> {
    let files = [("tls-ca-cert-file", "ca.crt"), ("tls-cert-file", "server.crt"), ("tls-key-file", "server.key")];
    files.into_iter().map(|(directive, file)| (directive, dir.join(file)))
}

/// Valid for two days: longer than any test run, too short to be of use to anybody else.
pub(super) async fn generate(dir: &PrivateDir) {
    fs::write(dir.join("server.ext"), EXTENSIONS).expect("server.ext is written");
    openssl(dir, &format!("req -x509 {NEW_KEY} -keyout ca.key -out ca.crt -days 2 -subj /CN=redlock-tests")).await;
    for (name, subject) in [("server", "localhost"), ("client", "orders")] {
        openssl(dir, &format!("req {NEW_KEY} -keyout {name}.key -out {name}.csr -subj /CN={subject}")).await;
        let sign = format!("x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -extfile server.ext");
        openssl(dir, &format!("{sign} -out {name}.crt -days 2")).await;
    }
}

async fn openssl(dir: &PrivateDir, arguments: &str) {
    let mut command = Command::new(OPENSSL.path());
    command.args(arguments.split(' ')).current_dir(dir.path()).stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await.unwrap_or_else(|error| OPENSSL.cannot_run(&error));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "openssl {arguments}: {complaint}");
}
