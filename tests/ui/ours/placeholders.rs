use redlock_runtime::{LockError, distributed_lock, distributed_lock_defaults};

pub struct Order {
    pub id: u64,
}

impl Order {
    #[distributed_lock(key = "order:{id}")]
    pub async fn field_of_self(&self) -> Result<(), LockError> {
        Ok(())
    }

    #[distributed_lock(key = "order:{number}")]
    pub async fn field_or_argument(&self, amount: u64) -> Result<u64, LockError> {
        Ok(amount)
    }

    #[distributed_lock(key = "order:{number}")]
    pub async fn field_or_arguments(&self, amount: u64, tax: u64) -> Result<u64, LockError> {
        Ok(amount + tax)
    }

    #[distributed_lock(key = "order:{slef.id}")]
    pub async fn misspelt(&self) -> Result<(), LockError> {
        Ok(())
    }

    pub fn line(&self, id: u64, step: i8) -> u64 {
        id.wrapping_add_signed(step.into())
    }
}

#[distributed_lock(key = "shard:{id % 16}:{id as u8}:{shard(id)}")]
pub async fn expressions(id: u64) -> Result<u64, LockError> {
    Ok(id)
}

#[distributed_lock(key = "order:{order.line(id, -x)}:{order.line(id, -3)}")]
pub async fn inputs(order: Order, id: u64, x: i8) -> Result<u64, LockError> {
    Ok(order.id + id + u64::from(x.unsigned_abs()))
}

#[distributed_lock(key = "a:{id}", "b:{id}")]
pub async fn second_key(id: u64) -> Result<u64, LockError> {
    Ok(id)
}

#[distributed_lock(key("a:{id}"), "b:{id}")]
pub async fn second_key_behind_parentheses(id: u64) -> Result<u64, LockError> {
    Ok(id)
}

#[distributed_lock(path = "/a/{id}", "/b/{id}")]
pub async fn second_path(id: u64) -> Result<u64, LockError> {
    Ok(id)
}

#[distributed_lock(key = "a:{id}", "30s")]
pub async fn duration(id: u64) -> Result<u64, LockError> {
    Ok(id)
}

#[distributed_lock_defaults(tll = 3)]
impl Order {
    #[distributed_lock(key = "default")]
    pub async fn misspelt_default(&self) -> Result<(), LockError> {
        Ok(())
    }
}

#[distributed_lock_defaults("30s")]
impl Order {
    #[distributed_lock(key = "default")]
    pub async fn unnamed_default(&self) -> Result<(), LockError> {
        Ok(())
    }
}
