use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "nightly")]
pub async fn nightly() {}

#[distributed_lock(key = "nightly")]
pub async fn unit() -> () {}

/// `on_error` says what to do instead.
#[distributed_lock(key = "nightly", on_error = |_: LockError| ())]
pub async fn handled() {}
