use redlock_runtime::LockError;

pub struct Order {
    pub id: u64,
    pub name: String,
}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn wrong_let(id: u64) -> Result<u64, LockError> {
    let name: String = id;
    drop(name);
    Ok(id)
}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn wrong_tail(id: u64) -> Result<u64, LockError> {
    drop(id);
    Ok("text")
}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn wrong_return(id: u64) -> Result<u64, LockError> {
    if id == 0 {
        return Ok(None);
    }
    Ok(id)
}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn wrong_statement(id: u64) -> Result<u64, LockError> {
    if id == 0 {
        5
    }
    Ok(id)
}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn wrong_arms(id: u64) -> Result<u64, LockError> {
    Ok(match id {
        0 => id,
        1 => "one",
    })
}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn question_mark(id: u64) -> Result<u64, LockError> {
    let text = String::from_utf8(vec![])?;
    Ok(id + text.len() as u64)
}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn unknown_names(id: u64, order: Order) -> Result<u64, LockError> {
    let other = idd + order.idd + order.total();
    Unknown::new(other);
    Ok(id)
}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn arguments(id: u64) -> Result<u64, LockError> {
    wrong_let().await?;
    wrong_tail("a").await?;
    Ok(id)
}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn not_awaited(id: u64) -> Result<u64, LockError> {
    let found = wrong_let(id)?;
    Ok(found)
}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn unknown_type(id: u64) -> Result<u64, LockError> {
    let parsed = "5".parse().unwrap();
    drop(parsed);
    Ok(id)
}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn trait_bound<T>(id: u64, value: T) -> Result<String, LockError> {
    drop(id);
    Ok(value.to_string())
}

impl Order {
    #[redlock_runtime::distributed_lock(key = "order:{self.id}")]
    pub async fn method(&self) -> Result<String, LockError> {
        Ok(self.name)
    }

    #[redlock_runtime::distributed_lock(key = "order:{self.id}")]
    pub async fn missing(&self) -> Result<&str, LockError> {
        self.nothing().await
    }
}
