//! Waits for a condition whose changes are notified.

use tokio::sync::Notify;

/// Waits until `condition` holds. `changed` must be notified after every change that may make it true.
pub(crate) async fn wait_until(changed: &Notify, condition: impl Fn() -> bool) {
    loop {
        let next = changed.notified();
        tokio::pin!(next);
        // The waiter is registered before the check, so no change is missed.
        next.as_mut().enable();
        if condition() {
            return;
        }
        next.await;
    }
}
