//! The rows of the permission table that no lock needs: the command of each row works with its rules, and says so without each of them.
//! `permissions` and `sentinels` have the tests of `+info` and `+wait`.

use crate::support::{builder, warnings};
use redlock_runtime::admin::Holder;
use redlock_runtime::{LockManager, NodeConfig};
use redlock_tests::{PATIENCE, RedisServer, eventually};

/// Rules for every lock with keys that begin with `order:`, and for wake-ups and fencing.
const OF_LOCKS: &str = "resetchannels ~order:* ~{order:* &redlock::* ~redlock:f:* +set +get +del +pttl +pexpire +time +zadd +zcard +zcount \
                        +zpopmin +zrange +zrank +zrem +zscore +evalsha +eval +script|load +publish +subscribe +info";

/// The tested rows, as they are in the guide.
const CHECK: &str = "~redlock:check:* ~{redlock:check:*";
const NAME: &str = "+client|setname";
const COMMAND: [&str; 3] = ["+client|list", "+scan", "+getrange"];
const OPTIONAL: [&str; 5] = ["+client|tracking", "+config|get", "+script|exists", "+select", "+wait"];

/// Gives the user `alice` the rules of locks and `rules`. Returns the URL of the server for this user.
async fn url(server: &RedisServer, rules: &[&str]) -> String {
    let words = ["ACL", "SETUSER", "alice", "reset", "on", ">w0nder"].into_iter();
    let words: Vec<_> = words.chain(OF_LOCKS.split_whitespace()).chain(rules.iter().copied()).collect();
    server.inspect().command::<()>(&words).await;
    server.url().replace("redis://", "redis://alice:w0nder@")
}

async fn user(server: &RedisServer, rules: &[&str]) -> LockManager {
    builder([url(server, rules).await]).build().unwrap()
}

async fn assert_locks_work(manager: &LockManager) {
    let guard = manager.acquire("order:7").await.unwrap();
    guard.extend().await.unwrap();
    guard.release().await.unwrap();
}

/// Returns `rules` without one of them.
fn without<'a>(rules: &[&'a str], missing: &str) -> Vec<&'a str> {
    rules.iter().copied().filter(|rule| *rule != missing).collect()
}

#[test]
fn rows_are_those_of_the_guide() {
    let guide = include_str!("../../../redlock-runtime/docs/guide/production/server_settings.md").replace("\\|", "|");
    let [list, scan, getrange] = COMMAND;
    let command = format!("`{list}` (before Redis 7: `+client`) and `{scan} {getrange}`");
    for row in [format!("`{CHECK}`"), format!("`{NAME}`"), command] {
        assert!(guide.contains(&row), "{row}");
    }
    for rule in OPTIONAL {
        assert!(guide.lines().any(|line| line.starts_with("- `") && line.contains(rule)), "{rule}");
    }
}

#[tokio::test]
async fn check_tries_a_lock_with_its_key_patterns_and_names_a_missing_one() {
    let server = RedisServer::start().await;
    let rules: Vec<_> = CHECK.split(' ').collect();
    let manager = user(&server, &rules).await;
    manager.ready().await.unwrap();
    let report = manager.check().await;
    assert_eq!((report.nodes[0].capabilities.locks, warnings(&report)), (Some(true), Vec::new()));
    for missing in [&rules[..], &rules[..1], &rules[1..]] {
        let left: Vec<_> = rules.iter().copied().filter(|rule| !missing.contains(rule)).collect();
        let manager = user(&server, &left).await;
        let report = manager.check().await;
        assert_ne!(report.nodes[0].capabilities.locks, Some(true), "{missing:?}: {report}");
        let warned = warnings(&report);
        assert!(
            warned.iter().any(|warning| warning.contains("grant it") && warning.contains(missing[0])),
            "{warned:?}"
        );
        // `ready` and `check` concern their own key. Other locks work even so.
        assert_locks_work(&manager).await;
    }
}

#[tokio::test]
async fn process_is_shown_with_its_name_only_if_it_may_set_one() {
    let server = RedisServer::start().await;
    let operator = builder([server.url()]).build().unwrap();
    for rules in [&[NAME][..], &[]] {
        let manager = user(&server, rules).await;
        let guard = manager.acquire("order:7").await.unwrap();
        let inspection = operator.inspect("order:7").await;
        let owner = inspection.holder().and_then(Holder::owner).unwrap();
        assert_eq!(owner.label.is_some(), !rules.is_empty(), "{inspection}");
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn inspect_and_list_work_with_their_rules_and_name_a_missing_one() {
    let server = RedisServer::start().await;
    let holder = user(&server, &[NAME]).await;
    let guard = holder.acquire("order:7").await.unwrap();
    for missing in [""].into_iter().chain(COMMAND) {
        let rules = without(&COMMAND, missing);
        server.inspect().command::<()>(&["ACL", "SETUSER", "bob", "reset", "on", ">w0nder"]).await;
        let words: Vec<_> = OF_LOCKS.split_whitespace().chain(rules).collect();
        server.inspect().command::<()>(&[&["ACL", "SETUSER", "bob"], &words[..]].concat()).await;
        let operator = builder([server.url().replace("redis://", "redis://bob:w0nder@")]).build().unwrap();
        let inspection = operator.inspect("order:7").await;
        let owner = inspection.holder().and_then(Holder::owner).unwrap();
        let unnamed = inspection.nodes[0].client_list_error.as_ref().map(ToString::to_string);
        let is_named = missing != COMMAND[0];
        assert_eq!((owner.label.is_some(), unnamed.is_none()), (is_named, is_named), "{missing}: {inspection}");
        assert!(unnamed.is_none_or(|text| text.contains(missing)), "{missing}");
        let list = operator.list("order:*").await;
        let fails = COMMAND[1..].contains(&missing);
        assert_eq!(list.keys.len(), usize::from(!fails), "{missing}: {list:?}");
        assert_eq!(list.failures.len(), usize::from(fails), "{missing}: {list:?}");
        assert!(list.failures.iter().all(|failure| failure.error().to_string().contains(missing)), "{list:?}");
    }
    guard.release().await.unwrap();
}

#[tokio::test]
async fn optional_rules_change_what_is_known_and_no_lock_needs_them() {
    let server = RedisServer::start().await;
    for missing in [""].into_iter().chain(OPTIONAL) {
        let rules = without(&OPTIONAL, missing);
        let script = |name: &'static str| server.inspect().calls_of([name, "script"]);
        let loaded = script("script|load").await;
        let manager = user(&server, &rules).await;
        assert_locks_work(&manager).await;
        let is_loaded = script("script|load").await > loaded;
        // The first manager of all has to load them.
        assert_eq!(is_loaded, missing.is_empty() || missing == "+script|exists", "{missing}");
        let report = manager.check().await;
        assert_eq!(report.nodes[0].persistence.is_some(), missing != "+config|get", "{missing}: {report}");
    }
}

#[tokio::test]
async fn database_is_selected_only_by_a_user_who_may() {
    let server = RedisServer::start().await;
    let in_database = |url: String| builder([format!("{url}1")]).build().unwrap();
    assert_locks_work(&in_database(url(&server, &["+select"]).await)).await;
    let error = in_database(url(&server, &[]).await).ready().await.unwrap_err().to_string();
    assert!(error.contains("`+select`"), "{error}");
}

#[tokio::test]
async fn replicas_confirm_a_lock_of_a_user_who_may_wait() {
    let server = RedisServer::start().await;
    let replica = RedisServer::builder().replica_of(&server).start().await;
    let node = async |rules: &[&str]| NodeConfig::new(url(&server, rules).await).confirm_replicas(1);
    let manager = builder([node(&["+wait"]).await]).build().unwrap();
    eventually(PATIENCE, "the replica confirms", async || manager.try_acquire("order:7").await.map(drop)).await;
    let error = builder([node(&[]).await]).build().unwrap().ready().await.unwrap_err().to_string();
    assert!(error.contains("+wait"), "{error}");
    drop(replica);
}
