//! Connection to the nodes.

use crate::arguments::{Arguments, Command};
use redlock_runtime::{LockError, LockManager, LockManagerBuilder};
use std::env;
use std::time::Duration;

/// Timeout for the reply of a node: 1 s. Too small: a distant or busy node cannot be inspected. Too large: every command takes longer if a
/// node is frozen.
const NODE_TIMEOUT: Duration = Duration::from_secs(1);

/// Connects to the nodes with the namespace of the arguments.
///
/// # Errors
/// Fails without nodes, or with an invalid URL. The message contains no URL, because it may contain a password.
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
/// Fails like [`connect`].
pub(crate) fn connect_to_all(arguments: &Arguments) -> Result<LockManager, LockError> {
    builder(arguments)?.namespace("").build()
}

/// Returns the namespace of the keys, or `None` if none is set.
pub(crate) fn namespace(arguments: &Arguments) -> Option<String> {
    let namespace = arguments.namespace.clone().or_else(|| env::var("REDLOCK_NAMESPACE").ok());
    namespace.filter(|namespace| !namespace.trim().is_empty())
}

/// Returns a builder with the services' settings from the environment. Different settings would cause warnings here and
/// in the logs of the services.
fn builder(arguments: &Arguments) -> Result<LockManagerBuilder, LockError> {
    let builder = match arguments.command {
        // `check` evaluates the node timeout of the services.
        Command::Check { .. } => LockManager::builder().node_timeout(NODE_TIMEOUT).settings_from_env()?,
        _ => LockManager::builder().settings_from_env()?.node_timeout(NODE_TIMEOUT),
    };
    match &arguments.nodes {
        Some(list) => Ok(builder.node_list(list)),
        None => builder.nodes_from_env(),
    }
}
