use redlock_runtime::LockError;

#[redlock_runtime::distributed_lock(key = "order:{left}")]
pub async fn longer<'a, 'b>(left: &'a str, right: &'b str) -> Result<&'a str, LockError> {
    if left.is_empty() { Ok(left) } else { Ok(right) }
}

#[redlock_runtime::distributed_lock(key = "order:{left}")]
pub async fn forever(left: &str) -> Result<(), LockError> {
    let kept: &'static str = left;
    drop(kept);
    Ok(())
}
