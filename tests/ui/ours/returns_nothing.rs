use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "nightly")]
pub async fn nightly() {}

#[distributed_lock(key = "nightly")]
pub async fn unit() -> () {}

/// `on_error` chooses what to return.
#[distributed_lock(key = "nightly", on_error = |_: LockError| ())]
pub async fn handled() {}

#[async_trait::async_trait]
pub trait Jobs {
    #[distributed_lock(key = "nightly")]
    async fn in_a_trait(&self) {}

    #[distributed_lock(key = "nightly")]
    async fn unit_in_a_trait(&self) -> () {}
}
