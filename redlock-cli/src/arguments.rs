//! Command line arguments and help texts.

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Shows the holders and waiters of distributed locks on Redis, and breaks locks.
#[derive(Debug, Parser)]
#[command(
    name = "redlock",
    version,
    after_help = "Exit codes: 0 = yes (found, done or healthy), 1 = no, 2 = unknown (too few nodes answer, or the command line is \
                  wrong). `redlock break` also has 3. `redlock help COMMAND` describes the exit codes of a command."
)]
pub(crate) struct Arguments {
    /// Redis URLs of the nodes, separated by commas [default: the environment variable `REDLOCK_NODES`].
    ///
    /// Prefer the variable for URLs with passwords: arguments are visible in the list of processes.
    #[arg(long, global = true, value_name = "URLS")]
    pub(crate) nodes: Option<String>,
    /// Namespace of the locks; must match the services' setting [default: the environment variable `REDLOCK_NAMESPACE`,
    /// or none].
    #[arg(long, short, global = true, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Print JSON, for scripts.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check whether the nodes can be used for locks, and what may break locks later.
    ///
    /// Exit codes: 0 = no warnings, 1 = locks work and there are warnings, 2 = too few nodes can be used.
    Check {
        /// Exit with 0 if locks work, even with warnings. For readiness probes.
        ///
        /// Exit codes: 0 = locks work, 2 = too few nodes can be used.
        #[arg(long)]
        ready: bool,
    },
    /// Show the holder of a key, its process and remaining lease, and the waiters.
    ///
    /// If the key is free, the command searches other namespaces for it, for up to one second (not with --json).
    ///
    /// Exit codes: 0 = locked, 1 = free, 2 = no majority of the nodes agrees.
    Inspect(Key),
    /// List the waiters of a key, the next one first.
    ///
    /// Exit codes: 0 = there are waiters, 1 = there are none, 2 = too few nodes answer.
    Waiters(Key),
    /// List the held locks.
    ///
    /// The command scans the names of all keys in the database in pages, so that the servers can serve other clients in
    /// between. `N processes waiting` counts processes. Calls that wait in the process of the holder are not included.
    ///
    /// If a node does not answer or a limit is reached, a message on standard error describes the missing part.
    ///
    /// Exit codes: 0 = there are locks, 1 = there are none, 2 = too few nodes answer.
    List {
        /// Redis pattern for keys below the namespace, such as `order:*`.
        #[arg(default_value = "*")]
        pattern: String,
        /// Maximum number of locks.
        #[arg(long, default_value_t = 1000, value_name = "NUMBER")]
        limit: usize,
        /// Seconds after which the scan stops and shows its results so far. Ten million keys take about a minute.
        #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
        timeout: u64,
    },
    /// Show the held locks in the terminal, and update them.
    ///
    /// The column `processes waiting` counts processes. Calls that wait in the process of the holder are not included. Keys: `q` quits, `s`
    /// changes the order.
    Watch {
        /// Redis pattern for keys below the namespace, such as `order:*`.
        #[arg(default_value = "*")]
        pattern: String,
        /// Seconds between two updates.
        #[arg(long, default_value_t = 2, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
        every: u64,
        /// Order of the locks.
        #[arg(long, value_enum, default_value_t)]
        sort: Sort,
    },
    /// Take a lock from its holder, so that the next waiter is served.
    ///
    /// The holder is notified and stops, and then the next waiter is served. A holder that hangs or is unreachable
    /// cannot confirm that it stopped. If the confirmation does not arrive in time (--wait), the holder has lost the
    /// lock as well, but the key stays locked until the holder's lease ends.
    ///
    /// Exit codes: 0 = broken, and the holder has reported that it stopped, 1 = the token does not hold the lock (any
    /// more), or the lock of another program needs --force, 2 = too few nodes answer, 3 = broken, but the holder has
    /// not reported that it stopped.
    ///
    /// The report is not proof: any client that may publish on the server can forge it.
    Break {
        #[command(flatten)]
        key: Key,
        /// Token of the holder, as `inspect` shows it, or the value of another program [default: show the holder and
        /// ask].
        ///
        /// If another token holds the lock now, nothing is broken. Without a terminal, the token is required.
        #[arg(long, value_name = "TOKEN")]
        token: Option<String>,
        /// Seconds to wait for the holder to stop.
        #[arg(long, default_value_t = 5, value_name = "SECONDS", conflicts_with = "force")]
        wait: u64,
        /// Serve the next waiter at once, without notifying the holder. The holder and the waiter both run until the
        /// holder notices the loss.
        ///
        /// Exit codes: 0 = broken, 1 and 2 as without --force.
        #[arg(long)]
        force: bool,
        /// Reason, for the output and for the event `broken`. Neither the holder nor a server receives it.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Show the largest fencing number of a key.
    ///
    /// Exit codes: 0 = there is a number, 1 = there is none, 2 = too few nodes answer.
    Fence(Key),
}

#[derive(Args, Debug)]
pub(crate) struct Key {
    /// Key of the lock, without the namespace. A `once_per` lock ends with `@` and the number of its window, such as
    /// `report@19843`.
    pub(crate) key: String,
}

/// Order of the locks in `watch`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// Most waiting processes first, then the longest held.
    #[default]
    Waiting,
    /// Longest held first.
    Age,
    /// By key.
    Key,
}

impl Sort {
    /// Returns the order that the key `s` selects next.
    pub(crate) const fn next(self) -> Self {
        match self {
            Self::Waiting => Self::Age,
            Self::Age => Self::Key,
            Self::Key => Self::Waiting,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Age => "age",
            Self::Key => "key",
        }
    }
}
