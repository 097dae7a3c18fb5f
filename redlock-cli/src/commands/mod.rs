//! The commands, one file each. A command calls the library, and formats its output and exit code.

mod break_lock;
mod check;
mod fence;
mod inspect;
mod list;
mod waiters;
mod watch;

use crate::arguments::{Arguments, Command};
use crate::outcome::Outcome;
use redlock_runtime::LockManager;
use redlock_runtime::admin::{BreakOptions, Inspection, ListOptions, NodeInspection};
use std::time::Duration;

/// Runs the command of `arguments`.
pub(crate) async fn run(manager: &LockManager, arguments: &Arguments) -> Outcome {
    let json = arguments.json;
    match &arguments.command {
        Command::Check { ready } => check::run(manager, *ready, json).await,
        Command::Inspect(key) => inspect::run(manager, arguments, &key.key).await,
        Command::Waiters(key) => waiters::run(manager, &key.key, json).await,
        Command::List { pattern, limit, timeout } => {
            let options = ListOptions::new(pattern.as_str()).limit(*limit).timeout(Duration::from_secs(*timeout));
            list::run(manager, options, json).await
        }
        Command::Fence(key) => fence::run(manager, &key.key, json).await,
        Command::Break { key, token, wait, force, reason } => {
            let token = match token {
                Some(token) => token.clone(),
                None => match break_lock::confirmed_token(manager, arguments, &key.key).await {
                    Ok(token) => token,
                    Err(outcome) => return outcome,
                },
            };
            // If the text is a token of the library, it is treated as that token.
            let options = BreakOptions::foreign(&token);
            let options = if *force { options.by_force() } else { options.wait(Duration::from_secs(*wait)) };
            let options = reason.iter().fold(options, |options, reason| options.reason(reason));
            break_lock::run(manager, &key.key, options, *force, json).await
        }
        Command::Watch { pattern, every, sort } => watch::run(manager, pattern, *every, *sort).await,
    }
}

/// Returns a line for each node whose reply cannot be used.
fn failures(inspection: &Inspection) -> Vec<String> {
    let failed = |node: &NodeInspection| Some(format!("{}: {}", node.node, node.error.as_ref()?));
    inspection.nodes.iter().filter_map(failed).collect()
}

/// Returns `true` if enough nodes sent a usable reply.
fn has_quorum(inspection: &Inspection) -> bool {
    inspection.nodes.len().saturating_sub(failures(inspection).len()) >= inspection.needed
}

/// Returns the number of waiters at the node that has the most.
fn waiter_count(inspection: &Inspection) -> u64 {
    inspection.nodes.iter().map(|node| node.waiter_count).max().unwrap_or(0)
}
