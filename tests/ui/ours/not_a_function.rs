use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "order")]
pub struct Order;

#[distributed_lock(key = "order")]
impl Order {
    pub async fn capture(&self) -> Result<(), LockError> {
        Ok(())
    }
}

#[distributed_lock(key = "order")]
pub trait Empty {}

#[distributed_lock(key = "order")]
pub mod orders {}

pub trait Capture {
    #[distributed_lock(key = "order")]
    fn capture(&self) -> impl Future<Output = Result<(), LockError>>;
}
