use redlock_runtime::{LockError, distributed_lock};

macro_rules! transfer {
    ($name:ident, $key:literal, $account:ident) => {
        #[distributed_lock(key = $key)]
        pub async fn $name(account: u64, $account: u64) -> Result<u64, LockError> {
            Ok(account + $account)
        }
    };
}

transfer!(both, "account:{account}", account);
transfer!(one, "account:{other}", other);
