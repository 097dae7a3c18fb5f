//! Missing permissions and commands: `ready` and `check` name the missing permission.

use crate::health::{at, keys, unfit};
use crate::support::{builder, warnings};
use redlock_runtime::admin::ReleaseStats;
use redlock_runtime::{LockError, LockManager, LockRequest};
use redlock_tests::{Builder, PATIENCE, RedisServer, eventually};

/// Rules that every lock needs.
const NEEDED: [&str; 14] = [
    "+set", "+get", "+del", "+pttl", "+pexpire", "+time", "+zadd", "+zcard", "+zcount", "+zpopmin", "+zrange",
    "+zrank", "+zrem", "+zscore",
];

/// Commands that store and run scripts. `+eval` is an alternative to both.
const SCRIPTS: [&str; 2] = ["+script|load", "+evalsha"];

/// Rules that some locks need, or that make locks safer, with the report without each of them.
const USEFUL: [(&str, &str); 6] = [
    ("+eval", "after a SCRIPT FLUSH, locks fail until the next connection: the user may not run EVAL"),
    ("+publish", "waiting callers are not woken and ask again and again: the user may not run PUBLISH"),
    ("+subscribe", "waiting callers are not woken and ask again and again"),
    ("&redlock::*", "the user may not publish on channels"),
    ("~redlock:f:*", "fenced locks fail: the user may not use the keys of fencing numbers"),
    ("+info", "the user may not ask who the server is"),
];

const KEYS: [&str; 2] = ["~redlock:check:*", "~{redlock:check:*"];

/// Returns all rules except `missing`.
fn rules(missing: &str) -> String {
    let useful = USEFUL.iter().map(|(rule, _)| *rule);
    let all = ["resetchannels", "+config|get"].into_iter().chain(SCRIPTS).chain(KEYS).chain(NEEDED).chain(useful);
    all.filter(|rule| *rule != missing).collect::<Vec<_>>().join(" ")
}

/// Returns a manager of one node whose user has these `rules`.
async fn user(server: &RedisServer, rules: &str) -> LockManager {
    let words: Vec<_> =
        ["ACL", "SETUSER", "alice", "reset", "on", ">w0nder"].into_iter().chain(rules.split(' ')).collect();
    server.inspect().command::<()>(&words).await;
    at(&server.url().replace("redis://", "redis://alice:w0nder@"))
}

#[tokio::test]
async fn user_with_all_permissions_is_ready() {
    let server = RedisServer::start().await;
    let manager = user(&server, &rules("")).await;
    manager.ready().await.unwrap();
    let report = manager.check().await;
    assert!(warnings(&report).is_empty(), "{:?}", report.warnings());
    let capabilities = report.nodes[0].capabilities;
    assert_eq!((capabilities.locks, capabilities.fencing, capabilities.pub_sub), (Some(true), Some(true), Some(true)));
    assert!(report.to_string().ends_with(", wake-ups, locks work"), "{report}");
    assert_eq!(keys(&server).await, 0);
    assert_eq!(manager.stats().releases, ReleaseStats::default());
}

#[tokio::test]
async fn ready_fails_and_names_a_permission_that_all_locks_need() {
    let server = RedisServer::start().await;
    for missing in NEEDED {
        let reports = server.inspect().calls("info").await;
        let manager = user(&server, &rules(missing)).await;
        let error = manager.ready().await.expect_err(missing);
        assert_eq!(server.inspect().calls("info").await - reports, 3, "{missing}: asked once, by us and by the test");
        assert!(error.to_string().contains(&format!("grant it `{missing}`")), "{missing}: {error}");
        let command = missing.trim_start_matches('+').to_uppercase();
        assert!(unfit(&manager).await.contains(&format!("the user may not run {command}:")), "{missing}: {error}");
        assert_eq!(keys(&server).await, 0, "{missing}: nothing is taken that cannot be given back");
        let report = manager.check().await;
        assert_eq!(report.nodes[0].refusals.iter().map(|refusal| &*refusal.command).collect::<Vec<_>>(), [command]);
    }
}

#[tokio::test]
async fn check_warns_of_permissions_that_some_locks_need() {
    let server = RedisServer::start().await;
    for (missing, expected) in USEFUL {
        let manager = user(&server, &rules(missing)).await;
        manager.ready().await.unwrap_or_else(|error| panic!("{missing}: {error}"));
        let report = manager.check().await;
        let warnings = warnings(&report);
        assert_eq!(warnings.len(), 1, "{missing}: {warnings:?}");
        assert_eq!(warnings.iter().filter(|warning| warning.contains(expected)).count(), 1, "{missing}: {warnings:?}");
        let tells = |warning: &String| warning.contains("grant") && warning.contains(missing);
        assert!(warnings.iter().all(tells), "{missing}: {warnings:?}");
        let capabilities = report.nodes[0].capabilities;
        assert_eq!(capabilities.locks, Some(true), "{missing}: {report}");
        assert_eq!(capabilities.fencing, Some(!expected.contains("fence")), "{missing}: {report}");
        assert_eq!(capabilities.pub_sub, Some(!expected.contains("waiting") && missing != "&redlock::*"), "{missing}");
        assert_eq!(keys(&server).await, 0, "{missing}");
    }
}

#[tokio::test]
async fn key_patterns_of_the_user_are_checked_against_the_namespace() {
    let server = RedisServer::start().await;
    let rules = |keys: &str| {
        let rules = rules("").replace(KEYS[0], keys).replace(KEYS[1], "");
        rules.replace("&redlock::*", "&redlock::* &redlock:shop:*").replace("~redlock:f:*", "")
    };
    let below = |manager: LockManager| {
        drop(manager);
        builder([server.url().replace("redis://", "redis://alice:w0nder@")]).namespace("shop").build().unwrap()
    };
    // Can acquire locks, but not release them: the queue is refused.
    let manager = below(user(&server, &rules("~shop:*")).await);
    let reason = unfit(&manager).await;
    assert!(reason.contains("the queue beside a lock: grant it `~{shop:*` beside `~shop:*`"), "{reason}");
    assert_eq!(keys(&server).await, 0);

    // Locks whose queues have other names.
    let manager = below(user(&server, &rules("~shop:* ~{shop:*")).await);
    manager.ready().await.unwrap();
    let warned = warnings(&manager.check().await);
    assert_eq!(warned.len(), 2, "{warned:?}");
    assert!(
        warned[0].contains("grant it `~{*}:q:shop:*`") && warned[1].contains("grant it `~{*}:t:shop:*`"),
        "{warned:?}"
    );

    let manager = below(user(&server, &rules("~shop:* ~{shop:* ~{*}:q:shop:* ~{*}:t:shop:*")).await);
    manager.ready().await.unwrap();
    assert!(warnings(&manager.check().await).is_empty());

    // Before Redis 7, a user cannot have read access without write access.
    let may_only_read = server.inspect().try_command::<()>(&["ACL", "SETUSER", "reader", "%R~shop:*"]).await;
    if may_only_read.is_ok() {
        let manager = below(user(&server, &rules("%R~shop:* ~{shop:*")).await);
        let reason = unfit(&manager).await;
        assert!(reason.contains("may not write the key of a lock: grant it `~shop:* ~{shop:*`"), "{reason}");
    }

    // Without a namespace, the manager does not know which names the user may use.
    let manager = user(&server, &rules("~order:* ~{order:*")).await;
    manager.ready().await.unwrap();
    let report = manager.check().await;
    assert_eq!(report.nodes[0].capabilities.locks, None, "{report}");
    let warnings = warnings(&report);
    let expected = "grant it `~redlock:check:* ~{redlock:check:*`, or give the manager a `namespace`";
    assert!(warnings.len() == 1 && warnings[0].contains(expected), "{warnings:?}");

    // The missing command is reported even so.
    let rules = rules("~order:* ~{order:*").replace("+evalsha ", "").replace("+eval ", "");
    let manager = user(&server, &rules).await;
    assert!(unfit(&manager).await.contains("grant it `+evalsha`"));
    assert_eq!(keys(&server).await, 0);
}

#[tokio::test]
async fn refused_acquisition_leaves_no_pending_release() {
    let server = RedisServer::start().await;
    let manager = user(&server, &rules("")).await;
    let (alone, shared) = (LockRequest::new("order:7"), LockRequest::shared("order:7"));
    for request in [alone.clone(), shared, alone.permits(2)] {
        let error = manager.acquire(request.wait(PATIENCE)).await.unwrap_err();
        assert!(matches!(error, LockError::Refused { .. }), "{error:?}");
    }
    assert!(manager.shutdown().await, "{:?}", manager.stats().releases);
    assert_eq!(manager.stats().releases, ReleaseStats::default());
}

#[tokio::test]
async fn user_without_script_permissions_fails_at_once_with_the_remedy() {
    let server = RedisServer::start().await;
    for (missing, expected) in [(SCRIPTS[0], "grant it `+script"), (SCRIPTS[1], "grant it `+evalsha`")] {
        let ready = user(&server, &rules(missing)).await;
        ready.ready().await.unwrap_or_else(|error| panic!("{missing}: {error}"));
        assert!(warnings(&ready.check().await).is_empty(), "{missing}");
        let manager = user(&server, &rules(missing).replace("+eval ", "")).await;
        let error = manager.ready().await.unwrap_err();
        // Before Redis 7, the server does not name the subcommand.
        assert!(error.to_string().contains(expected), "{error}");
        let warnings = manager.check().await.warnings();
        assert!(warnings[0].contains(expected), "{warnings:?}");
        assert!(!manager.try_acquire("redlock:check:7").await.unwrap_err().is_transient(), "{missing}");
        assert_eq!(keys(&server).await, 0, "{missing}");
    }
}

#[tokio::test]
async fn ready_names_a_renamed_command() {
    for commands in [&["EVALSHA", "EVAL"][..], &["GET"]] {
        let hide = |builder, command: &&str| Builder::without_command(builder, command);
        let server = commands.iter().fold(RedisServer::builder(), hide).start().await;
        let reason = unfit(&at(&server.url())).await;
        let expected = format!("the server does not know {}: remove the `rename-command`", commands[0]);
        assert!(reason.contains(&expected), "{reason}");
        assert_eq!(server.inspect().keys().await, [""; 0]);
    }
}

#[tokio::test]
async fn permission_granted_later_is_detected() {
    let server = RedisServer::start().await;
    let manager = user(&server, &rules("+get").replace(KEYS[0], "~redlock:check:* ~order:* ~{order:*")).await;
    let error = manager.acquire("order:7").await.unwrap_err();
    assert!(matches!(error, LockError::Refused { .. }) && error.to_string().contains("grant it `+get`"), "{error:?}");
    assert_eq!(keys(&server).await, 0, "the lock could not be released");
    server.inspect().command::<()>(&["ACL", "SETUSER", "alice", "+get"]).await;
    eventually(PATIENCE, "the permission is noticed", async || manager.acquire("order:7").await.map(drop)).await;
    assert!(manager.shutdown().await, "{:?}", manager.stats().releases);
    assert_eq!(keys(&server).await, 0);
}
