use redlock_runtime::distributed_lock;

pub fn of_text(_: String) -> bool {
    false
}

#[distributed_lock(key = "nightly", on_error = |_| 5)]
pub async fn closure() -> bool {
    true
}

#[distributed_lock(key = "nightly", on_error = of_text)]
pub async fn path() -> bool {
    true
}

#[distributed_lock(key = "nightly", on_error = || false)]
pub async fn arity() -> bool {
    true
}
