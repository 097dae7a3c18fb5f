//! Answers of a server, from the bytes of its connection: the first byte says which command was asked.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let [verb, answer @ ..] = bytes {
        redlock_runtime::fuzzed::answer(*verb, answer);
    }
});
