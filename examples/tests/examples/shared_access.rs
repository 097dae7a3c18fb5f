//! Test of `shared_access`: both clients connect to a server that requires TLS, a client certificate and a token.

use crate::program::{self, Outcome, alone};
use redlock_tests::RedisServer;
use std::path::Path;

async fn count(server: &RedisServer, token_file: &Path) -> Outcome {
    let mut command = program::command(env!("CARGO_BIN_EXE_shared_access"), None);
    let [certificate, key] = server.client_files();
    // Remove the password from the URL: the token comes from the file.
    let url = server.tls_url().replace(":first@", "@");
    command.arg(url).arg(server.ca_file()).arg(certificate).arg(key).arg(token_file);
    program::run(command).await
}

#[tokio::test]
async fn locks_and_data_share_the_settings_and_follow_token_changes() {
    let _alone = alone().await;
    let rules = "~* &* +@all";
    let server = RedisServer::builder().mutual_tls().user("orders", "first", rules).password("root").start().await;
    let token_file = server.dir().join("token");
    std::fs::write(&token_file, "first\n").unwrap();
    let outcome = count(&server, &token_file).await;
    assert_eq!(outcome.stdout, "visits: 1\n", "{outcome:?}");
    server.inspect().command::<()>(&["ACL", "SETUSER", "orders", "resetpass", ">second"]).await;
    let outcome = count(&server, &token_file).await;
    assert!(!outcome.succeeded && outcome.stderr.contains("WRONGPASS"), "{outcome:?}");
    assert!(!outcome.stderr.contains("first"), "{outcome:?}");
    std::fs::write(&token_file, "second\n").unwrap();
    assert_eq!(count(&server, &token_file).await.stdout, "visits: 2\n");
}
