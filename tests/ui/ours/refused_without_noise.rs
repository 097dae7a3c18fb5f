use redlock_runtime::{LockError, distributed_lock};

/// Only the key uses the argument, and the key is rejected. The compiler must not report an unused argument.
#[distributed_lock(key = "order:{order_id}:{}")]
pub async fn capture(order_id: u64, (left, right): (u64, u64)) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "order:{order_id}", tll = 5)]
pub fn forward(order_id: u64) -> impl Future<Output = Result<(), LockError>> {
    async { Ok(()) }
}

pub struct Service;

#[async_trait::async_trait]
pub trait Capture {
    async fn capture(&self, order_id: u64) -> Result<(), LockError>;
}

#[async_trait::async_trait]
impl Capture for Service {
    #[distributed_lock(key = "order:{order_id}:{}")]
    async fn capture(&self, order_id: u64) -> Result<(), LockError> {
        Ok(())
    }
}
