//! The manager that all questions go through.

use crate::arguments::Arguments;
use redlock_runtime::{LockError, LockManager};
use std::time::Duration;

/// How long a node may take to answer. Smaller, one that is far away or busy cannot be looked at; larger, a look at one that is
/// frozen takes longer.
const NODE_TIMEOUT: Duration = Duration::from_secs(1);

/// # Errors
/// When no nodes are named, or a URL is wrong. The text shows no URL, which may hold a password.
pub(crate) fn connect(arguments: &Arguments) -> Result<LockManager, LockError> {
    // The settings of the services: others would be a difference, here and in their logs.
    let builder = LockManager::builder().settings_from_env()?.node_timeout(NODE_TIMEOUT);
    let builder = match &arguments.nodes {
        Some(list) => builder.node_list(list),
        None => builder.nodes_from_env()?,
    };
    match &arguments.namespace {
        Some(namespace) => builder.namespace(namespace.clone()).build(),
        None => builder.build(),
    }
}
