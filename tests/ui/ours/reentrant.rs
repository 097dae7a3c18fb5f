use redlock_runtime::{LockError, distributed_lock, distributed_lock_defaults};

#[distributed_lock(key = "report", once_per = 15m, reentrant)]
async fn again_in_its_window() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", recursive)]
async fn in_other_words() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", order_check = disabled)]
async fn another_word() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", order_check = false)]
async fn no_word() -> Result<(), LockError> {
    Ok(())
}

struct Orders;

#[distributed_lock_defaults(reentrant)]
impl Orders {
    #[distributed_lock(key = "report", once_per = 15m)]
    async fn the_default_says_nothing(&self) -> Result<(), LockError> {
        Ok(())
    }

    #[distributed_lock(key = "order:{id}", reentrant = false)]
    async fn against_the_default(&self, id: u64) -> Result<(), LockError> {
        let _ = id;
        Ok(())
    }
}

#[distributed_lock_defaults(reentrant, once_per = 15m)]
impl Orders {
    #[distributed_lock(key = "report", reentrant)]
    async fn against_another_default(&self) -> Result<(), LockError> {
        Ok(())
    }
}

fn main() {}
