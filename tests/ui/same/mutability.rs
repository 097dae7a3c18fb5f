use redlock_runtime::LockError;

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn not_mutable(id: u64) -> Result<u64, LockError> {
    id += 1;
    Ok(id)
}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn not_mutable_method(id: u64, names: Vec<String>) -> Result<u64, LockError> {
    names.clear();
    Ok(id)
}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn local(id: u64) -> Result<u64, LockError> {
    let local = 5;
    local += id;
    Ok(local)
}
