use redlock_runtime::{LockError, distributed_lock};

use std::pin::Pin;

#[distributed_lock(key = "order:{order_id}", guard = order_id)]
pub async fn taken(order_id: u64) -> Result<u64, LockError> {
    Ok(order_id)
}

#[distributed_lock(key = "order:{order_id}", guard = lock)]
pub fn unseen(order_id: u64) -> Pin<Box<dyn Future<Output = Result<u64, LockError>> + Send>> {
    taken(order_id).boxed_up()
}

pub trait BoxedUp<'a, T>: Future<Output = T> + Sized + Send + 'a {
    fn boxed_up(self) -> Pin<Box<dyn Future<Output = T> + Send + 'a>> {
        Box::pin(self)
    }
}

impl<'a, T, F: Future<Output = T> + Send + 'a> BoxedUp<'a, T> for F {}
