use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "order")]
pub struct Order;

#[distributed_lock(key = "order")]
impl Order {
    pub async fn capture(&self) -> Result<(), LockError> {
        Ok(())
    }
}

pub trait Capture {
    #[distributed_lock(key = "order")]
    fn capture(&self) -> impl Future<Output = Result<(), LockError>>;
}
