//! Runs the same commands on the in-memory node and on a Redis server, and compares the replies. run.sh starts the
//! server.
#![no_main]

use redlock_runtime::fuzzed::Nodes;
use std::cell::RefCell;

thread_local! {
    static NODES: RefCell<Option<Nodes>> = const { RefCell::new(None) };
}

fn run(bytes: &[u8]) {
    NODES.with_borrow_mut(|nodes| {
        let start = || Nodes::start(&std::env::var("REDLOCK_FUZZ_SERVER").expect("run.sh names the server"));
        nodes.get_or_insert_with(start).run(bytes);
    });
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| run(bytes));
