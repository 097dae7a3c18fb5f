//! Output and exit code of each command.

use crate::program::{held_everywhere, redlock, redlock_in_terminal, redlock_with, service};
use redlock_runtime::{LockError, LockRequest, LossCause, Wait};
use redlock_tests::{Nodes, PATIENCE, eventually};
use std::time::Duration;
use tokio::time::timeout;

#[tokio::test]
async fn inspect_and_waiters_show_the_holder_and_the_waiter() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let (urls, holder, waiter) = (nodes.environment_value(), service(&nodes).await, service(&nodes).await);
        let guard = held_everywhere(&holder, &nodes, "order:7").await;
        let token = guard.token().as_str().to_owned();
        let waiting =
            tokio::spawn(
                async move { waiter.acquire(LockRequest::new("order:7").wait(Wait::Forever)).await.map(drop) },
            );
        eventually(PATIENCE, "somebody waits", async || {
            let waiters = redlock(&urls, &["waiters", "order:7"]).await;
            if waiters.code == 0 { Ok(()) } else { Err(waiters) }
        })
        .await;
        let inspected = redlock(&urls, &["inspect", "order:7"]).await;
        assert_eq!((inspected.code, &*inspected.stderr), (0, ""), "{inspected:?}");
        assert!(inspected.stdout.starts_with("\"order:7\" without a namespace: held by shop;"), "{}", inspected.stdout);
        assert!(inspected.stdout.contains(&token) && inspected.stdout.contains("waits for"), "{}", inspected.stdout);

        let json = redlock(&urls, &["inspect", "order:7", "--json"]).await.json();
        assert_eq!(json["holder"]["owner"]["token"], *token);
        assert_eq!((&json["holder"]["kind"], json["nodes"].as_array().unwrap().len()), (&"owner".into(), size));
        assert!(json["remaining_ms"].as_u64().unwrap() <= 30_000);
        let waiters = redlock(&urls, &["waiters", "order:7", "--json"]).await.json();
        assert!(waiters[0]["label"].as_str().unwrap().starts_with("shop;"), "{waiters}");

        let listed = redlock(&urls, &["list"]).await;
        assert!(
            listed.code == 0 && listed.stdout.starts_with("order:7  ") && listed.stdout.contains("1 process waiting"),
            "{listed:?}"
        );
        let json = redlock(&urls, &["list", "--json"]).await.json();
        assert_eq!((&json["locks"][0]["key"], &json["has_quorum"]), (&"order:7".into(), &true.into()), "{json}");
        assert!(json["is_complete"] == true && json["failures"].as_array().unwrap().is_empty(), "{json}");
        let none = redlock(&urls, &["list", "user:*"]).await;
        assert_eq!((none.code, &*none.stdout, &*none.stderr), (1, "", ""));
        guard.release().await.unwrap();
        waiting.await.unwrap().unwrap();
        assert_eq!(redlock(&urls, &["waiters", "order:7"]).await.code, 1);
        eventually(PATIENCE, "it is free", async || {
            let free = redlock(&urls, &["inspect", "order:7"]).await;
            if free.code == 1 && free.stdout.starts_with("\"order:7\" without a namespace: free") {
                Ok(())
            } else {
                Err(free)
            }
        })
        .await;
    }
}

#[tokio::test]
async fn lock_is_broken_once_and_its_holder_is_notified() {
    let nodes = Nodes::start(3).await;
    let (urls, holder) = (nodes.environment_value(), service(&nodes).await);
    let guard = held_everywhere(&holder, &nodes, "order:7").await;
    let token = guard.token().as_str();
    // A process listens for a break only while one of its calls waits.
    let waiting = tokio::spawn({
        let holder = holder.clone();
        async move { holder.acquire(LockRequest::new("order:7").wait(Wait::Forever)).await.map(drop) }
    });
    eventually(PATIENCE, "it listens everywhere", async || {
        for node in nodes.iter() {
            let channels: Vec<String> = node.inspect().command(&["PUBSUB", "CHANNELS", "redlock::*"]).await;
            if !channels.iter().any(|channel| token.ends_with(&channel["redlock::".len()..])) {
                return Err(channels);
            }
        }
        Ok(())
    })
    .await;
    // The guard is not dropped, as if the body hangs.
    let reason = ["--reason", "ticket 4711:\nit hangs"];
    let command = ["break", "order:7", "--token", token, "--wait", "0", "--json"];
    let broken = redlock(&urls, &[&command as &[&str], &reason].concat()).await;
    assert!(broken.code == 3 && broken.stderr.contains("has not reported that it stopped"), "{broken:?}");
    let json = broken.json();
    assert!(
        json["is_broken"] == true && json["holder_notified"] == true && json["nodes"][2]["outcome"] == "broken",
        "{json}"
    );
    let placeholder = json["placeholder"]["token"].as_str().unwrap();
    assert_eq!((&json["holder"], &json["by"]), (&token.into(), &placeholder.into()), "{json}");
    assert_eq!(json["reason"], r"ticket 4711:\u000ait hangs");
    let lost = timeout(PATIENCE, guard.lost()).await.unwrap();
    assert!(
        matches!(&lost, LockError::Lost { cause: LossCause::Revoked { by, .. }, .. } if by.as_str() == placeholder)
    );
    assert!(lost.to_string().ends_with(&format!("it was broken by {placeholder}")), "{lost}");
    let again = redlock(&urls, &[&["break", "order:7", "--token", token], &reason as &[&str]].concat()).await;
    assert!(again.code == 1 && again.stdout.contains("not held by that token"), "{again:?}");
    let trail = format!("\n  holder {token}, breaker ");
    assert!(
        again.stdout.contains(&trail) && again.stdout.contains(r", reason: ticket 4711:\u000ait hangs"),
        "{again:?}"
    );
    assert!(!waiting.is_finished());
    let forced = redlock(&urls, &["break", "order:7", "--token", placeholder, "--force"]).await;
    assert_eq!((forced.code, &*forced.stderr), (0, ""), "{forced:?}");
    timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap();
    drop(guard);
}

#[tokio::test]
async fn control_characters_in_keys_are_escaped() {
    let nodes = Nodes::start(1).await;
    let (urls, holder) = (nodes.environment_value(), service(&nodes).await);
    let key = "a\u{1b}[2J\u{9b}31m\u{202e}\nb";
    let guard = held_everywhere(&holder, &nodes, key).await;
    let token = guard.token().as_str();
    let commands: [&[&str]; 6] = [
        &["list"],
        &["inspect", key],
        &["waiters", key],
        &["fence", key],
        &["break", key, "--token", "worker-3"],
        &["break", key, "--token", token, "--force"],
    ];
    for command in commands {
        for json in [&[] as &[&str], &["--json"]] {
            let outcome = redlock(&urls, &[command, json].concat()).await;
            let said = [&*outcome.stdout, &outcome.stderr].concat();
            let is_plain = |c: char| c == '\n' || !c.is_control() && c != '\u{202e}';
            assert!(said.chars().all(is_plain), "{command:?}: {outcome:?}");
            let is_of_the_key = |line: &str| line.starts_with('b') && !line.starts_with("broken");
            assert!(!said.lines().any(is_of_the_key), "{command:?}: {outcome:?}");
        }
    }
    assert_eq!(redlock(&urls, &["inspect", key, "--json"]).await.json()["key"], key);
}

#[tokio::test]
async fn fence_and_check_print_the_number_and_the_node_state() {
    let nodes = Nodes::start(3).await;
    let (urls, holder) = (nodes.environment_value(), service(&nodes).await);
    let none = redlock(&urls, &["fence", "order:7"]).await;
    assert_eq!((none.code, &*none.stdout), (1, ""));
    let guard = holder.acquire(LockRequest::new("order:7").fencing()).await.unwrap();
    let fence: u64 = redlock(&urls, &["fence", "order:7"]).await.stdout.trim().parse().unwrap();
    assert!((fence..fence + (1 << 14)).contains(&guard.fencing_token().as_u64()));
    let checked = redlock(&urls, &["check"]).await;
    assert!(checked.code < 2 && checked.stdout.contains("locks work"), "{checked:?}");
    let json = redlock(&urls, &["check", "--json"]).await.json();
    assert_eq!((json["nodes"].as_array().unwrap().len(), &json["needed"]), (3, &2.into()));
    guard.release().await.unwrap();
}

#[tokio::test]
async fn check_warns_if_its_settings_differ_from_the_services() {
    let nodes = Nodes::start(3).await;
    let service = redlock_runtime::LockManager::builder()
        .nodes(nodes.urls())
        .tuning(|tuning| tuning.max_ttl(Duration::from_secs(120)));
    let service = service.build().unwrap();
    service.check().await;
    let urls = nodes.environment_value();
    let warning = "other processes with the same locks have other settings (max_ttl: ";
    // Test equal settings first: the nodes remember the settings of a process for a minute.
    for (settings, is_warned) in [(&[("REDLOCK_MAX_TTL_MS", "120000")][..], false), (&[], true)] {
        let checked = redlock_with(&urls, settings, &["check"]).await;
        assert_eq!(checked.stdout.contains(warning), is_warned, "{checked:?}");
        assert!(checked.code == 1 || !is_warned, "{checked:?}");
    }
}

#[tokio::test]
async fn check_warns_of_a_recent_restart_and_ready_ignores_it() {
    let nodes = Nodes::start(3).await;
    let urls = nodes.environment_value();
    for settings in [&[][..], &[("REDLOCK_MAX_TTL_MS", "3600000")]] {
        let checked = redlock_with(&urls, settings, &["check"]).await;
        assert_eq!((checked.code, checked.stdout.matches(": restarted ").count()), (1, 3), "{checked:?}");
        assert!(checked.stdout.contains("locks work") && checked.stdout.contains("do not restart another server"));
        let probed = redlock_with(&urls, settings, &["check", "--ready"]).await;
        assert_eq!((probed.code, probed.stdout.matches(": restarted ").count()), (0, 3), "{probed:?}");
    }
    let trusts = redlock_with(&urls, &[("REDLOCK_AFTER_RESTART", "trust")], &["check"]).await;
    assert!(!trusts.stdout.contains(": restarted "), "{trusts:?}");
    eventually(PATIENCE, "no server is young", async || {
        let checked = redlock_with(&urls, &[("REDLOCK_MAX_TTL_MS", "1000")], &["check"]).await;
        if checked.stdout.contains(": restarted ") { Err(checked) } else { Ok(()) }
    })
    .await;
    nodes[0].kill();
    nodes[1].kill();
    assert_eq!(redlock(&urls, &["check", "--ready"]).await.code, 2);
}

#[tokio::test]
async fn check_rejects_a_node_timeout_that_is_too_long() {
    let nodes = Nodes::start(1).await;
    let checked = redlock_with(&nodes.environment_value(), &[("REDLOCK_NODE_TIMEOUT_MS", "40000")], &["check"]).await;
    assert!(checked.code == 2 && checked.stderr.contains("node timeout of 40s"), "{checked:?}");
}

#[tokio::test]
async fn namespace_option_selects_locks_and_inspect_suggests_it() {
    let nodes = Nodes::start(1).await;
    let service = redlock_runtime::LockManager::builder().nodes(nodes.urls()).namespace("shop:eu").build().unwrap();
    let guard = service.acquire("order:7").await.unwrap();
    let urls = nodes.environment_value();
    let found = "\n  locked in namespace \"shop:eu\": pass --namespace \"shop:eu\"";
    let table = [
        (&["inspect", "order:7"] as &[&str], 1, &["\"order:7\" without a namespace: free", found] as &[&str]),
        (&["-n", "shop", "inspect", "order:7"], 1, &["\"order:7\" in namespace \"shop\": free", found]),
        (&["-n", "shop:eu", "inspect", "order:7"], 0, &["\"order:7\" in namespace \"shop:eu\": held by"]),
    ];
    for (arguments, code, expected) in table {
        let inspected = redlock(&urls, arguments).await;
        assert_eq!(inspected.code, code, "{inspected:?}");
        assert!(expected.iter().all(|text| inspected.stdout.contains(text)), "{inspected:?}");
    }
    let json = redlock(&urls, &["-n", "shop", "inspect", "order:7", "--json"]).await.json();
    assert_eq!(json["namespace"], "shop");
    let free = redlock(&urls, &["inspect", "order:8"]).await;
    assert!(free.code == 1 && !free.stdout.contains("locked"), "{free:?}");
    let listed = redlock(&urls, &["list", "-n", "shop:eu"]).await;
    assert!(listed.stdout.starts_with("order:7  "), "{listed:?}");
    guard.release().await.unwrap();
}

#[tokio::test]
async fn break_without_a_token_asks_for_confirmation_in_a_terminal() {
    let nodes = Nodes::start(3).await;
    let (urls, holder) = (nodes.environment_value(), service(&nodes).await);
    assert_eq!(redlock(&urls, &["break", "order:7"]).await.code, 1, "it is free");
    let guard = held_everywhere(&holder, &nodes, "order:7").await;
    let token = guard.token().as_str().to_owned();
    let piped = redlock(&urls, &["break", "order:7"]).await;
    assert!(piped.code == 2 && piped.stdout.contains("held by shop;"), "{piped:?}");
    assert!(piped.stderr.contains(&format!("pass --token {token}")), "{piped:?}");
    let refused = redlock_in_terminal(&urls, &["break", "order:7"], "no\n").await;
    assert!(refused.code == 1 && refused.stdout.contains("held by shop;"), "{refused:?}");
    assert!(guard.is_held());
    // Simulates a body that stops when its lock is lost.
    let stopping = tokio::spawn(async move {
        guard.lost().await;
        drop(guard);
    });
    let broken = redlock_in_terminal(&urls, &["break", "order:7"], "y\n").await;
    assert!(broken.code == 0 && broken.stdout.contains(&format!("holder {token}")), "{broken:?}");
    timeout(PATIENCE, stopping).await.unwrap().unwrap();
}
