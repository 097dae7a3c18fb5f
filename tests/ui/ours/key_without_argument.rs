use axum::extract::{Path, State};
use redlock_runtime::{LockError, LockManager, distributed_lock};

#[distributed_lock(key = "order")]
pub async fn capture(order_id: u64, amount: u64) -> Result<u64, LockError> {
    Ok(order_id + amount)
}

pub struct TenantId(pub u64);

#[distributed_lock(key = "invoices")]
pub async fn invoices(tenant: TenantId, page: usize) -> Result<u64, LockError> {
    Ok(tenant.0 + page as u64)
}

/// The names are those inside the extractors.
#[distributed_lock(key = "orders")]
pub async fn handler(State(store): State<Service>, Path((tenant, id)): Path<(String, u64)>) -> Result<String, LockError> {
    drop(store);
    Ok(format!("{tenant}{id}"))
}

/// The message proposes a name for a value without one.
#[distributed_lock(key = "orders")]
pub async fn whole(path: Path<u64>) -> Result<u64, LockError> {
    Ok(*path)
}

/// The manager and the limit do not identify what is locked.
#[distributed_lock(key = "nightly", manager = locks, ttl = std::time::Duration::from_secs(seconds_id))]
pub async fn nightly(locks: &LockManager, seconds_id: u64, _unused_id: u8) -> Result<u64, LockError> {
    Ok(seconds_id)
}

/// These arguments do not identify it, either.
#[distributed_lock(key = "handles")]
pub async fn handles(
    pool: &Service,
    shared: std::sync::Arc<Service>,
    values: Vec<u8>,
    note: &str,
    limit: usize,
) -> Result<bool, LockError> {
    Ok(std::ptr::eq(pool, &*shared) && values.len() + note.len() > limit)
}

#[derive(Clone)]
pub struct Service;

#[distributed_lock(key("order", constant))]
pub async fn meant(order_id: u64) -> Result<u64, LockError> {
    Ok(order_id)
}

#[distributed_lock(key("order:{order_id}", constant))]
pub async fn not_constant(order_id: u64) -> Result<u64, LockError> {
    Ok(order_id)
}
