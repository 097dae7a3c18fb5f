use redlock_runtime::distributed_lock;

pub struct MyError;

#[distributed_lock(key = "order:{order_id}")]
pub async fn option(order_id: u64) -> Option<u64> {
    Some(order_id)
}

#[distributed_lock(key = "order:{order_id}")]
pub async fn boolean(order_id: u64) -> bool {
    order_id == 0
}

#[distributed_lock(key = "order:{order_id}")]
pub async fn error(order_id: u64) -> Result<u64, MyError> {
    Ok(order_id)
}

#[distributed_lock(key = "order:{order_id}")]
pub fn boxed(order_id: u64) -> std::pin::Pin<Box<dyn Future<Output = Result<u64, MyError>> + Send>> {
    Box::pin(async move { Ok(order_id) })
}

/// The `From` cannot be implemented for a type of another crate.
#[distributed_lock(key = "order:{order_id}")]
pub async fn foreign(order_id: u64) -> Result<u64, tonic::Status> {
    Ok(order_id)
}
