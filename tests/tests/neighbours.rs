//! Programs that use rustls for other reasons, or not at all. Their own TLS does not change, and TLS of locks works or reports the
//! missing feature.
//! Each program is built separately, because programs in one build share the features of rustls.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use redlock_tests::RedisServer;
use std::path::Path;
use tokio::process::Command;

/// Features of the program, and the expected outcome of its lock on a server with TLS.
const NEIGHBOURS: [(&str, &str); 4] = [
    ("rustls-default", "enable a feature of redlock-runtime, `tls-ring` or `tls-aws-lc-rs`, or `tls`"),
    ("rustls-default,tls", "locked"),
    ("rustls-ring,tls", "locked"),
    ("tls", "enable the feature `tls-ring` or `tls-aws-lc-rs` of redlock-runtime"),
];

#[tokio::test]
async fn tls_works_beside_other_rustls_users_or_explains_the_error() {
    let server = RedisServer::builder().tls().start().await;
    for (features, expected) in NEIGHBOURS {
        let said = output_with(features, &server).await;
        assert!(said.contains(expected), "beside {features}: {said}");
    }
}

/// Builds the program with `features` and runs it.
async fn output_with(features: &str, server: &RedisServer) -> String {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let mut run = Command::new(env!("CARGO"));
    run.args(["run", "--quiet", "--locked", "-p", "redlock-neighbours", "--features", features]);
    run.arg("--target-dir").arg(target).arg("--").arg(server.tls_url());
    run.env("SSL_CERT_FILE", server.ca_file()).env_remove("SSL_CERT_DIR");
    let output = run.current_dir(workspace).output().await.unwrap();
    assert!(output.status.success(), "beside {features}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}
