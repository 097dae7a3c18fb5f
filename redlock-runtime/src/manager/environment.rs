//! Environment variables that describe a manager.

use super::LockManager;
use super::builder::LockManagerBuilder;
use crate::error::LockError;
use crate::request::AfterRestart;
use std::env::VarError;
use std::time::Duration;

const NODES: &str = "REDLOCK_NODES";
const NAMESPACE: &str = "REDLOCK_NAMESPACE";
const NODE_TIMEOUT: &str = "REDLOCK_NODE_TIMEOUT_MS";
const MAX_TTL: &str = "REDLOCK_MAX_TTL_MS";
const AFTER_RESTART: &str = "REDLOCK_AFTER_RESTART";
const TOLERATED_DATA_LOSS: &str = "REDLOCK_TOLERATED_DATA_LOSS";

impl LockManager {
    /// Builds a manager from environment variables: its nodes ([`nodes_from_env`](LockManagerBuilder::nodes_from_env)) and the
    /// settings that are present ([`settings_from_env`](LockManagerBuilder::settings_from_env)).
    ///
    /// Call it on a tokio runtime. It does not wait for the connections; see [`ready`](Self::ready).
    ///
    /// # Errors
    /// [`LockError::Configuration`] if `REDLOCK_NODES` is not set, if a variable is invalid, or if
    /// [`build`](LockManagerBuilder::build) fails. There is no fallback to memory, which would exclude no other process.
    pub fn from_env() -> Result<Self, LockError> {
        Self::builder().nodes_from_env()?.settings_from_env()?.build()
    }
}

impl LockManagerBuilder {
    /// Adds the nodes of the environment variable `REDLOCK_NODES`: URLs separated by commas. A comma that is not followed by a
    /// scheme belongs to the URL, for example to a password.
    ///
    /// # Errors
    /// [`LockError::Configuration`] if the variable is not set, empty or not UTF-8. [`build`](Self::build) checks the URLs.
    pub fn nodes_from_env(self) -> Result<Self, LockError> {
        let urls = urls(&read(NODES)?.unwrap_or_default());
        if urls.is_empty() {
            return Err(LockError::configuration(format!(
                "{NODES} is not set: write {NODES}=redis://host:6379, or several URLs separated by commas"
            )));
        }
        Ok(self.nodes(urls))
    }

    /// Adds the nodes of one text, such as a program argument: URLs separated by commas, as in `REDLOCK_NODES`.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::builder().node_list("redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3").build()?;
    /// # Ok(()) }
    /// ```
    pub fn node_list(self, list: &str) -> Self {
        self.nodes(urls(list))
    }

    /// Applies the settings of environment variables. A variable that is not set or empty changes nothing. A later call on the builder
    /// overrides the environment.
    ///
    /// | variable | sets |
    /// |---|---|
    /// | `REDLOCK_NAMESPACE=shop` | [`namespace`](Self::namespace) |
    /// | `REDLOCK_NODE_TIMEOUT_MS=200` | [`node_timeout`](Self::node_timeout) |
    /// | `REDLOCK_MAX_TTL_MS=60000` | [`max_ttl`](crate::tuning::Tuning::max_ttl) |
    /// | `REDLOCK_AFTER_RESTART=abstain`, or `trust` | [`after_restart`](crate::tuning::Tuning::after_restart) |
    /// | `REDLOCK_TOLERATED_DATA_LOSS=1` | [`tolerated_data_loss`](crate::tuning::Tuning::tolerated_data_loss) |
    ///
    /// Options of a single node, such as credentials and certificates, are part of its URL; see [`NodeConfig`](crate::NodeConfig).
    ///
    /// # Errors
    /// [`LockError::Configuration`] if a variable is not UTF-8 or cannot be parsed. [`build`](Self::build) checks the ranges.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// // The operator can change everything but the namespace.
    /// let manager =
    ///     LockManager::builder().settings_from_env()?.namespace("shop").node("redis://127.0.0.1").build()?;
    /// # Ok(()) }
    /// ```
    pub fn settings_from_env(self) -> Result<Self, LockError> {
        self.settings_from(read)
    }

    fn settings_from(mut self, read: impl Fn(&str) -> Result<Option<String>, LockError>) -> Result<Self, LockError> {
        if let Some(namespace) = read(NAMESPACE)? {
            self = self.namespace(namespace);
        }
        if let Some(value) = read(NODE_TIMEOUT)? {
            self = self.node_timeout(millis(NODE_TIMEOUT, &value)?);
        }
        if let Some(value) = read(MAX_TTL)? {
            let max_ttl = millis(MAX_TTL, &value)?;
            self = self.tuning(|tuning| tuning.max_ttl(max_ttl));
        }
        if let Some(value) = read(AFTER_RESTART)? {
            let after_restart = after_restart(&value)?;
            self = self.tuning(|tuning| tuning.after_restart(after_restart));
        }
        if let Some(value) = read(TOLERATED_DATA_LOSS)? {
            let nodes = number_of_nodes(&value)?;
            self = self.tuning(|tuning| tuning.tolerated_data_loss(nodes));
        }
        Ok(self)
    }
}

/// Returns the value of a variable, unless it is not set or empty.
fn read(variable: &str) -> Result<Option<String>, LockError> {
    match std::env::var(variable) {
        Err(VarError::NotUnicode(_)) => Err(LockError::configuration(format!(
            "{variable} is not UTF-8: write other characters as codes, such as %E4"
        ))),
        value => Ok(value.ok().filter(|value| !value.trim().is_empty())),
    }
}

fn millis(variable: &str, value: &str) -> Result<Duration, LockError> {
    let number = value.trim().parse().map(Duration::from_millis);
    number.map_err(|_| LockError::configuration(format!("{variable} is a number of milliseconds, such as 200")))
}

fn number_of_nodes(value: &str) -> Result<usize, LockError> {
    let number = value.trim().parse();
    number.map_err(|_| LockError::configuration(format!("{TOLERATED_DATA_LOSS} is a number of nodes, such as 1")))
}

fn after_restart(value: &str) -> Result<AfterRestart, LockError> {
    match value.trim() {
        "abstain" => Ok(AfterRestart::Abstain),
        "trust" => Ok(AfterRestart::Trust),
        _ => Err(LockError::configuration(format!("{AFTER_RESTART} is `abstain` or `trust`"))),
    }
}

/// Splits a list of URLs at the commas. A comma ends a URL only if a scheme follows.
fn urls(list: &str) -> Vec<String> {
    let mut urls: Vec<String> = Vec::new();
    for part in list.split(',') {
        match urls.last_mut() {
            Some(url) if !begins_url(part) && !part.trim().is_empty() => *url = [url, ",", part].concat(),
            _ => urls.push(part.to_owned()),
        }
    }
    urls.into_iter().map(|url| url.trim().to_owned()).filter(|url| !url.is_empty()).collect()
}

/// Returns `true` if `text` begins with a scheme.
fn begins_url(text: &str) -> bool {
    let scheme = text.trim_start().split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comma_separates_urls_only_before_a_scheme() {
        let table: [(&str, &[&str]); 8] = [
            ("", &[]),
            (" , ", &[]),
            ("redis://a", &["redis://a"]),
            ("redis://a, rediss://b,\n unix:///c ,", &["redis://a", "rediss://b", "unix:///c"]),
            ("redis://:1,2,3@a,redis://:,@b", &["redis://:1,2,3@a", "redis://:,@b"]),
            ("redis://a,b:6379", &["redis://a,b:6379"]),
            ("redis+cluster://a?seed=b,redis://c", &["redis+cluster://a?seed=b", "redis://c"]),
            ("redis-sentinel://a,b/c,redis-cluster://d,e", &["redis-sentinel://a,b/c", "redis-cluster://d,e"]),
        ];
        for (list, expected) in table {
            assert_eq!(urls(list), expected, "{list}");
        }
    }

    fn settings(variables: &[(&str, &str)]) -> Result<LockManagerBuilder, String> {
        let read = |variable: &str| {
            let value = variables.iter().find(|(name, _)| *name == variable).map(|(_, value)| (*value).to_owned());
            Ok(value)
        };
        LockManager::builder().namespace("before").settings_from(read).map_err(|error| error.to_string())
    }

    #[test]
    fn environment_variables_set_the_builder_settings() {
        let all = [
            (NAMESPACE, "shop"),
            (NODE_TIMEOUT, " 200"),
            (MAX_TTL, "90000"),
            (AFTER_RESTART, "abstain"),
            (TOLERATED_DATA_LOSS, "1"),
        ];
        let builder = settings(&all).unwrap();
        assert_eq!(builder.namespace, "shop");
        assert_eq!(builder.policy.node_timeout, Some(Duration::from_millis(200)));
        assert_eq!(builder.policy.max_ttl(), Duration::from_secs(90));
        assert_eq!(builder.policy.after_restart(1), AfterRestart::Abstain);
        assert_eq!(builder.policy.tolerated_data_loss, 1);
        assert_eq!(settings(&[(AFTER_RESTART, "trust")]).unwrap().policy.after_restart(3), AfterRestart::Trust);
        assert_eq!(settings(&[]).unwrap().namespace, "before");
    }

    #[test]
    fn invalid_setting_error_names_the_environment_variable() {
        let table = [(NODE_TIMEOUT, "200ms"), (MAX_TTL, "-1"), (AFTER_RESTART, "maybe"), (TOLERATED_DATA_LOSS, "one")];
        for (variable, value) in table {
            let error = settings(&[(variable, value)]).unwrap_err();
            assert!(error.contains(variable), "{error}");
        }
    }
}
