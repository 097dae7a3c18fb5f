//! TLS with the certificates that the operating system trusts.

use crate::support::builder;
use redlock_runtime::{LockError, NodeConfig, NodeError};
use redlock_tests::{Certificates, RedisServer};
use std::env;
use std::path::PathBuf;
use tokio::process::Command;

const URL: &str = "REDLOCK_TESTS_TLS_URL";

/// Runs the part that trusts the server's authority in a second process.
/// `SSL_CERT_FILE` is an environment variable, which a test cannot change for itself only.
#[tokio::test]
async fn server_with_a_trusted_certificate_is_accepted() {
    if let Ok(url) = env::var(URL) {
        let manager = builder([url]).build().unwrap();
        let guard = manager.try_acquire("order:7").await.unwrap();
        guard.extend().await.unwrap();
        guard.release().await.unwrap();
        println!("used over TLS");
        return;
    }
    let server = RedisServer::builder().password("secret").tls().start().await;
    let mut second = Command::new(env::current_exe().unwrap());
    second.args(["--exact", "--nocapture", "tls::server_with_a_trusted_certificate_is_accepted"]);
    second.env(URL, server.tls_url()).env("SSL_CERT_FILE", server.ca_file()).env_remove("SSL_CERT_DIR");
    let output = second.output().await.unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("used over TLS"), "{output:?}");
    assert!(server.inspect().keys().await.is_empty());
    // The connection asks for the permission of each command.
    let calls = server.inspect().calls("pexpire").await + server.inspect().calls("set").await;
    // The settings may have been stored there as well.
    assert!((2 + 2..=2 + 2 + 1).contains(&calls), "the lock was real: {calls}");
}

#[tokio::test]
async fn server_with_an_untrusted_certificate_is_rejected() {
    let server = RedisServer::builder().password("secret").tls().start().await;
    let manager = builder([server.tls_url()]).build().unwrap();
    let error = manager.try_acquire("order:7").await.unwrap_err();
    let [(_, NodeError::Tls(reason))] = crate::support::causes(&error)[..] else { panic!("{error:?}") };
    assert!(reason.contains("certificate") && reason.contains("SSL_CERT_FILE"), "{error}");
    assert!(matches!(error, LockError::Refused { .. }), "{error:?}");
    assert!(!format!("{error} {error:?} {manager:?}").contains("secret"), "{error:?}");
    assert_eq!(server.inspect().calls("set").await, 0);
}

#[tokio::test]
async fn certificate_files_in_the_url_are_used() {
    let server = RedisServer::builder().mutual_tls().start().await;
    let [certificate, key] = server.client_files();
    let ca = server.ca_file();
    let url = |parameters: &str| format!("{}?ca_file={}{parameters}", server.tls_url(), ca.display());
    let shown = format!("&cert_file={}&key_file={}", certificate.display(), key.display());
    for name in ["", "&server_name=localhost"] {
        let manager = builder([url(&format!("{shown}{name}"))]).build().unwrap();
        manager.try_acquire("order:7").await.unwrap().release().await.unwrap();
    }
    let table = [
        ("", "requires a client certificate: set one with `client_certificate_files`"),
        (&*format!("&cert_file=/nowhere&key_file={}", key.display()), "in /nowhere cannot be read"),
        (&format!("&cert_file={0}&key_file={0}", certificate.display()), "the key of this client in "),
        (&format!("{shown}&server_name=redis.internal"), "is not for the host in the URL"),
    ];
    for (parameters, expected) in table {
        let error = builder([url(parameters)]).build().unwrap().try_acquire("order:7").await.unwrap_err();
        assert!(matches!(error, LockError::Refused { .. }) && error.to_string().contains(expected), "{error}");
    }
    let error = builder([url(&format!("&cert_file={}", certificate.display()))]).build().unwrap_err();
    assert!(matches!(error, LockError::Configuration { .. }) && error.to_string().contains("set both"), "{error}");
}

#[tokio::test]
async fn pem_texts_replace_the_trust_store_of_the_system() {
    let [server, other] =
        [RedisServer::builder().mutual_tls().start().await, RedisServer::builder().mutual_tls().start().await];
    let read = |path: PathBuf| std::fs::read(path).unwrap();
    let config = |trusted: &RedisServer| {
        let [certificate, key] = server.client_files().map(read);
        NodeConfig::new(server.tls_url()).ca_pem(read(trusted.ca_file())).client_certificate_pem(certificate, key)
    };
    let manager = builder([config(&server)]).build().unwrap();
    manager.try_acquire("order:7").await.unwrap().release().await.unwrap();
    let error = builder([config(&other)]).build().unwrap().try_acquire("order:7").await.unwrap_err();
    assert!(error.to_string().contains("is not signed by a trusted authority"), "{error}");
}

#[tokio::test]
async fn server_without_tls_is_a_clear_error() {
    let server = RedisServer::start().await;
    let manager = builder([format!("rediss://127.0.0.1:{}", server.port())]).build().unwrap();
    let error = manager.try_acquire("order:7").await.unwrap_err();
    assert!(error.to_string().contains("redis://"), "{error}");
}

#[tokio::test]
async fn plain_connection_to_a_tls_server_is_a_clear_error() {
    let server = RedisServer::builder().tls().start().await;
    let manager = builder([server.tls_url().replace("rediss://", "redis://")]).build().unwrap();
    let error = manager.try_acquire("order:7").await.unwrap_err();
    assert!(error.to_string().contains("rediss://"), "{error}");
}

const NAMED: &str = "-addext subjectAltName=IP:127.0.0.1";

/// Starts a server with a certificate that `openssl req -x509` has made with these options.
async fn self_signed(options: &str) -> RedisServer {
    RedisServer::builder().tls_with(&Certificates::self_signed(options).await).start().await
}

fn trusting(url: &str, trusted: &RedisServer) -> String {
    format!("{url}?connect_timeout_ms=20000&ca_file={}", trusted.ca_file().display())
}

async fn refusal(url: String) -> String {
    let error = builder([url]).build().unwrap().try_acquire("order:7").await.unwrap_err();
    assert!(matches!(error, LockError::Refused { .. }), "{error:?}");
    error.to_string()
}

#[tokio::test]
async fn self_signed_certificate_is_trusted_by_its_own_file() {
    // By default, openssl marks it as the certificate of an authority.
    let kinds = ["", " -addext basicConstraints=critical,CA:FALSE", " -addext extendedKeyUsage=serverAuth"];
    let mut servers = Vec::new();
    for kind in kinds {
        servers.push(self_signed(&format!("{NAMED}{kind}")).await);
    }
    for server in &servers {
        let manager = builder([trusting(&server.tls_url(), server)]).build().unwrap();
        manager.try_acquire("order:7").await.unwrap().release().await.unwrap();
    }
    // The certificate of another server is refused, although it has the same name.
    for (server, other) in [(0, 1), (1, 0), (0, 2), (2, 1)] {
        let error = refusal(trusting(&servers[server].tls_url(), &servers[other])).await;
        assert!(error.contains("the certificate of the server is "), "{error}");
    }
    let error = refusal(servers[0].tls_url()).await;
    assert!(error.contains("set `ca_file` to this very certificate"), "{error}");
    let error = refusal(servers[1].tls_url()).await;
    assert!(error.contains("or to the server's own certificate if it is self-signed"), "{error}");
}

#[tokio::test]
async fn name_and_expiry_of_a_self_signed_certificate_are_checked() {
    let server = self_signed("-addext subjectAltName=DNS:redis.internal").await;
    let error = refusal(trusting(&server.tls_url(), &server)).await;
    assert!(error.contains("is not for the host in the URL") && error.contains("it is for redis.internal"), "{error}");
    let url = trusting(&server.tls_url(), &server) + "&server_name=redis.internal";
    builder([url]).build().unwrap().try_acquire("order:7").await.unwrap().release().await.unwrap();
    let certificates = Certificates::self_signed(NAMED).await.expired().await;
    let expired = RedisServer::builder().tls_with(&certificates).start().await;
    let error = refusal(trusting(&expired.tls_url(), &expired)).await;
    assert!(error.contains("has expired"), "{error}");
}

#[tokio::test]
async fn certificate_without_a_subject_alt_name_is_rejected_with_the_remedy() {
    let server = self_signed("").await;
    let url = server.tls_url().replace("127.0.0.1", "localhost");
    let error = refusal(trusting(&url, &server)).await;
    let expected =
        "has no subjectAltName, and the name in its CN is ignored: create a new certificate with a subjectAltName";
    assert!(error.contains(expected), "{error}");
}
