use redlock_runtime::LockError;

#[redlock_runtime::distributed_lock(key = "order:{left}")]
pub async fn longer<'a, 'b>(left: &'a str, right: &'b str) -> Result<&'a str, LockError> {
    if left.is_empty() { Ok(left) } else { Ok(right) }
}

#[redlock_runtime::distributed_lock(key = "order:{left}")]
pub async fn forever(left: &str) -> Result<(), LockError> {
    let kept: &'static str = left;
    drop(kept);
    Ok(())
}

#[redlock_runtime::distributed_lock(key = "order:{left}", wait = none, on_contended = skip, guard = _lock)]
pub async fn with_options<'a, 'b>(left: &'a str, right: &'b str) -> Result<Option<&'a str>, LockError> {
    if left.is_empty() { Ok(None) } else { Ok(Some(right)) }
}

#[redlock_runtime::distributed_lock(key = "order:{left}")]
pub async fn with_an_item<'a, 'b>(left: &'a str, right: &'b str, _unused: u8) -> Result<&'a str, LockError> {
    fn is_empty(text: &str) -> bool {
        text.is_empty()
    }
    if is_empty(left) { Ok(left) } else { Ok(right) }
}

pub struct Service {
    pub name: String,
}

impl Service {
    #[redlock_runtime::distributed_lock(key = "order:{other}")]
    pub async fn unnamed(&self, other: &str) -> Result<&str, LockError> {
        if self.name.is_empty() { Ok(&self.name) } else { Ok(other) }
    }

    #[redlock_runtime::distributed_lock(key = "order:{other}")]
    pub async fn returned(&self, other: &str) -> Result<&str, LockError> {
        if self.name.is_empty() {
            return Ok(other);
        }
        Ok(&self.name)
    }
}

#[redlock_runtime::distributed_lock(key = "order:{left}")]
pub fn future<'a, 'b: 'a>(left: &'a str, right: &'b str) -> impl Future<Output = Result<&'b str, LockError>> + 'a {
    async move { if right.is_empty() { Ok(right) } else { Ok(left) } }
}
