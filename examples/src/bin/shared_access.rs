//! One description of the Redis connection for both the lock manager and the program's own client: a private
//! certificate authority, a client certificate, and a token that changes.
//!
//! Increments a number at the server in the URL, under a lock:
//!
//! ```text
//! shared_access rediss://user@host:port/ ca.pem client.pem client.key token-file
//! ```

use redis::{AsyncCommands, Client, ClientTlsConfig, IntoConnectionInfo, TlsCertificates};
use redlock_runtime::{Credentials, LockManager, NodeConfig, distributed_lock};
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, fs, io};

type Failure = Box<dyn Error + Send + Sync>;

/// Connection settings that both clients use.
#[derive(Clone)]
struct Access {
    url: String,
    authority: Vec<u8>,
    certificate: Vec<u8>,
    key: Vec<u8>,
    token_file: PathBuf,
}

impl Access {
    fn from_arguments() -> Result<Self, Failure> {
        let arguments: Vec<String> = env::args().skip(1).collect();
        let [url, authority, certificate, key, token_file] = &arguments[..] else {
            return Err("usage: shared_access URL CA CERTIFICATE KEY TOKEN_FILE".into());
        };
        let read = |path: &String| fs::read(path).map_err(|error| format!("{path}: {error}"));
        Ok(Self {
            url: url.clone(),
            authority: read(authority)?,
            certificate: read(certificate)?,
            key: read(key)?,
            token_file: token_file.into(),
        })
    }

    /// Reads the current token from the file. A service would request it from its platform here.
    fn token(&self) -> io::Result<String> {
        Ok(fs::read_to_string(&self.token_file)?.trim_end().to_owned())
    }

    /// Configuration of the lock manager, which requests a fresh token for each new connection.
    fn of_locks(&self) -> NodeConfig {
        let access = self.clone();
        NodeConfig::new(&self.url)
            .ca_pem(self.authority.clone())
            .client_certificate_pem(self.certificate.clone(), self.key.clone())
            .credentials(move || {
                let token = access.token();
                async move { Ok(Credentials::password(token?)) }
            })
    }

    /// Client for the program's data.
    fn of_data(&self) -> Result<Client, Failure> {
        let server = self.url.as_str().into_connection_info()?;
        let login = server.redis_settings().clone().set_password(self.token()?);
        let identity = ClientTlsConfig { client_cert: self.certificate.clone(), client_key: self.key.clone() };
        let certificates = TlsCertificates { client_tls: Some(identity), root_cert: Some(self.authority.clone()) };
        Ok(Client::build_with_tls(server.set_redis_settings(login), certificates)?)
    }
}

/// Increments a number in two steps, which is correct only under the lock.
#[distributed_lock(key = "counter:{name}", ttl = 10)]
async fn count(data: &Client, name: &str) -> Result<u64, Failure> {
    let mut data = data.get_multiplexed_async_connection().await?;
    let number = data.get::<_, Option<u64>>(name).await?.unwrap_or(0) + 1;
    data.set::<_, _, ()>(name, number).await?;
    Ok(number)
}

async fn run() -> Result<(), Failure> {
    // Neither client chooses a cryptography provider, so the program installs one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let access = Access::from_arguments()?;
    let manager = LockManager::builder().node(access.of_locks()).build()?;
    manager.ready().await?;
    manager.install()?;
    let number = count(&access.of_data()?, "visits").await?;
    println!("visits: {number}");
    manager.shutdown().await;
    Ok(())
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("shared_access: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redlock_runtime::testing::TestServers;
    use redlock_runtime::{assert_exclusive, assert_locked};
    use redlock_tests::RedisServer;
    use tokio::task::JoinSet;

    #[tokio::test]
    async fn concurrent_visits_get_distinct_numbers() {
        let (store, servers) = (RedisServer::start().await, TestServers::new(3));
        let data = Client::open(store.url()).unwrap();
        let mut visits = JoinSet::new();
        for manager in [servers.manager(), servers.manager()] {
            for _ in 0..10 {
                let (manager, data) = (manager.clone(), data.clone());
                visits.spawn(async move { manager.scope(count(&data, "visits")).await });
            }
        }
        let mut numbers: Vec<_> = visits.join_all().await.into_iter().map(Result::unwrap).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
        assert_exclusive!(servers.log(), "counter:{name}");
        assert_locked!(servers.log(), "counter:visits", ttl = 10s);
    }

    #[tokio::test]
    async fn failed_visit_releases_its_lock() {
        let servers = TestServers::new(3);
        let (ours, theirs) = (servers.manager(), servers.manager());
        let nowhere = Client::open("redis://127.0.0.1:1").unwrap();
        let failed = ours.scope(count(&nowhere, "visits")).await.unwrap_err();
        assert!(failed.is::<redis::RedisError>(), "{failed}");
        assert_eq!(servers.log().acquired(), ["counter:visits"]);
        drop(theirs.try_acquire("counter:visits").await.unwrap());
    }

    #[test]
    fn token_file_is_read_on_each_use() {
        let token_file = env::temp_dir().join(format!("shared_access-{}-token", std::process::id()));
        let access = Access {
            url: "redis://orders@127.0.0.1:1".into(),
            authority: Vec::new(),
            certificate: Vec::new(),
            key: Vec::new(),
            token_file: token_file.clone(),
        };
        for token in ["first", "second"] {
            fs::write(&token_file, format!("{token}\n")).unwrap();
            assert_eq!(access.token().unwrap(), token);
        }
        fs::remove_file(token_file).unwrap();
        assert!(access.token().is_err());
    }
}
