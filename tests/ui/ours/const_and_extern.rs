use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "order:{order_id}")]
pub const fn at_compile_time(order_id: u64) -> Result<u64, LockError> {
    Ok(order_id)
}

#[distributed_lock(key = "order:{order_id}", on_error = |_| 0)]
pub extern "C" fn for_c(order_id: u64) -> u64 {
    order_id
}
