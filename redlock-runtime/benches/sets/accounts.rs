//! Account balances that several processes read and write. Only the locks keep them correct.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) const ACCOUNTS: u64 = 64;

const OPENING_BALANCE: i64 = 1_000_000;
const SIZE: u64 = size_of::<i64>() as u64;

/// File with one number for each account.
pub(crate) struct Accounts {
    file: File,
}

impl Accounts {
    /// Creates the accounts, and returns them with the path for [`open`](Self::open).
    pub(crate) fn create(folder: &Path) -> (Self, PathBuf) {
        let path = folder.join("accounts");
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path);
        let accounts = Self { file: file.expect("the folder is ours") };
        (0..ACCOUNTS).for_each(|account| accounts.put(account, OPENING_BALANCE));
        (accounts, path)
    }

    pub(crate) fn open(path: &Path) -> Self {
        Self { file: File::options().read(true).write(true).open(path).expect("the parent has made it") }
    }

    /// Reads both balances, waits for the length of the body or yields, and writes both balances. Concurrent transfers
    /// of one account would change the total.
    pub(crate) async fn transfer(&self, from: u64, to: u64, body: Duration) {
        let (left, there) = (self.balance(from), self.balance(to));
        if body.is_zero() {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(body).await;
        }
        self.put(from, left - 1);
        self.put(to, there + 1);
    }

    /// Returns `true` if the total has not changed.
    pub(crate) fn are_exact(&self) -> bool {
        let sum: i64 = (0..ACCOUNTS).map(|account| self.balance(account)).sum();
        sum == OPENING_BALANCE * ACCOUNTS.cast_signed()
    }

    fn balance(&self, account: u64) -> i64 {
        let mut bytes = [0; size_of::<i64>()];
        self.file.read_exact_at(&mut bytes, account * SIZE).expect("it has been written");
        i64::from_le_bytes(bytes)
    }

    fn put(&self, account: u64, balance: i64) {
        self.file.write_all_at(&balance.to_le_bytes(), account * SIZE).expect("the disk has room");
    }
}
