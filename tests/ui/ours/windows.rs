use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "nightly", once_per = 1h, min_hold = 1h)]
pub async fn two_ways() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", once_per = 1h, fencing, guard = lock)]
pub async fn a_counter_for_each_window() -> Result<(), LockError> {
    lock.ensure_held()
}

#[distributed_lock(key = "nightly", once_per = 1h, wait = none)]
pub async fn nobodys() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", window_start = 6h, on_failure = reopen)]
pub async fn no_windows() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", once_per = 0)]
pub async fn zero() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", once_per = -5)]
pub async fn negative() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", once_per = 31d)]
pub async fn too_long() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", once_per = 1h, on_failure = reopn)]
pub async fn word() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", every = 1h)]
pub async fn alias() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", once_per = 1h, on_failure = reopen, on_error = |_| 0)]
pub async fn never_fails() -> u8 {
    7
}
