use redlock_runtime::{LockError, distributed_lock};

use std::pin::Pin;

#[distributed_lock(key = "order:{order_id}")]
pub fn block(order_id: u64) -> Pin<Box<dyn Future<Output = Result<u64, LockError>> + Send>> {
    if order_id == 0 {
        return Box::pin(async { Ok(0) });
    }
    Box::pin(async move { Ok(order_id) })
}

#[distributed_lock(key = "order:{order_id}")]
pub fn future(order_id: u64) -> Pin<Box<dyn Future<Output = Result<u64, LockError>> + Send>> {
    if order_id == 0 {
        return block(1);
    }
    block(order_id)
}
