use redlock_runtime::distributed_lock;

pub fn outer() {
    let _closure = #[distributed_lock(key = "order")]
    async || {};
}
