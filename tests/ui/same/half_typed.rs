use redlock_runtime::LockError;

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn half_typed(id: u64) -> Result<u64, LockError> {
    let name = id.
    Ok(id)
}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn half_call(id: u64) -> Result<u64, LockError> {
    half_typed(id
    ).
}

pub async fn caller() -> Result<u64, LockError> {
    half_typed(7).await
}
