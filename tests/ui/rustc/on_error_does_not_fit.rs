use redlock_runtime::{LockError, distributed_lock};

pub fn to_text(_: LockError) -> String {
    String::new()
}

#[distributed_lock(key = "nightly", on_error = |_| 5)]
pub async fn closure() -> bool {
    true
}

#[distributed_lock(key = "nightly", on_error = to_text)]
pub async fn path() -> bool {
    true
}

#[distributed_lock(key = "nightly", on_error = || false)]
pub async fn arity() -> bool {
    true
}
