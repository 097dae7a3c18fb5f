//! Arguments and locals drop as they do in the plain function, and the lock after all of them.
#![allow(
    clippy::many_single_char_names,
    clippy::too_many_arguments,
    clippy::toplevel_ref_arg,
    deprecated,
    reason = "all shapes in one"
)]

use async_trait::async_trait;
use redlock_runtime::{LockError, LockManager, distributed_lock};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use tokio::task;

/// Dropped values in order, each with the state of the lock at that time.
#[derive(Clone)]
struct Log {
    drops: Arc<Mutex<Vec<(&'static str, bool)>>>,
    manager: LockManager,
}

impl Log {
    fn new() -> Self {
        Self { drops: Arc::default(), manager: LockManager::in_memory() }
    }

    fn noisy(&self, name: &'static str) -> Noisy {
        Noisy { name, log: self.clone() }
    }

    /// Returns `true` if the key is locked. The node in memory answers without waiting.
    fn is_locked(&self) -> bool {
        match pin!(self.manager.try_acquire("order")).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => result.is_err(),
            Poll::Pending => panic!("the node in memory made us wait"),
        }
    }

    /// Runs a call to its end, or drops it inside the body.
    async fn run<T>(&self, cancel: bool, call: impl Future<Output = T>) -> Vec<(&'static str, bool)> {
        let mut call = Box::pin(self.manager.scope(call));
        tokio::select! {
            biased;
            _ = &mut call => {}
            () = async { task::yield_now().await }, if cancel => {}
        }
        drop(call);
        assert!(!self.is_locked());
        std::mem::take(&mut self.drops.lock().unwrap())
    }
}

struct Noisy {
    name: &'static str,
    log: Log,
}

impl Drop for Noisy {
    fn drop(&mut self) {
        let is_locked = self.log.is_locked();
        self.log.drops.lock().unwrap().push((self.name, is_locked));
    }
}

struct Service {
    #[expect(dead_code, reason = "it is there to be dropped")]
    noisy: Noisy,
}

/// Defines one function twice: without and with a lock.
macro_rules! plain_and_locked {
    ($plain:ident, $locked:ident, ($($arguments:tt)*) $body:block) => {
        async fn $plain($($arguments)*) -> Result<(), LockError> $body

        #[distributed_lock(key = "order")]
        async fn $locked($($arguments)*) -> Result<(), LockError> $body
    };
}

plain_and_locked!(plain, locked, (a: Noisy, _b: Noisy, c: Noisy, (d, e): (Noisy, Noisy), wait: bool) {
    let _f = a.log.noisy("f");
    let _g = c.log.noisy("g");
    if wait {
        std::future::pending::<()>().await;
    }
    task::yield_now().await;
    drop(e);
    let _ = d.name;
    Ok(())
});

plain_and_locked!(plain_early, locked_early, (a: Noisy, b: Noisy, _c: Noisy) {
    let _d = a.log.noisy("d");
    if b.name == "b" {
        return Err(LockError::NotInstalled);
    }
    Ok(())
});

struct Pair {
    left: Noisy,
    #[expect(dead_code, reason = "it is there to be dropped")]
    right: Noisy,
}

plain_and_locked!(plain_unbound, locked_unbound, (
    a: Noisy,
    _: Noisy,
    (b, _): (Noisy, Noisy),
    Pair { left, .. }: Pair,
    ref c: Noisy,
    [.., d, _]: [Noisy; 3],
    mut e: Noisy,
    wait: bool
) {
    let _f = a.log.noisy("f");
    if wait {
        std::future::pending::<()>().await;
    }
    task::yield_now().await;
    drop(b);
    e.name = "e again";
    let _ = (left.name, c.name, d.name);
    Ok(())
});

plain_and_locked!(plain_unused_pair, locked_unused_pair, ((_a, _b): (Noisy, Noisy), _: Noisy, ((), _): ((), Noisy), _e: Noisy) {
    task::yield_now().await;
    Ok(())
});

struct Page {
    part: Noisy,
    #[expect(dead_code, reason = "it is there to be dropped")]
    rest: Noisy,
}

// The generated code calls a function of the name `part`.
async fn plain_namesake(Page { part, .. }: Page, id: &str) -> Result<(), LockError> {
    task::yield_now().await;
    let _ = (part.name, id);
    Ok(())
}

#[distributed_lock(key = "order{id}")]
async fn locked_namesake(Page { part, .. }: Page, id: &str) -> Result<(), LockError> {
    task::yield_now().await;
    let _ = (part.name, id);
    Ok(())
}

// Unused arguments stay unused, for the compiler too.
#[expect(unused_variables)]
async fn plain_unused(a: Noisy, b: Noisy, (c, d): (Noisy, Noisy), e: Noisy) -> Result<(), LockError> {
    let _f = a.log.noisy("f");
    task::yield_now().await;
    let _ = c.name;
    Ok(())
}

#[expect(unused_variables)]
#[distributed_lock(key = "order")]
async fn locked_unused(a: Noisy, b: Noisy, (c, d): (Noisy, Noisy), e: Noisy) -> Result<(), LockError> {
    let _f = a.log.noisy("f");
    task::yield_now().await;
    let _ = c.name;
    Ok(())
}

#[tokio::test]
async fn drop_order_of_values_not_bound_by_patterns() {
    for cancel in [false, true] {
        let log = Log::new();
        let n = |name| log.noisy(name);
        let pair = || Pair { left: n("left"), right: n("right") };
        let three = || [n("1"), n("2"), n("3")];
        let two = || (n("b"), n("_b"));
        let plain = plain_unbound(n("a"), n("_"), two(), pair(), n("c"), three(), n("e"), cancel);
        let expected = log.run(cancel, plain).await;
        let locked = locked_unbound(n("a"), n("_"), two(), pair(), n("c"), three(), n("e"), cancel);
        let found = log.run(cancel, locked).await;
        assert_same(&expected, &found);
        assert_eq!(found.len(), 12);
    }
}

#[tokio::test]
async fn drop_order_of_names_used_by_the_generated_code() {
    let log = Log::new();
    let n = |name| log.noisy(name);
    let page = || Page { part: n("part"), rest: n("rest") };
    let expected = log.run(false, plain_namesake(page(), "")).await;
    let found = log.run(false, locked_namesake(page(), "")).await;
    assert_same(&expected, &found);
    assert_eq!(found.len(), 2);
}

#[tokio::test]
async fn drop_order_of_unused_arguments() {
    let log = Log::new();
    let n = |name| log.noisy(name);
    let expected = log.run(false, plain_unused(n("a"), n("b"), (n("c"), n("d")), n("e"))).await;
    let found = log.run(false, locked_unused(n("a"), n("b"), (n("c"), n("d")), n("e"))).await;
    assert_same(&expected, &found);
    assert_eq!(found.len(), 6);
}

impl Service {
    plain_and_locked!(plain, locked, (self, a: Noisy, _b: Noisy) {
        let _c = a.log.noisy("c");
        task::yield_now().await;
        Ok(())
    });
}

#[async_trait]
trait Capture {
    async fn plain(self, a: Noisy, (b, c): (Noisy, Noisy), _d: Noisy) -> Result<(), LockError>;
    async fn locked(self, a: Noisy, (b, c): (Noisy, Noisy), _d: Noisy) -> Result<(), LockError>;
}

#[async_trait]
impl Capture for Service {
    async fn plain(self, a: Noisy, (b, c): (Noisy, Noisy), _d: Noisy) -> Result<(), LockError> {
        let _e = a.log.noisy("e");
        task::yield_now().await;
        let _ = (b.name, c.name);
        Ok(())
    }

    #[distributed_lock(key = "order")]
    async fn locked(self, a: Noisy, (b, c): (Noisy, Noisy), _d: Noisy) -> Result<(), LockError> {
        let _e = a.log.noisy("e");
        task::yield_now().await;
        let _ = (b.name, c.name);
        Ok(())
    }
}

#[distributed_lock(key = "order")]
fn future(a: Noisy, b: Noisy) -> impl Future<Output = Result<(), LockError>> {
    let c = a.log.noisy("c");
    async move {
        let _d = c.log.noisy("d");
        drop(b);
        task::yield_now().await;
        let _e = &a;
        Ok(())
    }
}

/// Checks that the order is that of the plain function, and that all values were dropped while the lock was held.
fn assert_same(plain: &[(&str, bool)], locked: &[(&str, bool)]) {
    let names = |drops: &[(&str, bool)]| drops.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>();
    assert!(!plain.is_empty());
    assert_eq!(names(plain), names(locked));
    assert!(locked.iter().all(|(_, is_locked)| *is_locked), "dropped after the lock: {locked:?}");
}

#[tokio::test]
async fn drop_order_of_a_function() {
    for cancel in [false, true] {
        let log = Log::new();
        let n = |name| log.noisy(name);
        let expected = log.run(cancel, plain(n("a"), n("b"), n("c"), (n("d"), n("e")), cancel)).await;
        let found = log.run(cancel, locked(n("a"), n("b"), n("c"), (n("d"), n("e")), cancel)).await;
        assert_same(&expected, &found);
    }
}

#[tokio::test]
async fn drop_order_of_unused_bindings() {
    let log = Log::new();
    let n = |name| log.noisy(name);
    let expected = log.run(false, plain_unused_pair((n("a"), n("b")), n("c"), ((), n("d")), n("e"))).await;
    let found = log.run(false, locked_unused_pair((n("a"), n("b")), n("c"), ((), n("d")), n("e"))).await;
    assert_same(&expected, &found);
}

#[tokio::test]
async fn drop_order_of_an_early_return() {
    let log = Log::new();
    let n = |name| log.noisy(name);
    let expected = log.run(false, plain_early(n("a"), n("b"), n("c"))).await;
    let found = log.run(false, locked_early(n("a"), n("b"), n("c"))).await;
    assert_same(&expected, &found);
}

#[tokio::test]
async fn drop_order_of_a_method() {
    let log = Log::new();
    let n = |name| log.noisy(name);
    let service = || Service { noisy: n("self") };
    let expected = log.run(false, service().plain(n("a"), n("b"))).await;
    let found = log.run(false, service().locked(n("a"), n("b"))).await;
    assert_same(&expected, &found);
}

#[tokio::test]
async fn drop_order_of_an_async_trait_method() {
    let log = Log::new();
    let n = |name| log.noisy(name);
    let service = || Service { noisy: n("self") };
    let expected = log.run(false, Capture::plain(service(), n("a"), (n("b"), n("c")), n("d"))).await;
    let found = log.run(false, Capture::locked(service(), n("a"), (n("b"), n("c")), n("d"))).await;
    assert_same(&expected, &found);
}

#[tokio::test]
async fn drop_order_of_a_function_that_returns_a_future() {
    let log = Log::new();
    let drops = log.run(false, future(log.noisy("a"), log.noisy("b"))).await;
    assert!(drops.iter().all(|(_, is_locked)| *is_locked), "dropped after the lock: {drops:?}");
    assert_eq!(drops.len(), 4);
}
