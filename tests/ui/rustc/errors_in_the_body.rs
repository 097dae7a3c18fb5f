use redlock_runtime::{LockError, distributed_lock};

use std::rc::Rc;

#[distributed_lock(key = "order:{order_id}")]
pub async fn wrong_type(order_id: u64) -> Result<u64, LockError> {
    let name: String = order_id;
    drop(name);
    Ok("text")
}

#[distributed_lock(key = "order:{name}")]
pub async fn moved(name: String) -> Result<String, LockError> {
    drop(name);
    Ok(name)
}

#[distributed_lock(key = "order:{order_id}")]
pub async fn no_tail(order_id: u64) -> Result<u64, LockError> {
    order_id.to_string();
}

#[distributed_lock(key = "order:{order_id}")]
pub async fn not_mutable(order_id: u64) -> Result<u64, LockError> {
    order_id += 1;
    Ok(order_id)
}

#[distributed_lock(key = "order:{order_id}")]
pub async fn question_mark(order_id: u64) -> Result<u64, LockError> {
    let text = String::from_utf8(vec![])?;
    Ok(order_id + text.len() as u64)
}

#[distributed_lock(key = "order:{order_id}")]
pub async fn not_send(order_id: u64) -> Result<u64, LockError> {
    let shared = Rc::new(order_id);
    tokio::task::yield_now().await;
    Ok(*shared)
}

pub fn spawn() {
    tokio::spawn(not_send(7));
}
