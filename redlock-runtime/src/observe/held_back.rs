//! Events of releases, delayed until the sender has released its mutex.
//!
//! A release may be answered or given up while its sender holds a mutex. Such a sender calls [`hold_back`], and the events are
//! written when the mutex is free. All other code writes its events at once.

use std::cell::RefCell;
use std::fmt;

thread_local! {
    /// Delayed events of this thread. `None` if events are not delayed.
    static HELD_BACK: RefCell<Option<Vec<Untold>>> = const { RefCell::new(None) };
}

/// Delayed event, which is written when this value is dropped.
#[must_use = "it is told when this is dropped"]
pub(crate) struct Untold(Option<Box<dyn FnOnce() + Send>>);

impl Drop for Untold {
    fn drop(&mut self) {
        if let Some(tell) = self.0.take() {
            tell();
        }
    }
}

impl fmt::Debug for Untold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Untold")
    }
}

/// Writes an event, or delays it if [`hold_back`] runs on this thread.
pub(crate) fn tell(tell: impl FnOnce() + Send + 'static) {
    let untold = Untold(Some(Box::new(tell)));
    let left = HELD_BACK.try_with(|held_back| match &mut *held_back.borrow_mut() {
        Some(all) => {
            all.push(untold);
            None
        }
        None => Some(untold),
    });
    // Dropped outside of the closure, because the subscriber may call this library again.
    drop(left);
}

/// Runs `act`, and returns its delayed events.
pub(crate) fn hold_back(act: impl FnOnce()) -> Vec<Untold> {
    let set = |all| HELD_BACK.try_with(|held_back| held_back.replace(all)).ok().flatten();
    let before = set(Some(Vec::new()));
    act();
    set(before).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn delayed_events_are_written_later_and_others_at_once() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell = |what: &'static str| {
            let told = Arc::clone(&told);
            tell(move || told.lock().unwrap().push(what));
        };
        let untold = hold_back(|| {
            tell("held back");
            drop(hold_back(|| tell("inside")));
            tell("as well");
        });
        assert_eq!(*told.lock().unwrap(), ["inside"]);
        tell("at once");
        drop(untold);
        assert_eq!(*told.lock().unwrap(), ["inside", "at once", "held back", "as well"]);
    }
}
