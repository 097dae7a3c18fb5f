use redlock_runtime::LockError;

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn no_tail(id: u64) -> Result<u64, LockError> {
    id.to_string();
}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn empty(id: u64) -> Result<u64, LockError> {}
