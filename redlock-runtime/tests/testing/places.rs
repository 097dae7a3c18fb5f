//! Panics about mistakes in a test name the line of the test.

use redlock_runtime::testing::{self, Explore, TestServers, explore};
use redlock_runtime::{LockManager, LockPath, assert_exclusive, assert_locked};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

thread_local! {
    /// Location and text of the last panic of this thread.
    static SAID: RefCell<Option<(String, u32, String)>> = const { RefCell::new(None) };
}

/// Returns the file, the line and the text of the panic of `mistake`.
fn said(mistake: impl FnOnce()) -> (String, u32, String) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            let place = panic.location().map(|place| (place.file().to_owned(), place.line()));
            let (file, line) = place.unwrap_or_default();
            let text = panic.payload().downcast_ref::<String>().cloned().unwrap_or_default();
            SAID.set(Some((file, line, text)));
            before(panic);
        }));
    });
    catch_unwind(AssertUnwindSafe(mistake)).unwrap_err();
    SAID.take().unwrap()
}

/// Asserts that the mistake panics at its line.
macro_rules! told_here {
    ($mistake:expr) => {
        let (file, line, text) = said(|| {
            let _ = $mistake;
        });
        assert_eq!((file.as_str(), line), (file!(), line!()), "{text}");
    };
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

#[test]
fn panics_of_release_name_the_line_of_the_test() {
    runtime().block_on(async {
        let servers = TestServers::new(1);
        servers.hold("order:7").await;
        servers.hold(LockPath::from("/acme/docs")).await;
        told_here!(servers.release("order:8"));
        told_here!(servers.release(LockPath::from("/acme")));
        told_here!(servers.expire("order:8"));
        told_here!(servers.lose("order:8"));
    });
}

#[test]
fn panics_of_hold_name_the_line_of_the_test() {
    let servers = TestServers::new(1);
    let held = runtime();
    held.block_on(servers.hold("order:7"));
    told_here!(held.block_on(async { servers.hold("order:7").await }));
    told_here!(held.block_on(async { servers.hold_shared("order:7").await }));
    told_here!(held.block_on(async { servers.hold_permit("order:7", 0).await }));
    told_here!(held.block_on(async { servers.hold(LockPath::from("acme")).await }));
}

/// A future of another crate has a line of that crate, so the text names the line of the test.
#[test]
fn panics_of_hold_in_a_timeout_name_the_line_of_the_test() {
    let servers = TestServers::new(1);
    runtime().block_on(servers.hold("order:7"));
    let (mut line, waits) = (0, Duration::from_secs(1));
    let (_, _, text) = said(|| {
        runtime().block_on(async {
            line = line!() + 1;
            timeout(waits, servers.hold("order:7")).await.unwrap();
        });
    });
    assert!(text.contains(&format!("{}:{line}:", file!())), "{text}");
}

#[test]
fn panics_of_servers_name_the_line_of_the_test() {
    told_here!(TestServers::new(0));
    told_here!(TestServers::new(1).manager());
    told_here!(TestServers::new(1).node(1));
    runtime().block_on(async {
        let (servers, strange) = (TestServers::new(1), LockManager::in_memory());
        let settings = || LockManager::builder().default_ttl(Duration::ZERO);
        told_here!(servers.manager_with(settings()));
        told_here!(servers.cut_off(&strange));
        told_here!(servers.reconnect(&strange));
        let _installed = testing::install(&strange);
        told_here!(testing::install(&strange));
    });
    told_here!(testing::install(&LockManager::in_memory()));
}

#[test]
fn panics_of_the_log_name_the_line_of_the_test() {
    runtime().block_on(async {
        let servers = TestServers::new(1);
        drop(servers.manager().acquire("order:7").await.unwrap());
        told_here!(servers.log().max_together("order:8"));
        told_here!(assert_locked!(servers.log(), "order:8"));
        told_here!(assert_locked!(servers.log(), "order:7", ttl = 31s));
        told_here!(assert_exclusive!(servers.log(), "order:8"));
    });
}

#[test]
fn panics_of_explore_name_the_line_of_the_test() {
    let forever = async |_servers: TestServers, _seed: u64| std::future::pending::<()>().await;
    told_here!(explore([7], forever));
    told_here!(Explore::new([7]).max_time(Duration::from_secs(1)).run(forever));
    told_here!(Explore::new([7]).only(8).run(forever));
    told_here!(Explore::new([7]).servers(0));
    told_here!(explore([7], async |servers, _seed| servers.release("order:7")));
}
