//! Parses node URLs. Each part must be the same as in the URL parser of another crate, or the URL must be rejected.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| redlock_runtime::fuzzed::url_parts(text));
