//! A cluster whose members and clients speak TLS.

use super::{assert_nothing_left, keys, ready};
use crate::support::{builder, causes};
use redlock_runtime::{LockError, LockRequest, NodeConfig, NodeError};
use redlock_tests::{Certificates, Cluster, PATIENCE, eventually};
use std::time::Duration;

#[tokio::test]
async fn locks_work_over_tls_on_each_cluster_master() {
    let certificates = Certificates::generate().await;
    let cluster = Cluster::start_tls(3, &certificates).await;
    let ca = cluster.member(0).ca_file();
    let by_url = ready(builder([format!("{}&ca_file={}", cluster.tls_url(), ca.display())])).await;
    let pem = std::fs::read(&ca).unwrap();
    let by_config = ready(builder([NodeConfig::new(cluster.tls_url()).ca_pem(pem)])).await;
    for (number, key) in keys(&cluster, "order").await.into_iter().enumerate() {
        let held = by_url.acquire(&key).await.unwrap();
        assert!(cluster.member(number).inspect().get(&key).await.is_some());
        let waiting = tokio::spawn({
            let (manager, key) = (by_config.clone(), key.clone());
            async move { manager.acquire(LockRequest::new(key).wait(PATIENCE)).await }
        });
        eventually(PATIENCE, "it waits", async || {
            match cluster.member(number).inspect().command::<usize>(&["ZCARD", &format!("{{{key}}}:q")]).await {
                1 => Ok(()),
                other => Err(other),
            }
        })
        .await;
        held.release().await.unwrap();
        let held = waiting.await.unwrap().unwrap();

        let to = (number + 1) % 3;
        cluster.move_slot(cluster.slot(&key).await, to).await;
        held.extend().await.unwrap();
        assert!(cluster.member(to).inspect().get(&key).await.is_some());
        held.release().await.unwrap();
    }
    let clients = cluster.member(0).inspect().command::<String>(&["CLIENT", "LIST"]).await;
    let to_tls = format!("laddr=127.0.0.1:{} ", cluster.member(0).tls_port().unwrap());
    let ours: Vec<_> = clients.lines().filter(|client| client.contains("name=redlock")).collect();
    assert!(!ours.is_empty() && ours.iter().all(|client| client.contains(&to_tls)), "{clients}");
    assert_nothing_left(&[&by_url, &by_config], &cluster).await;
}

#[tokio::test]
async fn untrusted_cluster_certificate_is_a_clear_error() {
    let cluster = Cluster::start_tls(1, &Certificates::generate().await).await;
    let manager = builder([cluster.tls_url()]).node_timeout(Duration::from_secs(2)).build().unwrap();
    let error = manager.try_acquire("order:7").await.unwrap_err();
    assert!(matches!(error, LockError::Refused { .. }), "{error:?}");
    let [(_, NodeError::Tls(reason))] = causes(&error)[..] else { panic!("{error:?}") };
    assert!(reason.contains("certificate"), "{error}");
}
