use redlock_runtime::{LockError, LockGuard, LockManager};

/// The future of a plain closure cannot borrow its guard. `async |guard| { .. }` compiles.
pub async fn closure_that_returns_a_future(locks: LockManager) -> Result<bool, LockError> {
    locks.with_lock("order:7", |guard| async move { Ok(guard.is_held()) }).await
}

pub async fn with_the_type_of_the_guard(locks: LockManager) -> Result<bool, LockError> {
    locks.with_lock("order:7", |guard: &LockGuard| async move { Ok(guard.is_held()) }).await
}

pub async fn without_the_guard(locks: LockManager) -> Result<(), LockError> {
    locks.with_lock("order:7", |_| async move { Ok(()) }).await
}

pub async fn async_block(locks: LockManager) -> Result<(), LockError> {
    locks.with_lock("order:7", async { Ok(()) }).await
}

pub async fn async_closure(locks: LockManager) -> Result<bool, LockError> {
    locks.with_lock("order:7", async |guard| Ok(guard.is_held())).await
}
