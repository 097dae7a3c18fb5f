//! Kinds of servers and log-ins: successes, and refusals with their messages.

use crate::support::{
    acquired_everywhere, assert_nothing_left, builder, causes, connected, manager, owner_at, wait_until_queued,
};
use crate::waiters::{obtained, patient, queue, waiting};
use redlock_runtime::{LockError, LockManager, NodeError};
use redlock_tests::{Builder, Nodes, PATIENCE, RedisServer, eventually};

const KEY: &str = "order:7";

const SETTINGS: &str = include_str!("../../../redlock-runtime/docs/guide/production/server_settings.md");

/// Returns the rules from the guide for an ACL user with keys that start with `order:`: the second cells of the table.
fn documented_rules() -> String {
    let (_, section) = SETTINGS.split_once("\n# Permissions\n").unwrap();
    let (section, _) = section.split_once("\n# ").unwrap();
    let cells = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").nth(1));
    let quoted: Vec<_> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    format!("resetchannels {}", quoted.join(" ").replace("\\|", "|"))
}

/// Rules that every lock needs. `eval` is for servers that have lost their scripts.
const RULES: [&str; 19] = [
    "~order:*",
    "~{order:*",
    "+set",
    "+get",
    "+del",
    "+pttl",
    "+pexpire",
    "+time",
    "+zadd",
    "+zcard",
    "+zcount",
    "+zpopmin",
    "+zrange",
    "+zrank",
    "+zrem",
    "+zscore",
    "+evalsha",
    "+eval",
    "+script|load",
];

type Configure = fn(Builder) -> Builder;

async fn one(configure: impl Fn(Builder) -> Builder) -> Nodes {
    Nodes::start_with(1, |_, builder| configure(builder)).await
}

fn at(url: impl Into<String>) -> LockManager {
    builder([url.into()]).build().unwrap()
}

/// Acquires, extends and releases a lock, also after the server has lost its scripts.
async fn use_lock(manager: &LockManager, node: &RedisServer) -> Result<(), LockError> {
    for _ in 0..2 {
        let guard = manager.try_acquire(KEY).await?;
        guard.extend().await?;
        guard.release().await?;
        node.inspect().flush_scripts().await;
    }
    Ok(())
}

/// Hands a lock to a waiting manager, with a wake-up.
async fn wait_for_lock(holder: &LockManager, other: &LockManager, nodes: &Nodes) {
    let held = holder.acquire(KEY).await.unwrap();
    let call = waiting(other, patient(KEY));
    wait_until_queued(nodes, KEY, 1).await;
    let [token] = queue(nodes[0].inspect(), KEY).await.try_into().unwrap();
    held.release().await.unwrap();
    // A lock that cannot be announced would be free.
    assert_eq!(owner_at(&nodes[0], KEY).await, Some(token));
    obtained(call).await.release().await.unwrap();
}

/// Returns the single cause of the refusal.
fn refusal(error: &LockError) -> String {
    match causes(error)[..] {
        [(_, NodeError::Refused(answer))] => answer.to_string(),
        _ => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn password_user_database_socket_and_old_protocol_work() {
    let settings: [(&str, Configure); 6] = [
        ("plain", |builder| builder),
        ("password", |builder| builder.password("p@ss:w/rd")),
        ("user", |builder| builder.password("x").user("alice", "w0nder", "~* &* +@all")),
        ("minimal user", |builder| builder.password("x").user("alice", "w0nder", &documented_rules())),
        ("RESP2 only", |builder| builder.without_command("HELLO")),
        ("RESP2 only, password", |builder| builder.password("x").without_command("HELLO")),
    ];
    for (name, configure) in settings {
        let nodes = one(|builder| configure(builder).unix_socket()).await;
        for url in [nodes[0].url(), nodes[0].unix_url()] {
            let manager = at(url);
            manager.ready().await.unwrap_or_else(|error| panic!("{name}: {error}"));
            use_lock(&manager, &nodes[0]).await.unwrap_or_else(|error| panic!("{name}: {error}"));
            wait_for_lock(&manager, &at(nodes[0].url()), &nodes).await;
            assert_nothing_left(&manager, &nodes).await;
        }
    }
}

#[tokio::test]
async fn databases_have_separate_locks() {
    let nodes = Nodes::start(1).await;
    let third = at(format!("{}3", nodes[0].url()));
    let guard = third.acquire(KEY).await.unwrap();
    assert_eq!(nodes[0].inspect_database(3).get(KEY).await.as_deref(), Some(guard.token().as_str()));
    let zeroth = manager(&nodes).await;
    zeroth.try_acquire(KEY).await.unwrap().release().await.unwrap();
    guard.release().await.unwrap();
    assert!(nodes[0].inspect_database(3).keys().await.is_empty());
}

#[tokio::test]
async fn namespace_prefixes_the_key_only_in_redis() {
    let nodes = Nodes::start(1).await;
    let manager = builder(nodes.urls()).namespace("shop").build().unwrap();
    let guard = manager.acquire(KEY).await.unwrap();
    assert_eq!(guard.key().as_str(), KEY);
    assert_eq!(nodes[0].inspect().keys().await, ["shop:order:7"]);
    drop(guard);
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn namespaces_never_overlap() {
    let nodes = Nodes::start(1).await;
    let [shop, eu] = ["shop", "shop:eu"].map(|namespace| builder(nodes.urls()).namespace(namespace).build().unwrap());
    let guards = [shop.acquire("eu:7").await.unwrap(), eu.try_acquire("7").await.unwrap()];
    let mut keys = nodes[0].inspect().keys().await;
    keys.sort();
    assert_eq!(keys, ["shop%3Aeu:7", "shop:eu:7"]);
    drop(guards);
    assert_nothing_left(&shop, &nodes).await;
}

#[tokio::test]
async fn wrong_password_is_a_clear_error_without_the_password() {
    let configure = |builder: Builder| builder.password("secret-1").user("alice", "secret-2", "~* &* +@all");
    for old in [false, true] {
        let nodes =
            one(|builder| if old { configure(builder).without_command("HELLO") } else { configure(builder) }).await;
        let address = format!("127.0.0.1:{}", nodes[0].port());
        let wrong = "WRONGPASS: that user or password is wrong";
        let logins = [("", "NOAUTH"), (":secret-3@", wrong), ("alice:secret-3@", wrong)];
        for (login, expected) in logins {
            let manager = at(format!("redis://{login}{address}"));
            let error = manager.try_acquire(KEY).await.unwrap_err();
            assert!(refusal(&error).starts_with(expected), "{login}: {error:?}");
            let text = format!("{error} {error:?} {manager:?}");
            assert!(text.contains(expected) && text.contains(&address), "{text}");
            assert!(!text.contains("secret"), "{text}");
        }
    }
}

#[tokio::test]
async fn missing_permission_is_a_clear_error() {
    // A user with either of the last two rules runs scripts by their text.
    let by_text = ["+evalsha", "+script|load"];
    for (i, missing) in RULES.iter().enumerate().filter(|(_, rule)| !by_text.contains(rule)) {
        let rules: Vec<_> = RULES.iter().enumerate().filter(|(j, _)| i != *j).map(|(_, rule)| *rule).collect();
        let nodes = one(|builder| builder.password("x").user("alice", "w0nder", &rules.join(" "))).await;
        let manager = at(nodes[0].url());
        if ["+evalsha", "+script|load"].contains(missing) {
            // Scripts run by their source.
            use_lock(&manager, &nodes[0]).await.unwrap_or_else(|error| panic!("{missing}: {error}"));
            continue;
        }
        let error = use_lock(&manager, &nodes[0]).await.expect_err(missing);
        // The second text is the error of a script whose caller may not use a command.
        let words = ["permission", "can't run this command", "the user may not run"];
        assert!(words.iter().any(|words| error.to_string().contains(words)), "{missing}: {error}");
    }
}

#[tokio::test]
async fn server_without_scripts_is_a_clear_error() {
    let nodes = one(|builder| builder.without_command("SCRIPT").without_command("EVAL")).await;
    let manager = at(nodes[0].url());
    let refusal = refusal(&manager.try_acquire(KEY).await.unwrap_err());
    assert!(refusal.contains("unknown command") && refusal.contains("SCRIPT"), "{refusal}");
    let error = manager.ready().await.unwrap_err().to_string();
    assert!(
        error.contains(&refusal) && error.ends_with("remove the `rename-command` that hides it, or use another server")
    );
}

#[tokio::test]
async fn read_only_replica_is_a_clear_error() {
    let master = RedisServer::start().await;
    let nodes = one(|builder| builder.replica_of(&master)).await;
    let manager = at(nodes[0].url());
    let error = manager.try_acquire(KEY).await.unwrap_err();
    assert_eq!(causes(&error)[0].1, &NodeError::Replica, "{error}");
    assert!(master.inspect().keys().await.is_empty());
    assert!(manager.shutdown().await, "there is nothing to give back");
}

#[tokio::test]
async fn lost_scripts_are_reloaded() {
    // Defect 17: NOSCRIPT after SCRIPT FLUSH or a restart breaks the release.
    for size in crate::support::SIZES {
        let nodes = Nodes::start(size).await;
        let manager = manager(&nodes).await;
        let guard = acquired_everywhere(&manager, &nodes, KEY).await;
        nodes.flush_scripts().await;
        guard.extend().await.unwrap();
        nodes.flush_scripts().await;
        guard.release().await.unwrap();
        let guard = manager.acquire(KEY).await.unwrap();
        nodes.flush_scripts().await;
        drop(guard);
        assert_nothing_left(&manager, &nodes).await;
    }
    let nodes = Nodes::start(1).await;
    let manager = manager(&nodes).await;
    nodes[0].restart_empty().await;
    eventually(PATIENCE, "used again", async || use_lock(&manager, &nodes[0]).await).await;
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn server_out_of_memory_is_a_clear_error() {
    let nodes = one(|builder| builder.config("maxmemory", &["1"])).await;
    let manager = at(nodes[0].url());
    let error = manager.try_acquire(KEY).await.unwrap_err();
    assert!(refusal(&error).starts_with("OOM"), "{error}");
    nodes[0].inspect().command::<()>(&["CONFIG", "SET", "maxmemory", "0"]).await;
    use_lock(&connected(builder(nodes.urls()), &nodes).await, &nodes[0]).await.unwrap();
    assert_nothing_left(&manager, &nodes).await;
}
