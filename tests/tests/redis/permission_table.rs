//! Every kind of lock under every row of the permission table of the guide, and without each single rule of it.
//! A lock works, or is refused before anything is written, or leaves no trace. `ready` or `check` report the missing rule before, except a
//! missing key pattern without a namespace: the names of locks are then unknown.

use crate::support::{builder, warnings};
use crate::waiters::{Waiting, waiting};
use redlock_runtime::admin::BreakOptions;
use redlock_runtime::{LockError, LockManager, LockPart, LockRequest, Mode};
use redlock_tests::{Cluster, Nodes, PATIENCE, RedisServer, eventually};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
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

/// Rules for members of a cluster.
const OF_MEMBERS: [&str; 3] = ["+cluster|slots", "+cluster|myid", "+asking"];

/// All kinds of locks that differ in their commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    SharedPath,
    FencedPath,
    SetWithPath,
    Permit,
    PermitWaiting,
    Brace,
    BracePermit,
}

impl Kind {
    const ALL: [Self; 25] = [
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
        Self::SharedPath,
        Self::FencedPath,
        Self::SetWithPath,
        Self::Permit,
        Self::PermitWaiting,
        Self::Brace,
        Self::BracePermit,
    ];

    fn request(self, key: &str) -> LockRequest {
        let (one, other, path) = (format!("{key}:a"), format!("{key}:b"), format!("/{key}/C"));
        let request = match self {
            Self::Shared | Self::SharedWaiting => LockRequest::shared(key),
            Self::Set | Self::SetWaiting | Self::FencedSet => LockRequest::all([one, other]),
            Self::MixedSet => LockRequest::all([LockPart::shared(one), other.into()]),
            Self::Path | Self::PathWaiting | Self::FencedPath => LockRequest::path(path),
            Self::SharedPath => LockRequest::all([LockPart::path(path).mode(Mode::Shared)]),
            Self::SetWithPath => LockRequest::all([LockPart::path(path), one.into()]),
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

    /// Returns `true` if such locks can be tried at these `servers` with the keys of `case`. Keys of paths begin with a slash, and not with
    /// `order:`. Several keys of a cluster need a common hash tag.
    fn is_possible(self, servers: &Servers, case: &Case) -> bool {
        let has_several =
            matches!(self, Self::Set | Self::SetWaiting | Self::MixedSet | Self::FencedSet | Self::SetWithPath);
        !(self.has_path() && case.namespace.is_empty() || has_several && matches!(servers, Servers::Cluster(_)))
    }

    const fn has_path(self) -> bool {
        matches!(self, Self::Path | Self::PathWaiting | Self::SharedPath | Self::FencedPath | Self::SetWithPath)
    }

    /// Returns `true` if a plain `SET` takes such a lock, or the admission lock in front of it.
    fn takes_plainly(self) -> bool {
        let needs_a_script = matches!(self, Self::Shared | Self::Set | Self::MixedSet | Self::FencedSet);
        !needs_a_script && !self.has_path() && self.obstacle("").is_none()
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
            Self::FencedPath => needs("redlock:f") || needs(":q:order"),
            Self::Brace => needs(":q:order"),
            _ if self.has_path() => needs(":q:order"),
            Self::BracePermit => needs(":q:order") || needs(":t:order"),
            _ => false,
        }
    }

    /// Runs the whole life cycle of such a lock.
    async fn live(
        self,
        ours: &LockManager,
        theirs: &LockManager,
        servers: &Servers,
        key: &str,
    ) -> Result<(), LockError> {
        let request = self.request(key);
        if let Some(obstacle) = self.obstacle(key) {
            let held = theirs.acquire(obstacle).await.unwrap();
            let call = waiting(ours, request);
            queued_or_refused(&call, servers, key).await;
            held.release().await.unwrap();
            let guard = call.await.unwrap()?;
            guard.extend().await?;
            return guard.release().await;
        }
        if matches!(self, Self::Fenced | Self::FencedSet | Self::FencedPath) {
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

/// Waits until the call waits at a server, or has an outcome.
async fn queued_or_refused(call: &Waiting, servers: &Servers, key: &str) {
    eventually(PATIENCE, "the call waits", async || {
        let keys = servers.keys(key).await;
        let waits = keys.iter().any(|name| name.contains("}:q") || name.contains("}:t"));
        if waits || call.is_finished() { Ok(()) } else { Err(keys) }
    })
    .await;
}

/// Servers at which the kinds run.
enum Servers {
    Nodes(Nodes),
    Cluster(Cluster),
}

impl Servers {
    fn all(&self) -> Vec<&RedisServer> {
        match self {
            Self::Nodes(nodes) => nodes.iter().collect(),
            Self::Cluster(cluster) => cluster.masters().collect(),
        }
    }

    /// Returns a manager of the nodes, with the given user instead of the default one.
    fn manager(&self, user: Option<&str>, namespace: &str) -> LockManager {
        let urls = match self {
            // A busy machine needs longer for many new connections.
            Self::Nodes(nodes) => {
                nodes.urls().into_iter().map(|url| format!("{url}?connect_timeout_ms=20000")).collect()
            }
            Self::Cluster(cluster) => vec![cluster.url()],
        };
        let login = user.map(|user| format!("://{user}:w0nder@"));
        let urls = urls.into_iter().map(|url| url.replacen("://", login.as_deref().unwrap_or("://"), 1));
        let builder = builder(urls).tuning(|tuning| tuning.max_ttl(TTL));
        if namespace.is_empty() { builder.build().unwrap() } else { builder.namespace(namespace).build().unwrap() }
    }

    /// Returns the keys of all locks whose names contain `key`. Skips the registers of fencing, which never expire.
    async fn keys(&self, key: &str) -> Vec<String> {
        let mut keys = Vec::new();
        for server in self.all() {
            keys.extend(server.inspect().keys().await);
        }
        keys.retain(|name| name.contains(key) && !name.starts_with("redlock:f:"));
        keys
    }

    async fn grant(&self, user: &str, case: &Case) {
        for (index, server) in self.all().into_iter().enumerate() {
            let is_missing = |rule: &&str| index < case.lacking && case.missing.contains(rule);
            let rules = ROWS.iter().flat_map(|(row, _)| row.split(' ')).filter(|rule| !is_missing(rule));
            let of_namespace = format!("&redlock:{}:*", case.namespace);
            let rules = rules.map(|rule| if rule == "&redlock::*" { &*of_namespace } else { rule });
            let of_members = OF_MEMBERS.iter().copied().filter(|_| matches!(self, Self::Cluster(_)));
            let words = ["ACL", "SETUSER", user, "reset", "on", ">w0nder", "resetchannels"];
            let words: Vec<_> = words.into_iter().chain(rules).chain(of_members).collect();
            server.inspect().command::<()>(&words).await;
        }
    }
}

/// Rules that the user lacks at the first `lacking` servers.
#[derive(Clone, Debug)]
struct Case {
    missing: Vec<&'static str>,
    lacking: usize,
    namespace: &'static str,
}

impl Case {
    /// Returns `true` if a key pattern is missing.
    fn lacks_keys(&self) -> bool {
        self.missing.iter().any(|rule| rule.starts_with('~'))
    }

    /// Returns `true` if the user may use some locks, and not their queues. A manager without a namespace that has met such a queue
    /// acquires no further lock like this.
    fn has_forbidden_queues(&self) -> bool {
        self.namespace.is_empty() && (self.missing == ["~{order:*"] || self.missing == ["~{*}:q:order:*"])
    }

    /// Returns the cases for each row except the first one, for each rule, and for no missing rule.
    fn all(lacking: usize, namespace: &'static str) -> impl Iterator<Item = Self> {
        let rows: Vec<Vec<&str>> = ROWS.iter().map(|(row, _)| row.split(' ').collect()).collect();
        let single = rows.iter().flatten().map(|rule| vec![*rule]);
        let missing: BTreeSet<_> = rows.iter().skip(1).cloned().chain(single).chain([Vec::new()]).collect();
        missing.into_iter().map(move |missing| Self { missing, lacking, namespace })
    }
}

/// Runs every kind in one case. `theirs` are managers that may do everything. Returns the faults.
async fn run(case: Case, number: usize, servers: &Servers, theirs: &LockManager) -> Vec<String> {
    let user = format!("user{number}");
    servers.grant(&user, &case).await;
    let mut ours = servers.manager(Some(&user), case.namespace);
    let ready = ours.ready().await;
    let warned = warnings(&ours.check().await).join("\n");
    let has_majority = 2 * (servers.all().len() - case.lacking) > servers.all().len();
    let mut wrong = Vec::new();
    for kind in Kind::ALL.into_iter().filter(|kind| kind.is_possible(servers, &case)) {
        let prefix = if case.namespace.is_empty() { "order:" } else { "" };
        let key = format!("{prefix}n{number}-{kind:?}.");
        if case.has_forbidden_queues() && kind.takes_plainly() && servers.all().len() == 1 {
            let met = std::mem::replace(&mut ours, servers.manager(Some(&user), case.namespace));
            wrong.extend(ended(&case, met).await);
        }
        let outcome = timeout(PATIENCE, kind.live(&ours, theirs, servers, &key)).await;
        let is_known = ready.is_err() || kind.is_named_in(&warned);
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(LockError::Refused { .. })) if is_known && !has_majority => {}
            outcome => wrong.push(format!("{case:?}, {kind:?}: {outcome:?}; {ready:?}; {warned}")),
        }
        let gone = async || {
            let keys = servers.keys(&key).await;
            if keys.is_empty() { Ok(()) } else { Err(keys) }
        };
        if timeout(PATIENCE / 2, eventually(PATIENCE, "no key is left", gone)).await.is_err() {
            wrong.push(format!("{case:?}, {kind:?}: {:?} is left", servers.keys(&key).await));
        }
    }
    if !(has_majority && case.lacking > 0 && !case.missing.is_empty()) {
        // A node that refuses a release is sent the release again until the lease is over, even if it has refused the lock as well.
        wrong.extend(ended(&case, ours).await);
    }
    wrong
}

/// Closes the manager. Returns the fault if releases are left.
async fn ended(case: &Case, manager: LockManager) -> Option<String> {
    let is_ended = timeout(PATIENCE, manager.shutdown()).await == Ok(true);
    (!is_ended).then(|| format!("{case:?}: releases are left: {:?}", manager.stats().releases))
}

/// Runs all cases, some of them at a time, and fails with all faults.
async fn run_all(servers: Servers, cases: impl Iterator<Item = Case>) {
    /// More managers would connect at the same time than a busy machine serves in time.
    const AT_A_TIME: usize = 8;
    let (servers, turns) = (Arc::new(servers), Arc::new(Semaphore::new(AT_A_TIME)));
    let theirs = Arc::new(["", NAMESPACE].map(|namespace| servers.manager(None, namespace)));
    for manager in theirs.iter() {
        eventually(PATIENCE, "it is ready", async || manager.ready().await).await;
    }
    let mut running = JoinSet::new();
    for (number, case) in cases.enumerate() {
        let (servers, turns, theirs) = (Arc::clone(&servers), Arc::clone(&turns), Arc::clone(&theirs));
        running.spawn(async move {
            let _turn = turns.acquire().await.unwrap();
            let [unnamed, named] = &*theirs;
            let theirs = if case.namespace.is_empty() { unnamed } else { named };
            run(case, number, &servers, theirs).await
        });
    }
    let wrong: Vec<_> = running.join_all().await.into_iter().flatten().collect();
    for manager in theirs.iter() {
        assert!(manager.shutdown().await, "releases are left: {:?}", manager.stats().releases);
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
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
    let unnamed = Case::all(1, "").filter(|case| case.lacks_keys() || case.missing.is_empty());
    run_all(Servers::Nodes(Nodes::start(1).await), Case::all(1, NAMESPACE).chain(unnamed)).await;
}

/// Key patterns are tested without a namespace, where they are not checked beforehand. Commands do not depend on the namespace, and if all
/// nodes lack one, each is like a single node.
#[tokio::test]
async fn missing_permissions_at_some_of_three_nodes_never_leave_keys() {
    let of_keys = (1..=3).flat_map(|lacking| Case::all(lacking, "").filter(Case::lacks_keys));
    let of_commands = (1..=2).flat_map(|lacking| Case::all(lacking, NAMESPACE).filter(|case| !case.lacks_keys()));
    run_all(Servers::Nodes(Nodes::start(3).await), of_keys.chain(of_commands)).await;
}

/// Single commands are left out: a member of a cluster executes the same scripts.
#[tokio::test]
async fn missing_permissions_in_a_cluster_never_leave_keys() {
    let cases = Case::all(3, "").filter(|case| case.lacks_keys() || case.missing.is_empty());
    run_all(Servers::Cluster(Cluster::start(3, 0).await), cases).await;
}

/// A manager does not know the names of its locks beforehand. The first lock shows that the user may not use its queue.
#[tokio::test]
async fn forbidden_queue_refuses_all_but_the_first_lock_without_a_namespace() {
    let nodes = Nodes::start(1).await;
    let inspector = nodes[0].inspect();
    let rules = ROWS.iter().flat_map(|(row, _)| row.split(' ')).filter(|rule| *rule != "~{order:*");
    let words = ["ACL", "SETUSER", "alice", "on", ">w0nder", "resetchannels", "+info"];
    let checked = ["~redlock:check:*", "~{redlock:check:*"];
    inspector.command::<()>(&words.into_iter().chain(checked).chain(rules).collect::<Vec<_>>()).await;
    let servers = Servers::Nodes(nodes);
    let manager = servers.manager(Some("alice"), "");
    manager.ready().await.unwrap();
    let braces = |warned: &String| warned.contains("closing brace");
    assert!(warnings(&manager.check().await).iter().all(braces));
    let guard = manager.acquire(LockRequest::new("order:7").ttl(TTL)).await.unwrap();
    guard.extend().await.unwrap();
    guard.release().await.unwrap();
    assert_eq!(servers.keys("order").await, [""; 0]);
    let request = |key| LockRequest::new(key).ttl(TTL);
    for error in [
        manager.acquire(request("order:7")).await.unwrap_err(),
        manager.acquire(request("order:8")).await.unwrap_err(),
        manager.acquire(request("order:9").fencing()).await.unwrap_err(),
    ] {
        assert!(matches!(error, LockError::Refused { .. }), "{error:?}");
        assert!(error.to_string().contains("grant it `~order:* ~{order:*"), "{error}");
        assert_eq!(servers.keys("order").await, [""; 0]);
    }
    let warned = warnings(&manager.check().await);
    assert!(warned.iter().any(|warning| warning.contains("grant it `~{order:*` beside `~order:*`")), "{warned:?}");
    servers.all()[0].inspect().command::<()>(&["ACL", "SETUSER", "alice", "~{order:*"]).await;
    manager.acquire("order:7").await.unwrap().release().await.unwrap();
    assert!(warnings(&manager.check().await).iter().all(braces));
    assert!(manager.shutdown().await, "{:?}", manager.stats().releases);
    assert_eq!(servers.keys("order").await, [""; 0]);
}

fn below(url: String) -> LockManager {
    builder([url]).namespace(NAMESPACE).tuning(|tuning| tuning.max_ttl(TTL)).build().unwrap()
}

#[tokio::test]
async fn script_error_after_a_write_is_followed_by_a_release() {
    let nodes = Nodes::start(1).await;
    nodes[0].inspect().command::<()>(&["ACL", "SETUSER", "alice", "on", ">w0nder", "~*", "&*", "+@all"]).await;
    let ours = below(nodes[0].url().replace("redis://", "redis://alice:w0nder@"));
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
