//! URLs of nodes: each part is read as another parser reads it, or the URL is refused.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| redlock_runtime::fuzzed::url_parts(text));
