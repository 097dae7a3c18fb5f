use redlock_runtime::LockError;
use std::rc::Rc;
use std::sync::Mutex;

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn shared(id: u64) -> Result<u64, LockError> {
    let shared = Rc::new(id);
    tokio::task::yield_now().await;
    Ok(*shared)
}

#[redlock_runtime::distributed_lock(key = "order:{id}")]
pub async fn guarded(id: u64, mutex: &'static Mutex<u64>) -> Result<u64, LockError> {
    let inner = mutex.lock().unwrap();
    tokio::task::yield_now().await;
    Ok(*inner + id)
}

pub fn spawn(mutex: &'static Mutex<u64>) {
    tokio::spawn(shared(7));
    tokio::spawn(guarded(7, mutex));
}
