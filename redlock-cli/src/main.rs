//! `redlock`: shows the holders and waiters of distributed locks, and breaks locks. For operators and for scripts.
//!
//! All results come from public functions of `redlock-runtime`. This crate contains the arguments, texts and exit
//! codes.

mod age;
mod arguments;
mod commands;
mod connect;
mod outcome;

use arguments::Arguments;
use clap::Parser;
use outcome::Outcome;
use redlock_runtime::admin::single_line;
use std::io::Write;
use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match connect::connect(&arguments) {
        Ok(manager) => commands::run(&manager, &arguments).await,
        Err(error) => Outcome::failed(&error.to_string()),
    };
    let Outcome { text, messages, code } = outcome;
    let lines: Vec<_> = text.split('\n').map(single_line).collect();
    // A reader that closes the pipe early, such as `head`, is not an error.
    let _ = std::io::stdout().write_all(lines.join("\n").as_bytes());
    for message in messages {
        let _ = writeln!(std::io::stderr(), "redlock: {}", single_line(&message));
    }
    ExitCode::from(code)
}
