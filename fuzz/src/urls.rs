//! Parses node URLs. The parser must not panic, and no message may contain the password.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| redlock_runtime::fuzzed::url(text));
