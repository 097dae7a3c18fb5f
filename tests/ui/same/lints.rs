#![warn(unused, unused_qualifications, unused_results, let_underscore_drop)]
use redlock_runtime::LockError;

#[redlock_runtime::distributed_lock(key = "order:{in_key}")]
pub async fn unused(amount: u64, mut never_changed: u64, in_key: u64, _silent: u64) -> Result<u64, LockError> {
    let local = 5;
    Ok(never_changed)
}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn unused_all(id: u64, mut amount: u64, (left, right): (u64, u64), name: String) -> Result<u64, LockError> {
    Ok(right)
}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn field_of_the_same_name(id: u64, len: u64, order: (u64, u64)) -> Result<u64, LockError> {
    struct Local {
        len: u64,
    }
    let local = Local { len: order.0 };
    Ok(local.len)
}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn unreachable(id: u64) -> Result<u64, LockError> {
    return Ok(1);
    Ok(2)
}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn discarded(id: u64) -> Result<u64, LockError> {
    unused_all(id, 1, (1, 2), String::new());
    id.checked_add(1);
    let _ = String::from("dropped");
    std::mem::drop(5);
    (id);
    Ok((id))
}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn assigned(mut id: u64) -> Result<u64, LockError> {
    let mut value = 5;
    value = 6;
    id = 5;
    Ok(1)
}

#[deprecated(note = "old")]
pub fn old() {}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn uses_old(id: u64) -> Result<u64, LockError> {
    old();
    fn never_called() {}
    while true {
        break;
    }
    Ok(id)
}
