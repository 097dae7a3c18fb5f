use redlock_runtime::{LockError, distributed_lock};
use std::sync::Arc;

#[distributed_lock(key = "order:{order_id}")]
pub async fn same(order_id: u64, depth: u64) -> Result<u64, LockError> {
    if depth > 0 { Box::pin(same(order_id, depth - 1)).await } else { Ok(order_id) }
}

#[distributed_lock(key = "order:{order_id}")]
pub async fn other(order_id: u64) -> Result<u64, LockError> {
    if order_id > 0 { Box::pin(other(order_id - 1)).await } else { Ok(order_id) }
}

#[distributed_lock(key = "order:{order_id}")]
pub async fn shadowed(order_id: u64) -> Result<u64, LockError> {
    let order_id = order_id - 1;
    Box::pin(shadowed(order_id)).await
}

#[distributed_lock(key = "order:{order_id}")]
pub async fn local(order_id: u64) -> Result<u64, LockError> {
    async fn local(order_id: u64) -> Result<u64, LockError> {
        Ok(order_id)
    }
    local(order_id).await
}

#[derive(Default)]
pub struct Service<'a> {
    pub tenant: String,
    pub name: &'a str,
    pub store: Store,
}

#[derive(Default)]
pub struct Store;

impl Store {
    pub async fn delegate(&self, id: u64) -> Result<u64, LockError> {
        Ok(id)
    }
}

impl<'a> Service<'a> {
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

    #[distributed_lock(key = "order:{id}")]
    pub async fn by_type(id: u64) -> Result<u64, LockError> {
        Box::pin(Self::by_type(id)).await
    }

    #[distributed_lock(key = "order:{id}")]
    pub async fn another(&self, other: &Self, id: u64) -> Result<u64, LockError> {
        Box::pin(other.another(self, id)).await
    }

    /// Only the compiler knows that this is `Self`.
    #[distributed_lock(key = "order:{id}")]
    pub async fn by_name(&self, other: Arc<Service<'a>>, id: u64) -> Result<u64, LockError> {
        Box::pin(other.by_name(other.clone(), id)).await
    }

    /// Only the compiler knows that this is not `Self`.
    #[distributed_lock(key = "order:{id}")]
    pub async fn delegate(&self, store: &Store, id: u64) -> Result<u64, LockError> {
        self.store.delegate(id).await?;
        store.delegate(id).await
    }

    /// Another object has another key.
    #[distributed_lock(key = "{self.tenant}:{id}")]
    pub async fn with_own_key(&self, other: &Self, id: u64) -> Result<u64, LockError> {
        Box::pin(other.with_own_key(self, id)).await
    }
}
