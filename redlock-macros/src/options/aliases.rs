//! Names that other lock libraries use for the options, and hints for the message.

/// Words of one meaning, in lower case and without underscores; the option that has this meaning; and the addition to
/// its name in the message.
struct Alias {
    words: &'static [&'static str],
    option: &'static str,
    hint: &'static str,
}

const ALIASES: &[Alias] = &[
    Alias {
        words: &[
            "px",
            "ex",
            "lease",
            "leasetime",
            "leaseduration",
            "expire",
            "expires",
            "expiry",
            "expiration",
            "expirein",
            "expiresin",
            "expireafter",
            "duration",
            "lifetime",
            "locktimeout",
            "locktime",
            "lockduration",
            "autorelease",
            "autoreleasetime",
            "timetolive",
        ],
        option: "ttl",
        hint: "",
    },
    Alias {
        words: &["timeout"],
        option: "wait",
        hint: " (how long a call waits) or `ttl` (how long the lock lives without renewal)",
    },
    Alias {
        words: &[
            "waittime",
            "waittimeout",
            "waitfor",
            "maxwait",
            "maxwaittime",
            "acquiretimeout",
            "acquisitiontimeout",
            "blockingtimeout",
            "patience",
        ],
        option: "wait",
        hint: "",
    },
    Alias { words: &["blocking", "block"], option: "wait", hint: ", as in `wait = none` or `wait = 5s`" },
    Alias {
        words: &["nowait", "nonblocking", "try", "trylock", "tryonce", "nx"],
        option: "wait",
        hint: ", as in `wait = none`",
    },
    Alias {
        words: &[
            "retry",
            "retries",
            "retrycount",
            "retrytimes",
            "retrydelay",
            "retryinterval",
            "retryjitter",
            "retrypolicy",
            "maxretries",
            "maxattempts",
            "attempts",
            "tries",
            "delay",
            "sleep",
            "poll",
            "pollinterval",
            "backoff",
        ],
        option: "wait",
        hint: " (how long a call waits; a waiting call is notified and does not retry)",
    },
    Alias {
        words: &["lockatleastfor", "atleastfor", "cooldown", "throttle", "debounce"],
        option: "min_hold",
        hint: "",
    },
    Alias {
        words: &["sticky", "cache", "cachefor", "idle", "idlefor", "idletime", "idletimeout", "keepfor"],
        option: "linger",
        hint: "",
    },
    Alias {
        words: &["lockatmostfor", "atmostfor"],
        option: "max_hold",
        hint: " (how long the body may hold the lock) or `ttl` (how long the key remains after a crash)",
    },
    Alias {
        words: &["deadline", "maxduration", "maxtime", "maxholdtime", "holdtimeout"],
        option: "max_hold",
        hint: "",
    },
    Alias { words: &["name", "lockname", "lockkey", "resource", "id", "identifier"], option: "key", hint: "" },
    Alias {
        words: &["keys", "resources", "names", "multilock", "all"],
        option: "key",
        hint: ", as in `key = [\"account:{from}\", \"account:{to}\"]`",
    },
    Alias {
        words: &["paths", "tree", "subtree", "folder", "directory", "dir", "prefix", "hierarchy"],
        option: "path",
        hint: ", as in `path = \"/{tenant}/{folder}\"`",
    },
    Alias {
        words: &[
            "client",
            "clients",
            "locks",
            "lockmanager",
            "redis",
            "redlock",
            "pool",
            "connection",
            "conn",
            "nodes",
        ],
        option: "manager",
        hint: "",
    },
    Alias {
        words: &["autoextend", "autorenew", "autorenewal", "renewal", "watchdog", "extend", "heartbeat", "keepalive"],
        option: "renew",
        hint: "",
    },
    Alias { words: &["every", "period", "window", "interval", "schedule", "cron"], option: "once_per", hint: "" },
    Alias {
        words: &["skip", "skipiflocked", "iflocked", "onlocked", "onbusy", "onconflict", "oncontention", "fallback"],
        option: "on_contended",
        hint: ", as in `on_contended = skip`",
    },
    Alias { words: &["onerr", "onfail", "onfailed", "handler", "errorhandler"], option: "on_error", hint: "" },
    Alias { words: &["onloss", "lost", "onexpired", "onexpire"], option: "on_lost", hint: "" },
    Alias { words: &["fence", "fenced", "fencingtoken", "token"], option: "fencing", hint: "" },
    Alias { words: &["lock", "lockguard", "handle", "as"], option: "guard", hint: "" },
    Alias { words: &["recursive", "reentrance", "reentrancy", "nested"], option: "reentrant", hint: "" },
    Alias { words: &["exclusive"], option: "mode", hint: ", as in `mode = exclusive`" },
    Alias {
        words: &["shared", "share", "rwlock", "rw", "read", "reader", "readers", "readlock", "write", "writer"],
        option: "mode",
        hint: ", as in `mode = shared` for readers (writers need no `mode`)",
    },
    Alias {
        words: &[
            "semaphore",
            "slots",
            "concurrency",
            "concurrent",
            "concurrencylimit",
            "maxconcurrency",
            "maxconcurrent",
            "maxholders",
            "maxparallel",
            "maxpermits",
            "parallelism",
            "limit",
            "holders",
        ],
        option: "permits",
        hint: ", as in `permits = 4`",
    },
];

/// Words for the order of waiting calls, which cannot be chosen.
pub(super) const FAIR: &[&str] = &["fair", "fairness", "fifo", "queue", "queued"];

/// Words of one meaning, in lower case, and the mode that has this meaning.
const MODES: &[(&[&str], &str)] = &[
    (&["read", "reader", "readers", "rlock", "s", "r", "many"], "shared"),
    (&["write", "writer", "wlock", "x", "w", "mutex", "unique", "alone"], "exclusive"),
];

/// Returns the mode that another library calls `word`.
pub(super) fn mode(word: &str) -> Option<&'static str> {
    let word = word.to_lowercase();
    MODES.iter().find(|(words, _)| words.contains(&word.as_str())).map(|(_, mode)| *mode)
}

/// Suffixes of names that contain a unit, and a value with this unit.
const UNITS: &[(&str, &str)] = &[
    ("milliseconds", "500ms"),
    ("millis", "500ms"),
    ("msecs", "500ms"),
    ("msec", "500ms"),
    ("ms", "500ms"),
    ("seconds", "30s"),
    ("secs", "30s"),
    ("sec", "30s"),
    ("minutes", "5m"),
    ("mins", "5m"),
];

/// Returns the option that `word` means, and the addition to its name in the message.
pub(super) fn meant(word: &str, options: &[&'static str]) -> Option<(&'static str, String)> {
    let word = word.to_lowercase().replace('_', "");
    if let Some(alias) = ALIASES.iter().find(|alias| alias.words.contains(&word.as_str())) {
        return Some((alias.option, alias.hint.to_owned()));
    }
    UNITS.iter().find_map(|(unit, example)| {
        let word = word.strip_suffix(unit)?;
        let alias = ALIASES.iter().find(|alias| alias.words.contains(&word)).map(|alias| alias.option);
        let option = alias.or_else(|| options.iter().copied().find(|option| option.replace('_', "") == word))?;
        Some((option, format!(", as in `{option} = {example}`")))
    })
}

#[cfg(test)]
mod tests {
    use super::{ALIASES, MODES, meant, mode};
    use std::collections::HashSet;

    #[test]
    fn option_names_of_other_libraries_are_translated() {
        let table = [
            (
                "lockAtMostFor",
                Some((
                    "max_hold",
                    " (how long the body may hold the lock) or `ttl` (how long the key remains after a crash)",
                )),
            ),
            ("max_concurrent", Some(("permits", ", as in `permits = 4`"))),
            ("max_concurrency", Some(("permits", ", as in `permits = 4`"))),
            ("limit", Some(("permits", ", as in `permits = 4`"))),
            ("lock_at_least_for", Some(("min_hold", ""))),
            ("idle_timeout", Some(("linger", ""))),
            ("lease_ms", Some(("ttl", ", as in `ttl = 500ms`"))),
            ("maxHoldSeconds", Some(("max_hold", ", as in `max_hold = 30s`"))),
            ("max_wait", Some(("wait", ""))),
            ("blocking", Some(("wait", ", as in `wait = none` or `wait = 5s`"))),
            ("items", None),
            ("colour", None),
        ];
        for (word, expected) in table {
            let found = meant(word, &["ttl", "max_hold"]);
            assert_eq!(found.as_ref().map(|(option, hint)| (*option, hint.as_str())), expected, "{word}");
        }
    }

    #[test]
    fn every_alias_is_unique() {
        let modes: Vec<_> = MODES.iter().flat_map(|(words, _)| *words).collect();
        assert_eq!(modes.len(), modes.iter().collect::<HashSet<_>>().len());
        assert!(["shared", "exclusive"].iter().all(|word| mode(word).is_none()), "the words themselves are no mistake");
        let words: Vec<_> = ALIASES.iter().flat_map(|alias| alias.words).collect();
        assert_eq!(words.len(), words.iter().collect::<HashSet<_>>().len());
        assert!(words.iter().all(|word| !word.contains('_') && word.to_lowercase() == **word));
    }
}
