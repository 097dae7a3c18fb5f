use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "order:{order_id}")]
pub async fn same(order_id: u64, depth: u64) -> Result<u64, LockError> {
    if depth > 0 { Box::pin(same(order_id, depth - 1)).await } else { Ok(order_id) }
}

#[distributed_lock(key = "order:{order_id}")]
pub async fn other(order_id: u64) -> Result<u64, LockError> {
    if order_id > 0 { Box::pin(other(order_id - 1)).await } else { Ok(order_id) }
}

pub struct Service {
    pub tenant: String,
}

impl Service {
    #[distributed_lock(key = "{self.tenant}")]
    pub async fn method(&self, depth: u64) -> Result<u64, LockError> {
        match depth {
            0 => Ok(0),
            _ => Box::pin(self.method(depth - 1)).await,
        }
    }

    #[distributed_lock(key = "{self.tenant}")]
    pub async fn same(&self, depth: u64) -> Result<u64, LockError> {
        same(depth, depth).await
    }
}
