use redlock_runtime::{LockError, LockManager};

pub async fn dropped(manager: &LockManager) -> Result<(), LockError> {
    manager.acquire("order:7").await?;
    manager.acquire(redlock_runtime::LockRequest::new("order:7").fencing()).await?;
    Ok(())
}
