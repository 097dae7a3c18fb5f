use redlock_runtime::{LockError, LockManager};

pub async fn dropped(manager: &LockManager) -> Result<(), LockError> {
    manager.acquire("order:7").await?;
    manager.acquire_fenced("order:7").await?;
    Ok(())
}
