//! Parses server replies from the bytes of a connection. The first byte selects the command that was sent.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let [verb, answer @ ..] = bytes {
        redlock_runtime::fuzzed::answer(*verb, answer);
    }
});
