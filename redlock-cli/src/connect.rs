//! The manager that all questions go through.

use crate::arguments::{Arguments, Command};
use redlock_runtime::{LockError, LockManager, LockManagerBuilder};
use std::env;
use std::time::Duration;

/// How long a node may take to answer. Smaller, one that is far away or busy cannot be looked at; larger, a look at one that is
/// frozen takes longer.
const NODE_TIMEOUT: Duration = Duration::from_secs(1);

/// # Errors
/// When no nodes are named, or a URL is wrong. The text shows no URL, which may hold a password.
pub(crate) fn connect(arguments: &Arguments) -> Result<LockManager, LockError> {
    let builder = builder(arguments)?;
    match &arguments.namespace {
        Some(namespace) => builder.namespace(namespace.clone()).build(),
        None => builder.build(),
    }
}

/// Connects to the same nodes without a namespace, to see the keys of all namespaces.
///
/// # Errors
/// As [`connect`].
pub(crate) fn connect_to_all(arguments: &Arguments) -> Result<LockManager, LockError> {
    builder(arguments)?.namespace("").build()
}

/// Returns the namespace of the keys; `None` without one.
pub(crate) fn namespace(arguments: &Arguments) -> Option<String> {
    let namespace = arguments.namespace.clone().or_else(|| env::var("REDLOCK_NAMESPACE").ok());
    namespace.filter(|namespace| !namespace.trim().is_empty())
}

/// The settings of the services: others would be a difference, here and in their logs.
fn builder(arguments: &Arguments) -> Result<LockManagerBuilder, LockError> {
    let builder = match arguments.command {
        // It judges the node timeout of the services.
        Command::Check { .. } => LockManager::builder().node_timeout(NODE_TIMEOUT).settings_from_env()?,
        _ => LockManager::builder().settings_from_env()?.node_timeout(NODE_TIMEOUT),
    };
    match &arguments.nodes {
        Some(list) => Ok(builder.node_list(list)),
        None => builder.nodes_from_env(),
    }
}
