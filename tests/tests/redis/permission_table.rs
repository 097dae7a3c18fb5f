//! Every kind of lock under every row of the permission table of the guide, and without each single rule of it.
//! A lock works, or is refused before anything is written, or leaves no trace. `ready` or `check` report the missing rule before.

use crate::support::{builder, warnings};
use crate::waiters::{Waiting, waiting};
use redlock_runtime::admin::BreakOptions;
use redlock_runtime::{LockError, LockManager, LockPart, LockRequest};
use redlock_tests::{Nodes, PATIENCE, eventually};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::timeout;

const NAMESPACE: &str = "order";

/// Far longer than the test waits, so a leftover does not expire unnoticed.
const TTL: Duration = Duration::from_secs(120);

/// Rows for some kinds of locks, and the report of `ready` or `check` without one of their rules. Every lock needs the first row.
const ROWS: [(&str, &str); 6] = [
    (
        "+set +get +del +pttl +pexpire +time +zadd +zcard +zcount +zpopmin +zrange +zrank +zrem +zscore +evalsha +eval +script|load",
        "",
    ),
    ("~order:* ~{order:*", ""),
    ("~{*}:q:order:*", "paths and keys with a closing brace fail"),
    ("&redlock::* +publish +subscribe", "waiting callers are not woken"),
    ("~redlock:f:*", "fenced locks fail"),
    ("~{*}:t:order:*", "permits of keys with a closing brace fail"),
];

/// All kinds of locks that differ in their commands.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Exclusive,
    Waiting,
    Fenced,
    MinHold,
    OncePer,
    Lingering,
    Attached,
    Broken,
    BesideReaders,
    Shared,
    SharedWaiting,
    Downgraded,
    Set,
    SetWaiting,
    MixedSet,
    FencedSet,
    Path,
    PathWaiting,
    Permit,
    PermitWaiting,
    Brace,
    BracePermit,
}

impl Kind {
    const ALL: [Self; 22] = [
        Self::Exclusive,
        Self::Waiting,
        Self::Fenced,
        Self::MinHold,
        Self::OncePer,
        Self::Lingering,
        Self::Attached,
        Self::Broken,
        Self::BesideReaders,
        Self::Shared,
        Self::SharedWaiting,
        Self::Downgraded,
        Self::Set,
        Self::SetWaiting,
        Self::MixedSet,
        Self::FencedSet,
        Self::Path,
        Self::PathWaiting,
        Self::Permit,
        Self::PermitWaiting,
        Self::Brace,
        Self::BracePermit,
    ];

    fn request(self, key: &str) -> LockRequest {
        let (one, other) = (format!("{key}:a"), format!("{key}:b"));
        let request = match self {
            Self::Shared | Self::SharedWaiting => LockRequest::shared(key),
            Self::Set | Self::SetWaiting | Self::FencedSet => LockRequest::all([one, other]),
            Self::MixedSet => LockRequest::all([LockPart::shared(one), other.into()]),
            Self::Path | Self::PathWaiting => LockRequest::path(format!("/{key}/C")),
            Self::Permit | Self::PermitWaiting => LockRequest::new(key).permits(1),
            Self::Brace => LockRequest::new(format!("{key}:{{7}}")),
            Self::BracePermit => LockRequest::new(format!("{key}:{{7}}")).permits(1),
            Self::MinHold => LockRequest::new(key).min_hold(Duration::from_millis(20)),
            Self::OncePer => LockRequest::new(key).once_per(Duration::from_secs(3600)),
            Self::Lingering => LockRequest::new(key).linger(Duration::from_millis(20)),
            _ => LockRequest::new(key),
        };
        request.ttl(TTL).wait(PATIENCE)
    }

    /// Returns another lock that must be released before this one is free.
    fn obstacle(self, key: &str) -> Option<LockRequest> {
        let obstacle = match self {
            Self::BesideReaders => LockRequest::shared(key),
            Self::SharedWaiting => LockRequest::new(key),
            Self::Waiting | Self::SetWaiting | Self::PathWaiting | Self::PermitWaiting => {
                return Some(self.request(key));
            }
            _ => return None,
        };
        Some(obstacle.ttl(TTL))
    }

    /// Returns `true` if a warning says that such locks fail.
    fn is_named_in(self, warned: &str) -> bool {
        if warned.contains("no lock could be tried") {
            return true;
        }
        let needs = |row: &str| {
            ROWS.iter().any(|(rules, warning)| rules.contains(row) && !warning.is_empty() && warned.contains(warning))
        };
        match self {
            Self::Fenced | Self::FencedSet => needs("redlock:f"),
            Self::Path | Self::PathWaiting | Self::Brace => needs(":q:order"),
            Self::BracePermit => needs(":q:order") || needs(":t:order"),
            _ => false,
        }
    }

    /// Runs the whole life cycle of such a lock.
    async fn live(self, ours: &LockManager, theirs: &LockManager, nodes: &Nodes, key: &str) -> Result<(), LockError> {
        let request = self.request(key);
        if let Some(obstacle) = self.obstacle(key) {
            let held = theirs.acquire(obstacle).await.unwrap();
            let call = waiting(ours, request);
            queued_or_refused(&call, nodes, key).await;
            held.release().await.unwrap();
            let guard = call.await.unwrap()?;
            guard.extend().await?;
            return guard.release().await;
        }
        if matches!(self, Self::Fenced | Self::FencedSet) {
            let guard = ours.acquire(request.fencing()).await?;
            guard.extend().await?;
            return guard.release().await;
        }
        let guard = ours.acquire(request).await?;
        match self {
            Self::Attached => return ours.attach(guard.detach()).await?.release().await,
            Self::OncePer => guard.reopen_window(),
            Self::Downgraded => guard.downgrade(),
            Self::Broken => {
                let report = ours.break_lock(key, BreakOptions::new(*guard.token()).wait(Duration::from_secs(1))).await;
                drop(report);
                drop(guard);
                return Ok(());
            }
            _ => {}
        }
        guard.extend().await?;
        guard.release().await
    }
}

/// Waits until the call waits at the server, or has an outcome.
async fn queued_or_refused(call: &Waiting, nodes: &Nodes, key: &str) {
    eventually(PATIENCE, "the call waits", async || {
        let keys = nodes[0].inspect().keys().await;
        let waits = keys.iter().any(|name| name.contains(key) && (name.contains("}:q") || name.contains("}:t")));
        if waits || call.is_finished() { Ok(()) } else { Err(keys) }
    })
    .await;
}

/// Returns the keys of all locks whose names contain `key`. Skips the registers of fencing, which never expire.
async fn left(nodes: &Nodes, key: &str) -> Vec<String> {
    let keys = nodes[0].inspect().keys().await;
    keys.into_iter().filter(|name| name.contains(key) && !name.starts_with("redlock:f:")).collect()
}

fn url_of(nodes: &Nodes, user: &str) -> String {
    nodes[0].url().replace("redis://", &format!("redis://{user}:w0nder@"))
}

fn below(url: String) -> LockManager {
    builder([url]).namespace(NAMESPACE).tuning(|tuning| tuning.max_ttl(TTL)).build().unwrap()
}

/// Runs every kind with a user who lacks the `missing` rules. Returns the faults.
async fn without(missing: &[&str], number: usize, nodes: &Nodes) -> Vec<String> {
    let user = format!("user{number}");
    let rules = ROWS.iter().flat_map(|(row, _)| row.split(' ')).filter(|rule| !missing.contains(rule));
    let words = ["ACL", "SETUSER", &user, "reset", "on", ">w0nder", "resetchannels"];
    let words: Vec<_> = words.into_iter().chain(rules).collect();
    nodes[0].inspect().command::<()>(&words).await;
    let (ours, theirs) = (below(url_of(nodes, &user)), below(nodes[0].url()));
    theirs.ready().await.unwrap();
    let ready = ours.ready().await;
    let warned = warnings(&ours.check().await).join("\n");
    let mut wrong = Vec::new();
    for kind in Kind::ALL {
        let key = format!("n{number}-{kind:?}.");
        let outcome = timeout(PATIENCE, kind.live(&ours, &theirs, nodes, &key)).await;
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(LockError::Refused { .. })) if ready.is_err() || kind.is_named_in(&warned) => {}
            outcome => wrong.push(format!("{missing:?}, {kind:?}: {outcome:?}; {ready:?}; {warned}")),
        }
        let gone = async || {
            let keys = left(nodes, &key).await;
            if keys.is_empty() { Ok(()) } else { Err(keys) }
        };
        if timeout(PATIENCE / 2, eventually(PATIENCE, "no key is left", gone)).await.is_err() {
            wrong.push(format!("{missing:?}, {kind:?}: {:?} is left", left(nodes, &key).await));
        }
    }
    for manager in [ours, theirs] {
        if timeout(PATIENCE, manager.shutdown()).await != Ok(true) {
            wrong.push(format!("{missing:?}: releases are left: {:?}", manager.stats().releases));
        }
    }
    wrong
}

#[test]
fn permission_table_matches_the_guide() {
    let guide = include_str!("../../../redlock-runtime/docs/guide/production/server_settings.md").replace("\\|", "|");
    for (row, _) in ROWS {
        assert!(guide.contains(&format!("`{row}`")), "{row}");
    }
}

#[tokio::test]
async fn missing_permissions_never_leave_keys_of_any_kind_of_lock() {
    let nodes = Arc::new(Nodes::start(1).await);
    let rows: Vec<Vec<&str>> = ROWS.iter().map(|(row, _)| row.split(' ').collect()).collect();
    let single = rows.iter().flatten().map(|rule| vec![*rule]);
    let missing: BTreeSet<_> = rows.iter().skip(1).cloned().chain(single).chain([Vec::new()]).collect();
    let mut running = JoinSet::new();
    for (number, missing) in missing.into_iter().enumerate() {
        let nodes = Arc::clone(&nodes);
        running.spawn(async move { without(&missing, number, &nodes).await });
    }
    let wrong: Vec<_> = running.join_all().await.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test]
async fn script_error_after_a_write_is_followed_by_a_release() {
    let nodes = Nodes::start(1).await;
    nodes[0].inspect().command::<()>(&["ACL", "SETUSER", "alice", "on", ">w0nder", "~*", "&*", "+@all"]).await;
    let ours = below(url_of(&nodes, "alice"));
    ours.ready().await.unwrap();
    let theirs = below(nodes[0].url());
    let reader = || LockRequest::shared("b").ttl(TTL / 2);
    let readers = [theirs.acquire(reader()).await.unwrap(), below(nodes[0].url()).acquire(reader()).await.unwrap()];
    nodes[0].inspect().command::<()>(&["ACL", "SETUSER", "alice", "-pexpire"]).await;
    // The server takes the exclusive key, and then refuses the expiry of the shared one.
    let request = LockRequest::all(["a".into(), LockPart::shared("b")]).ttl(TTL);
    let error = ours.acquire(request).await.unwrap_err();
    assert!(matches!(error, LockError::Refused { .. }), "{error:?}");
    for reader in readers {
        reader.release().await.unwrap();
    }
    nodes.assert_empty(PATIENCE).await;
    assert!(ours.shutdown().await, "{:?}", ours.stats().releases);
}
