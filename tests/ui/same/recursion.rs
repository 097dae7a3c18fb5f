use redlock_runtime::LockError;

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn unboxed(id: u64) -> Result<u64, LockError> {
    if id == 0 { Ok(0) } else { unboxed(id - 1).await }
}
