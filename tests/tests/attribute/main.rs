//! Behaviour of functions with `#[distributed_lock]`, on the node in memory.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod defaults;
mod drop_order;
mod exits;
mod hard_shapes;
mod keys;
mod lock_order;
mod nested;
mod options;
mod outcomes;
mod several;
mod several_nested;
mod shapes;
mod shared;
mod size;
mod spawned;
mod templates;

// Files that must compile without warnings of clippy.
#[path = "../../ui/pass/async_trait.rs"]
mod ui_async_trait;
#[path = "../../ui/pass/defaults.rs"]
mod ui_defaults;
#[path = "../../ui/pass/frameworks.rs"]
mod ui_frameworks;
#[path = "../../ui/pass/futures.rs"]
mod ui_futures;
#[path = "../../ui/pass/hard_shapes.rs"]
mod ui_hard_shapes;
#[path = "../../ui/pass/inferred.rs"]
mod ui_inferred;
#[path = "../../ui/pass/macro_rules.rs"]
mod ui_macro_rules;
#[path = "../../ui/pass/more_shapes.rs"]
mod ui_more_shapes;
#[path = "../../ui/pass/several_keys.rs"]
mod ui_several_keys;
#[path = "../../ui/pass/shapes.rs"]
mod ui_shapes;

use redlock_runtime::{LockManager, LockRequest, Wait};

/// Returns `true` if `key` is free.
async fn is_free(manager: &LockManager, key: &str) -> bool {
    manager.acquire(LockRequest::new(key).wait(Wait::None)).await.is_ok()
}
