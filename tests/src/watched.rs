//! A real master with replicas, watched by real Sentinels. They promote a replica when the master is gone.
#![allow(clippy::indexing_slicing, reason = "a test that names a server which does not exist is to fail")]

use std::time::Duration;

use crate::{Builder, PATIENCE, RedisServer, eventually, eventually_eq};

/// Name of the master at the Sentinels.
pub const MASTER: &str = "orders";

/// Number of Sentinels: the smallest number that can agree when one of them is gone.
const SENTINELS: usize = 3;

/// Silence after which a master is replaced. Too short: a healthy master is replaced on a busy machine.
const DOWN_AFTER: Duration = Duration::from_secs(2);

/// Master with its replicas, and Sentinels that know all of them and each other.
#[derive(Debug)]
pub struct Watched {
    servers: Vec<RedisServer>,
    sentinels: Vec<RedisServer>,
}

impl Watched {
    /// Starts a master with the given number of replicas.
    pub async fn start(replicas: usize) -> Self {
        Self::start_with(replicas, |server| server, |sentinel| sentinel).await
    }

    /// Starts the servers with the settings that `configure` returns, and the Sentinels with those that `sentinel` returns.
    pub async fn start_with(
        replicas: usize,
        configure: impl Fn(Builder) -> Builder,
        sentinel: impl Fn(Builder) -> Builder,
    ) -> Self {
        let mut servers = vec![configure(RedisServer::builder()).start().await];
        for _ in 0..replicas {
            let replica = configure(RedisServer::builder()).replica_of(&servers[0]);
            servers.push(replica.start().await);
        }
        let mut watched = Self { servers, sentinels: Vec::new() };
        for _ in 0..SENTINELS {
            let builder = watched.sentinel_settings(sentinel(RedisServer::builder()));
            watched.sentinels.push(builder.start().await);
        }
        watched.wait_until_known(replicas).await;
        watched
    }

    fn sentinel_settings(&self, builder: Builder) -> Builder {
        let quorum = (SENTINELS / 2 + 1).to_string();
        let (port, down_after) = (self.servers[0].port().to_string(), DOWN_AFTER.as_millis().to_string());
        let builder = builder.sentinel().config("sentinel", &["monitor", MASTER, "127.0.0.1", &port, &quorum]);
        let builder = match self.servers[0].password() {
            Some(password) => builder.config("sentinel", &["auth-pass", MASTER, password]),
            None => builder,
        };
        builder
            .config("sentinel", &["down-after-milliseconds", MASTER, &down_after])
            .config("sentinel", &["failover-timeout", MASTER, "6000"])
    }

    /// Waits until each Sentinel knows all others and all replicas.
    async fn wait_until_known(&self, replicas: usize) {
        let expected = Some(((SENTINELS - 1).to_string(), replicas.to_string()));
        for index in 0..SENTINELS {
            eventually_eq(2 * PATIENCE, "the Sentinels know all", expected.clone(), async || {
                Some((self.property(index, "num-other-sentinels").await?, self.property(index, "num-slaves").await?))
            })
            .await;
        }
    }

    /// Returns a property of the master, as Sentinel number `index` reports it.
    async fn property(&self, index: usize, name: &str) -> Option<String> {
        let said: Vec<String> = self.sentinels[index].inspect().command(&["SENTINEL", "MASTER", MASTER]).await;
        said.chunks(2).find(|pair| pair[0] == name).map(|pair| pair[1].clone())
    }

    /// Returns the URL with all Sentinels.
    #[must_use]
    pub fn url(&self) -> String {
        let others: Vec<_> =
            (1..SENTINELS).map(|index| format!("sentinel={}", self.address_of_sentinel(index))).collect();
        format!("{}?{}", self.url_of_one(0), others.join("&"))
    }

    /// Returns the URL with only Sentinel number `index`.
    #[must_use]
    pub fn url_of_one(&self, index: usize) -> String {
        let login = self.servers[0].password().map(|password| format!(":{password}@")).unwrap_or_default();
        format!("redis+sentinel://{login}{}/{MASTER}", self.address_of_sentinel(index))
    }

    fn address_of_sentinel(&self, index: usize) -> String {
        format!("127.0.0.1:{}", self.sentinels[index].port())
    }

    /// Returns server number `index`: the first master, and then its replicas.
    #[must_use]
    pub fn server(&self, index: usize) -> &RedisServer {
        &self.servers[index]
    }

    /// Returns Sentinel number `index`.
    #[must_use]
    pub fn sentinel(&self, index: usize) -> &RedisServer {
        &self.sentinels[index]
    }

    /// Waits until all running Sentinels name the same master, which is not number `before` and accepts writes. Returns its number.
    pub async fn replaced(&self, before: usize) -> usize {
        eventually(3 * PATIENCE, "a replica takes over", async || {
            let index = self.named().await?;
            if index != before && self.is_master(index).await { Ok(index) } else { Err(vec![Some(index)]) }
        })
        .await
    }

    /// Returns the number of the server that all running Sentinels name. Otherwise, returns the number that each of them names.
    async fn named(&self) -> Result<usize, Vec<Option<usize>>> {
        let mut named = Vec::new();
        for sentinel in self.sentinels.iter().filter(|sentinel| sentinel.is_running()) {
            let said = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER];
            let (_, port): (String, u16) = sentinel.inspect().command(&said).await;
            named.push(self.servers.iter().position(|server| server.port() == port));
        }
        let are_agreed = named.windows(2).all(|two| two[0] == two[1]);
        named[0].filter(|_| are_agreed).ok_or(named)
    }

    /// Waits until all Sentinels name the same master, and all other servers are its replicas and in sync. Returns its number.
    pub async fn settled(&self) -> usize {
        eventually(4 * PATIENCE, "the Sentinels agree, and all replicas are in sync", async || {
            let index = self.named().await.map_err(|named| format!("{named:?}"))?;
            for number in (0..self.servers.len()).filter(|number| *number != index) {
                let inspect = self.servers[number].inspect();
                let of_master = inspect.info("replication", "master_port").await;
                let link = inspect.info("replication", "master_link_status").await;
                if of_master != Some(self.servers[index].port().to_string()) || link.as_deref() != Some("up") {
                    return Err(format!("server {number} follows port {of_master:?}: {link:?}"));
                }
            }
            if self.is_master(index).await { Ok(index) } else { Err(format!("server {index} is no master")) }
        })
        .await
    }

    async fn is_master(&self, index: usize) -> bool {
        self.servers[index].inspect().info("replication", "role").await.as_deref() == Some("master")
    }

    /// Makes the Sentinels promote a replica while the master, number `before`, is alive. Returns the number of the new master.
    pub async fn fail_over(&self, before: usize) -> usize {
        eventually(PATIENCE, "the failover begins", async || {
            self.sentinels[0].inspect().try_command::<()>(&["SENTINEL", "FAILOVER", MASTER]).await
        })
        .await;
        self.replaced(before).await
    }

    /// Waits until replica number `index` has all writes of master number `master`.
    pub async fn wait_until_replicated(&self, master: usize, index: usize) {
        let offset = async |server: usize, field: &str| self.servers[server].inspect().info("replication", field).await;
        eventually(PATIENCE, "the replica has it all", async || {
            let (written, read) =
                (offset(master, "master_repl_offset").await, offset(index, "slave_repl_offset").await);
            if written.is_some() && written == read { Ok(()) } else { Err((written, read)) }
        })
        .await;
    }
}
