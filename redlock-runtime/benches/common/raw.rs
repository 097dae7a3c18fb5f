//! Handwritten lock on redis-rs: `SET NX PX` and a compare-and-delete script, sent to all nodes in parallel.

use redis::aio::MultiplexedConnection;
use redis::{Client, Cmd, Value, cmd};
use std::time::Duration;

const COMPARE_AND_DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end";

/// Connections to all nodes, one multiplexed connection each.
#[derive(Clone)]
pub(crate) struct Raw {
    connections: Vec<MultiplexedConnection>,
    digest: String,
}

impl Raw {
    pub(crate) async fn connect(urls: &[String]) -> Self {
        let (mut connections, mut digest) = (Vec::new(), String::new());
        for url in urls {
            let client = Client::open(url.as_str()).expect("the harness gives valid URLs");
            let mut connection = client.get_multiplexed_async_connection().await.expect("connects");
            let load = cmd("SCRIPT").arg("LOAD").arg(COMPARE_AND_DELETE).to_owned();
            digest = load.query_async(&mut connection).await.expect("loads the script");
            connections.push(connection);
        }
        Self { connections, digest }
    }

    /// Tries once. Returns the owner token if a majority of the nodes agrees. Otherwise releases the nodes that agreed.
    pub(crate) async fn acquire(&self, key: &str, ttl: Duration) -> Option<String> {
        let token = uuid::Uuid::now_v7().to_string();
        let millis = u64::try_from(ttl.as_millis()).expect("a short ttl");
        let set = cmd("SET").arg(key).arg(&token).arg("NX").arg("PX").arg(millis).to_owned();
        let votes = self.everywhere(&set).await.into_iter().filter(|answer| *answer == Value::Okay).count();
        if votes > self.connections.len() / 2 {
            return Some(token);
        }
        if votes > 0 {
            self.release(key, &token).await;
        }
        None
    }

    pub(crate) async fn release(&self, key: &str, token: &str) {
        let release = cmd("EVALSHA").arg(&self.digest).arg(1).arg(key).arg(token).to_owned();
        self.everywhere(&release).await;
    }

    /// Sends a command to all nodes in parallel and waits for all replies. An error becomes `Nil`.
    async fn everywhere(&self, command: &Cmd) -> Vec<Value> {
        let calls = self.connections.iter().map(|connection| {
            let mut connection = connection.clone();
            async move { connection.send_packed_command(command).await.unwrap_or(Value::Nil) }
        });
        futures_util::future::join_all(calls).await
    }
}
