//! What the command line says.

use clap::{Args, Parser, Subcommand};

/// Looks at distributed locks on Redis, and breaks them.
#[derive(Debug, Parser)]
#[command(
    name = "redlock",
    version,
    after_help = "Exit codes: 0 yes, it was found, done or is well; 1 no; 2 unknown, because too few nodes answer, or the \
                  command is wrong. Each command says what that means for it, and `break` knows a 3."
)]
pub(crate) struct Arguments {
    /// The nodes: Redis URLs, separated by commas. Without it, those in the environment variable `REDLOCK_NODES`, which does
    /// not show passwords in a list of processes.
    #[arg(long, global = true, value_name = "URLS")]
    pub(crate) nodes: Option<String>,
    /// The namespace of the locks, as their manager has it. Without it, that in `REDLOCK_NAMESPACE`, or none.
    #[arg(long, short, global = true, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// JSON, for scripts.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Whether locks work at the nodes, and what may break them.
    ///
    /// 0 all is well; 1 locks work, and there is a warning; 2 too few nodes count.
    Check {
        /// For readiness probes: the exit code is 0 if locks work, even with warnings.
        ///
        /// 0 locks work; 2 too few nodes count.
        #[arg(long)]
        ready: bool,
    },
    /// Who holds a lock, since when, from where, and who waits for it.
    ///
    /// If the key is free, other namespaces are searched for it for up to a second (not with --json).
    ///
    /// 0 it is taken; 1 it is free; 2 no majority says the same.
    Inspect(Key),
    /// Who waits for a lock, the next one first.
    ///
    /// 0 somebody waits; 1 nobody does; 2 too few nodes answer.
    Waiters(Key),
    /// Which locks are held.
    ///
    /// Looks through all names of the database, a page at a time: servers serve others in between. The number of waiting processes does
    /// not include calls that wait in the process of the holder.
    ///
    /// 0 there are some; 1 there are none; 2 too few nodes answer. What is missing, because a node does not answer or there are too
    /// many, is said on standard error.
    List {
        /// As in Redis, below the namespace: `order:*`.
        #[arg(default_value = "*")]
        pattern: String,
        /// How many at most.
        #[arg(long, default_value_t = 1000, value_name = "NUMBER")]
        most: usize,
        /// Seconds after which it shows what it has found. Ten million keys take about a minute.
        #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
        within: u64,
    },
    /// The locks in a terminal, as they come and go.
    ///
    /// The column `processes waiting` does not include calls that wait in the process of the holder.
    Watch {
        /// As in Redis, below the namespace: `order:*`.
        #[arg(default_value = "*")]
        pattern: String,
        /// Seconds between two looks.
        #[arg(long, default_value_t = 2, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
        every: u64,
    },
    /// Takes a lock from whoever holds it under a token, and serves the next one who waits.
    ///
    /// The holder is told, and stops; the next one is served when it has. A holder that does not say so in time (--wait), because
    /// it hangs, is gone or cannot be told, has lost the lock as well, and nobody else gets it before the lease is over that it
    /// may count on: when it says so later, this command is not there to hear it.
    ///
    /// 0 it was broken, and the holder says that it has stopped, which is not proof: a client that may publish can forge the message;
    /// 1 the token does not hold it (any more), or it is the lock of another program, which takes --force; 2 too few nodes answer; 3 it
    /// was broken, and the holder has not said that it has stopped.
    Break {
        #[command(flatten)]
        key: Key,
        /// Whose lock to break, as `inspect` shows it: a token, or the value of another program. Whoever has the lock by then
        /// with another one keeps it. Without it, the command shows the holder and asks, in a terminal only.
        #[arg(long, value_name = "TOKEN")]
        token: Option<String>,
        /// Seconds that the holder has to stop, where its body takes long until it does.
        #[arg(long, default_value_t = 5, value_name = "SECONDS", conflicts_with = "force")]
        wait: u64,
        /// The next one is served at once, and the holder is not told: two are at work until it notices by itself.
        ///
        /// 0 it was broken; 1 and 2 as above.
        #[arg(long)]
        force: bool,
        /// Why the lock is broken. The answer shows it, with the tokens of the holder and of this command, and so does the event
        /// `broken` of a program that calls the library. Neither the holder nor a server receives it.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// The largest fencing number for a lock.
    ///
    /// 0 there is one; 1 there is none; 2 too few nodes answer.
    Fence(Key),
}

#[derive(Args, Debug)]
pub(crate) struct Key {
    /// The key of the lock, below the namespace. That of a window has its number behind an `@`: `report@19843`.
    pub(crate) key: String,
}
