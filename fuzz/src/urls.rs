//! URLs of nodes: no panic, and no message repeats a password.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| redlock_runtime::fuzzed::url(text));
