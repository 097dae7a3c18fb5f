//! `redlock`: who holds which lock, who waits for it, and how to break it. For the night shift, and for scripts.
//!
//! What it tells comes from the library, by calls that any program can make; here are arguments, texts and exit codes.

mod age;
mod arguments;
mod commands;
mod connect;
mod json;
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
    let Outcome { text, complaints, code } = outcome;
    // Whoever does not read what was asked for has a reason, as `head` has.
    let lines: Vec<_> = text.split('\n').map(single_line).collect();
    let _ = std::io::stdout().write_all(lines.join("\n").as_bytes());
    for complaint in complaints {
        let _ = writeln!(std::io::stderr(), "redlock: {}", single_line(&complaint));
    }
    ExitCode::from(code)
}
