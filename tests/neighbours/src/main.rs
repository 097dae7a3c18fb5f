//! Program that takes one lock, with or without other code that uses rustls, and prints the outcome.

use redlock_runtime::{LockError, LockManager};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let url = std::env::args().nth(1).unwrap_or_default();
    match lock(url).await {
        Ok(()) => println!("locked"),
        Err(error) => println!("{error}"),
    }
    #[cfg(any(feature = "rustls-default", feature = "rustls-ring"))]
    neighbour();
}

async fn lock(url: String) -> Result<(), LockError> {
    let manager = LockManager::builder().node(url).build()?;
    manager.try_acquire("order:7").await?.release().await
}

/// Code that leaves the choice of a crypto provider to rustls.
#[cfg(any(feature = "rustls-default", feature = "rustls-ring"))]
fn neighbour() {
    assert!(rustls::crypto::CryptoProvider::get_default().is_none(), "a library has installed a provider");
    let _builder = rustls::ClientConfig::builder();
}
