//! Parses messages on the channel of a manager, where any client may publish.
#![no_main]

libfuzzer_sys::fuzz_target!(|payload: &[u8]| redlock_runtime::fuzzed::wakeup(payload));
