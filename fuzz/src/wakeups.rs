//! What anybody may publish on the channel of a manager.
#![no_main]

libfuzzer_sys::fuzz_target!(|payload: &[u8]| redlock_runtime::fuzzed::wakeup(payload));
