//! Error replies that are transient.

/// First words of transient error replies: the server is busy, full, failing over or starting. If one is missing here, an outage
/// looks like a mistake, and callers do not retry. With one too many, a mistake looks like an outage, and no operator fixes it.
///
/// Source: the error codes of Redis 7 and Valkey 8, in `server.c`, `cluster.c` and `networking.c`. The last one is of Envoy, in
/// `command_splitter_impl.h`.
const TRANSIENT: [&str; 12] = [
    "BUSY ",
    "CLUSTERDOWN ",
    "ERR max number of clients",
    "LOADING ",
    "MASTERDOWN ",
    "MISCONF ",
    "NOREPLICAS ",
    "NOSCRIPT ",
    "OOM ",
    "TRYAGAIN ",
    "UNKILLABLE ",
    "no upstream host",
];

/// Returns `true` if the server may reply differently after a while.
pub(super) fn is_transient(answer: &str) -> bool {
    TRANSIENT.iter().any(|code| answer.starts_with(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_classified_as_transient_or_permanent() {
        let table = [
            ("BUSY Redis is busy running a script.", true),
            ("LOADING Redis is loading the dataset in memory", true),
            ("OOM command not allowed when used memory > 'maxmemory'.", true),
            ("ERR max number of clients reached", true),
            ("no upstream host", true),
            ("NOPERM this user has no permissions to run the 'evalsha' command", false),
            ("WRONGPASS: that user or password is wrong", false),
            ("NOAUTH Authentication required.", false),
            ("MOVED 1 10.0.0.1:6379", false),
            ("CROSSSLOT Keys in request don't hash to the same slot", false),
            ("READONLY You can't write against a read only replica.", false),
            ("ERR unknown command 'EVALSHA'", false),
            ("BUSYKEY Target key name already exists.", false),
            ("", false),
        ];
        for (answer, expected) in table {
            assert_eq!(is_transient(answer), expected, "{answer}");
        }
    }
}
