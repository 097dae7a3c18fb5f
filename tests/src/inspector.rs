//! Direct view into a server, over a separate connection.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, IntoConnectionInfo, RedisConnectionInfo, RedisResult};
use redis::{ConnectionAddr, ConnectionInfo, Value};
use tokio::sync::Mutex;

use crate::{PATIENCE, eventually};

/// Timeout of a reply. It is short, because a command to a frozen server is a mistake in the test.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Suffixes of the keys in which managers record facts about the server. These keys do not belong to a lock.
const RECORDS: [&str; 3] = ["redlock:f:server", "redlock:f:receipts", "redlock:f:settings"];

/// Returns the real time.
fn unix_millis() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    i64::try_from(since_1970.as_millis()).expect("before the year 292 million")
}

/// Connection through which tests look at the data that the code under test has left in Redis.
///
/// Connects at the first use. Reconnects after a restart of the server, and when the runtime of the connection has ended.
#[derive(Debug)]
pub struct Inspector {
    client: Client,
    connection: Mutex<Option<MultiplexedConnection>>,
}

impl Inspector {
    pub(crate) fn new(port: u16, password: Option<&str>, database: i64) -> Self {
        let address = ConnectionAddr::Tcp("127.0.0.1".to_owned(), port);
        let info = address.into_connection_info().expect("an address is a connection");
        let client = Client::open(with_settings(info, password, database)).expect("a loopback address");
        Self { client, connection: Mutex::default() }
    }

    /// Sends any command and returns the reply as `T`.
    ///
    /// # Panics
    /// On an error reply, a reply that does not convert to `T`, or no answer within 5 s.
    pub async fn command<T: FromRedisValue>(&self, parts: &[&str]) -> T {
        self.try_command(parts).await.unwrap_or_else(|error| panic!("{parts:?}: {error}"))
    }

    /// Sends any command.
    ///
    /// # Errors
    /// The server's error reply, a reply that does not convert to `T`, or a failed connection.
    pub async fn try_command<T: FromRedisValue>(&self, parts: &[&str]) -> RedisResult<T> {
        let mut command = Cmd::new();
        command.arg(parts);
        let mut connection = self.connection.lock().await;
        if let Some(connected) = connection.as_mut() {
            match command.query_async(connected).await {
                Err(error) if error.is_connection_dropped() => {}
                answer => return answer,
            }
        }
        command.query_async(connection.insert(self.connect().await?)).await
    }

    async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(ANSWER_TIMEOUT))
            .set_response_timeout(Some(ANSWER_TIMEOUT));
        self.client.get_multiplexed_async_connection_with_config(&config).await
    }

    /// Returns `true` if commands see a wall clock that is `millis` ahead of the real one, to the millisecond. Blocks.
    pub(crate) fn clock_is_ahead_by(&self, millis: i64) -> bool {
        let connected = self.client.get_connection_with_timeout(ANSWER_TIMEOUT);
        let mut connection = connected.unwrap_or_else(|error| panic!("TIME: {error}"));
        connection.set_read_timeout(Some(ANSWER_TIMEOUT)).expect("a timeout that is not zero");
        let before = unix_millis();
        let answer = redis::cmd("TIME").query(&mut connection);
        let (seconds, micros): (i64, i64) = answer.unwrap_or_else(|error| panic!("TIME: {error}"));
        let seen = seconds * 1000 + micros / 1000 - millis;
        (before - 1..=unix_millis() + 1).contains(&seen)
    }

    /// Returns all key names, sorted, without the records of processes about a server: its marker, receipts and settings.
    pub async fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.command(&["KEYS", "*"]).await;
        keys.retain(|key| !RECORDS.iter().any(|record| key.ends_with(record)));
        keys.sort();
        keys
    }

    /// Returns the string at `key`, or `None` if the key does not exist.
    pub async fn get(&self, key: &str) -> Option<String> {
        self.command(&["GET", key]).await
    }

    /// Returns the remaining lifetime of the key in milliseconds: -1 if it does not expire, -2 if it does not exist.
    pub async fn pttl(&self, key: &str) -> i64 {
        self.command(&["PTTL", key]).await
    }

    /// Returns the tokens that share the lock at `key`, and the rest of each lease in milliseconds, the longest first.
    ///
    /// A single sharer is a string: its token and a letter. Several are a sorted set with the ends of their leases after 2^42.
    pub async fn shares(&self, key: &str) -> Vec<(String, i64)> {
        let script = "local time, value, shares = redis.call('TIME'), redis.pcall('GET', KEYS[1]), {}
            local now = time[1] * 1000 + math.floor(time[2] / 1000)
            if type(value) == 'string' then
                return {{string.sub(value, 1, -2), redis.call('PTTL', KEYS[1])}}
            elseif value then
                local members = redis.call('ZRANGE', KEYS[1], 0, -1, 'REV', 'WITHSCORES')
                for at = 1, #members, 2 do
                    table.insert(shares, {members[at], members[at + 1] % 4398046511104 - now})
                end
            end
            return shares";
        self.command(&["EVAL", script, "1", key]).await
    }

    /// Returns the number of tokens that share the lock at `key`.
    pub async fn share_count(&self, key: &str) -> usize {
        self.shares(key).await.len()
    }

    /// Returns every key with its content as readable text, for all types.
    pub async fn contents(&self) -> BTreeMap<String, String> {
        let mut contents = BTreeMap::new();
        for key in self.keys().await {
            // A key that expired between the two commands has type `none`.
            if let Some(content) = self.content(&key).await {
                contents.insert(key, content);
            }
        }
        contents
    }

    async fn content(&self, key: &str) -> Option<String> {
        loop {
            let kind: String = self.command(&["TYPE", key]).await;
            let look: &[&str] = match kind.as_str() {
                "none" => return None,
                "string" => &["GET", key],
                "hash" => &["HGETALL", key],
                "list" => &["LRANGE", key, "0", "-1"],
                "set" => &["SMEMBERS", key],
                "zset" => &["ZRANGE", key, "0", "-1", "WITHSCORES"],
                _ => &["DUMP", key],
            };
            match self.try_command::<Value>(look).await {
                // The lock has passed from readers to a writer since then, or from a writer to readers.
                Err(error) if error.code() == Some("WRONGTYPE") => {}
                Ok(items) if kind == "string" => return redis::from_redis_value(items).expect("a text, or nothing"),
                Ok(items) => return Some(format!("{kind} {items:?}")),
                Err(error) => panic!("{look:?}: {error}"),
            }
        }
    }

    /// Returns the keys whose name or content contains `needle`, with their contents. Used to find traces of an owner token.
    pub async fn mentions(&self, needle: &str) -> BTreeMap<String, String> {
        let mut contents = self.contents().await;
        contents.retain(|key, content| key.contains(needle) || content.contains(needle));
        contents
    }

    /// Waits until the database is empty.
    ///
    /// # Panics
    /// After `deadline`, with the keys that are still there.
    pub async fn assert_empty(&self, deadline: Duration) {
        eventually(deadline, "no key is left", async || {
            let contents = self.contents().await;
            if contents.is_empty() { Ok(()) } else { Err(contents) }
        })
        .await;
    }

    /// Returns one field of `INFO section`, or `None` if the server does not report it.
    pub async fn info(&self, section: &str, field: &str) -> Option<String> {
        let text: String = self.command(&["INFO", section]).await;
        let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        value.map(str::to_owned)
    }

    /// Returns the number of executed commands since the start, including those inside scripts and those of the inspector. Reading it
    /// adds one.
    pub async fn commands_processed(&self) -> u64 {
        let field = self.info("stats", "total_commands_processed").await;
        field.and_then(|count| count.parse().ok()).expect("total_commands_processed")
    }

    /// Returns how often a command (lower case, `client|setname` for a subcommand) was executed, including by scripts.
    pub async fn calls(&self, command: &str) -> u64 {
        self.statistic(command, "calls").await
    }

    /// Returns how often a subcommand was executed, or on a server before Redis 7, which does not count subcommands, how often any
    /// subcommand of the `command` was.
    pub async fn calls_of(&self, [subcommand, command]: [&str; 2]) -> u64 {
        match self.calls(subcommand).await {
            0 => self.calls(command).await,
            calls => calls,
        }
    }

    /// Returns how often a command was refused before its execution, for example because of the permissions of the user.
    pub async fn rejected(&self, command: &str) -> u64 {
        self.statistic(command, "rejected_calls").await
    }

    async fn statistic(&self, command: &str, name: &str) -> u64 {
        let statistics = self.info("commandstats", &format!("cmdstat_{command}")).await.unwrap_or_default();
        let count = statistics.split(',').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
        count.map_or(0, |count| count.parse().expect("a number of calls"))
    }

    /// Returns one line of `CLIENT LIST` for each client connection, without the inspector's.
    pub async fn clients(&self) -> Vec<String> {
        let own: i64 = self.command(&["CLIENT", "ID"]).await;
        let list: String = self.command(&["CLIENT", "LIST"]).await;
        let own = format!("id={own} ");
        list.lines().filter(|line| !line.starts_with(&own)).map(str::to_owned).collect()
    }

    /// Closes the connections of all clients except the inspector's. Returns their number.
    pub async fn kill_clients(&self) -> u64 {
        let killed: [u64; 2] = [
            self.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await,
            self.command(&["CLIENT", "KILL", "TYPE", "pubsub", "SKIPME", "yes"]).await,
        ];
        killed.iter().sum()
    }

    /// Removes all loaded scripts, as a restart would. The next calls then receive `NOSCRIPT`.
    pub async fn flush_scripts(&self) {
        self.command::<()>(&["SCRIPT", "FLUSH"]).await;
    }

    /// Deletes every key of every database.
    pub async fn flush_all(&self) {
        self.command::<()>(&["FLUSHALL"]).await;
    }

    /// Waits until the server answers.
    ///
    /// # Panics
    /// After [`PATIENCE`].
    pub async fn wait_until_reachable(&self) {
        eventually(PATIENCE, "the server answers PING", async || self.try_command::<()>(&["PING"]).await).await;
    }
}

fn with_settings(info: ConnectionInfo, password: Option<&str>, database: i64) -> ConnectionInfo {
    // Without CLIENT SETINFO, the command counts contain only the test's commands. Servers that lack the command work as well.
    let mut settings = RedisConnectionInfo::default().set_db(database).set_skip_set_lib_name();
    if let Some(password) = password {
        settings = settings.set_password(password);
    }
    info.set_redis_settings(settings)
}
