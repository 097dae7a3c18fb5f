//! Parses detached locks, owner tokens and keys.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| redlock_runtime::fuzzed::detached(text));
