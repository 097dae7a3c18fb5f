use redlock_runtime::LockError;

pub struct Service {
    names: Vec<String>,
}

#[redlock_runtime::distributed_lock(key = "order:{name}")]
pub async fn moved(name: String) -> Result<String, LockError> {
    drop(name);
    Ok(name)
}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn moved_local(id: u64, names: Vec<String>) -> Result<usize, LockError> {
    let moved = names;
    drop(moved);
    Ok(names.len() + id as usize)
}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn borrowed_twice(id: u64, mut names: Vec<String>) -> Result<u64, LockError> {
    let first = &mut names;
    let second = &mut names;
    first.push(String::new());
    second.push(String::new());
    Ok(id)
}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn local_reference(id: u64) -> Result<&'static str, LockError> {
    let name = id.to_string();
    Ok(&name)
}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn dropped(id: u64) -> Result<u64, LockError> {
    let reference;
    {
        let local = id;
        reference = &local;
    }
    Ok(*reference)
}

impl Service {
    #[redlock_runtime::distributed_lock(key = "order:{id}")]
    pub async fn moved_out(&self, id: u64) -> Result<Vec<String>, LockError> {
        drop(id);
        Ok(self.names)
    }

    #[redlock_runtime::distributed_lock(key = "order:{id}")]
    pub async fn not_mutable(&self, id: u64) -> Result<u64, LockError> {
        self.names.clear();
        Ok(id)
    }
}
