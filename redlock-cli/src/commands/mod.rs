//! One file for each command: what it asks, what it says, and how it ends.

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
use redlock_runtime::admin::{BreakRequest, Inspection};
use std::time::Duration;

/// Does what `arguments` say.
pub(crate) async fn run(manager: &LockManager, arguments: &Arguments) -> Outcome {
    let json = arguments.json;
    match &arguments.command {
        Command::Check { ready } => check::run(manager, *ready, json).await,
        Command::Inspect(key) => inspect::run(manager, arguments, &key.key).await,
        Command::Waiters(key) => waiters::run(manager, &key.key, json).await,
        Command::List { pattern, most, within } => {
            list::run(manager, pattern, *most, Duration::from_secs(*within), json).await
        }
        Command::Fence(key) => fence::run(manager, &key.key, json).await,
        Command::Break { key, token, wait, force, reason } => {
            let token = match token {
                Some(token) => token.clone(),
                None => match break_lock::confirmed_token(manager, &key.key, json).await {
                    Ok(token) => token,
                    Err(outcome) => return outcome,
                },
            };
            let request = BreakRequest::new(key.key.as_str(), &token);
            let request = if *force { request.by_force() } else { request.within(Duration::from_secs(*wait)) };
            let request = reason.iter().fold(request, |request, reason| request.reason(reason));
            break_lock::run(manager, request, *force, json).await
        }
        Command::Watch { pattern, every } => watch::run(manager, pattern, *every).await,
    }
}

/// What keeps nodes from being relied on, a line each.
fn failures(inspection: &Inspection) -> Vec<String> {
    let failed =
        |node: &redlock_runtime::admin::NodeInspection| Some(format!("{}: {}", node.node, node.error.as_ref()?));
    inspection.nodes.iter().filter_map(failed).collect()
}

/// Whether so many nodes can be relied on as must agree.
fn is_heard(inspection: &Inspection) -> bool {
    inspection.nodes.len().saturating_sub(failures(inspection).len()) >= inspection.needed
}
