//! `redlock watch [PATTERN]`: the locks in a terminal, as they come and go.
//!
//! What is shown is in `board`, and how it looks in `screen`. Here are the terminal, its keys, and the looks at the nodes.

mod board;
mod screen;

use crate::outcome::{Outcome, YES};
use board::Board;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use redlock_runtime::LockManager;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// How many locks are looked at. Fewer, not even a high terminal is filled; more, each look asks the nodes more.
const MOST: usize = 200;
/// Between two looks at the keyboard. Smaller, needless wake-ups; larger, a key is felt to be slow.
const BLINK: Duration = Duration::from_millis(50);
/// For how long the names of all keys are looked through. Smaller, the locks beside millions of keys are never all there; larger, a
/// look takes longer.
const LONGEST_LIST: Duration = Duration::from_secs(10);
/// So many times as long as a look has taken, nothing is asked. Smaller, a server with millions of keys is busy with it while
/// anybody looks; larger, less is seen of how locks come and go there.
const REST: u32 = 10;
/// In how many looks the servers are asked once which processes are connected, which costs them more than all else. Fewer, a
/// server with many clients is at it all the time; more, a new process has no name for longer.
const NAMED_EVERY: usize = 5;

pub(super) async fn run(manager: &LockManager, pattern: &str, every: u64) -> Outcome {
    if !io::stdout().is_terminal() {
        return Outcome::failed("`watch` needs a terminal: write `redlock list --json` in a script");
    }
    let mut terminal = match ratatui::try_init() {
        Ok(terminal) => terminal,
        Err(error) => return Outcome::failed(&format!("the terminal cannot be used: {error}")),
    };
    let watched = watch(manager, &mut terminal, pattern, Duration::from_secs(every)).await;
    ratatui::restore();
    match watched {
        Ok(()) => Outcome::said(&"", YES),
        Err(error) => Outcome::failed(&format!("the terminal cannot be used: {error}")),
    }
}

/// Shows the locks until somebody has seen enough.
async fn watch(
    manager: &LockManager,
    terminal: &mut DefaultTerminal,
    pattern: &str,
    every: Duration,
) -> io::Result<()> {
    let mut board = Board::new(pattern);
    loop {
        terminal.draw(|frame| screen::draw(frame, &board))?;
        let begun = Instant::now();
        let is_named = board.looks().is_multiple_of(NAMED_EVERY);
        let look = async {
            let list = manager.list(pattern, MOST, LONGEST_LIST).await;
            let locks = manager.inspect_all(list.keys.clone(), is_named).await;
            (list, locks)
        };
        tokio::select! {
            (list, locks) = look => board.take_in(&list, &locks),
            () = asked_to_end() => return Ok(()),
        }
        terminal.draw(|frame| screen::draw(frame, &board))?;
        let until = Instant::now() + every.max(begun.elapsed() * REST);
        while Instant::now() < until {
            if ends()? {
                return Ok(());
            }
            sleep(BLINK).await;
            // A window that has another size is drawn anew.
            terminal.draw(|frame| screen::draw(frame, &board))?;
        }
    }
}

/// Waits until somebody wants to end it. A keyboard that cannot be read is found by the next look at it.
async fn asked_to_end() {
    while !ends().unwrap_or(true) {
        sleep(BLINK).await;
    }
}

/// Whether a key was pressed that ends it: `q`, escape, or control and `c`.
fn ends() -> io::Result<bool> {
    while event::poll(Duration::ZERO)? {
        let Event::Key(key) = event::read()? else { continue };
        let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        let is_end = matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) || is_interrupt;
        if is_end && key.kind == KeyEventKind::Press {
            return Ok(true);
        }
    }
    Ok(false)
}
