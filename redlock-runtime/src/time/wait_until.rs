//! Waiting for a condition whose every change is announced.

use tokio::sync::Notify;

/// Waits until `condition` holds. `changed` must be notified after every change that may make it true.
pub(crate) async fn wait_until(changed: &Notify, condition: impl Fn() -> bool) {
    loop {
        let next = changed.notified();
        tokio::pin!(next);
        // From here on no change is missed.
        next.as_mut().enable();
        if condition() {
            return;
        }
        next.await;
    }
}
