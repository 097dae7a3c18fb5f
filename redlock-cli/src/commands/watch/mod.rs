//! `redlock watch [PATTERN]`: shows the held locks in the terminal and updates them.
//!
//! `board` holds the state, and `screen` draws it. This file handles the terminal and its keys, and calls the nodes.

mod board;
mod screen;

use crate::arguments::Sort;
use crate::outcome::{Outcome, YES};
use board::Board;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use redlock_runtime::LockManager;
use redlock_runtime::admin::{InspectOptions, ListOptions};
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Maximum number of shown locks: 200. Too small: a tall terminal is not filled. Too large: each update sends more
/// requests to the nodes.
const LIMIT: usize = 200;
/// Interval of keyboard polls: 50 ms. Too small: needless wake-ups. Too large: a key press feels slow.
const KEYBOARD_PAUSE: Duration = Duration::from_millis(50);
/// Time limit of one scan: 10 s. Too small: among millions of keys, locks are missing. Too large: an update takes longer.
const SCAN_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after an update, as a multiple of its duration: 10. Too small: a server with millions of keys is busy with
/// scans. Too large: locks that are held briefly are missed on such a server.
const PAUSE_FACTOR: u32 = 10;
/// Number of updates per lookup of the processes' names: 5. The lookup is the most expensive request. Too small: a
/// server with many clients is always busy with it. Too large: a new process has no name for longer.
const UPDATES_PER_LOOKUP: usize = 5;

pub(super) async fn run(manager: &LockManager, pattern: &str, every: u64, sort: Sort) -> Outcome {
    if !io::stdout().is_terminal() {
        return Outcome::failed("`watch` needs a terminal: use `redlock list --json` in a script");
    }
    let mut terminal = match ratatui::try_init() {
        Ok(terminal) => terminal,
        Err(error) => return Outcome::failed(&format!("the terminal cannot be used: {error}")),
    };
    let board = Board::new(pattern, sort);
    let watched = watch(manager, &mut terminal, board, Duration::from_secs(every)).await;
    ratatui::restore();
    match watched {
        Ok(()) => Outcome::new(&"", YES),
        Err(error) => Outcome::failed(&format!("the terminal cannot be used: {error}")),
    }
}

/// Shows the locks until the user quits.
async fn watch(
    manager: &LockManager,
    terminal: &mut DefaultTerminal,
    mut board: Board,
    every: Duration,
) -> io::Result<()> {
    loop {
        terminal.draw(|frame| screen::draw(frame, &board))?;
        let begun = Instant::now();
        let options = InspectOptions::default();
        let looks_up = board.updates().is_multiple_of(UPDATES_PER_LOOKUP);
        let options = if looks_up { options } else { options.without_client_names() };
        let pattern = board.pattern().to_owned();
        let update = async {
            let list = manager.list(ListOptions::new(pattern).limit(LIMIT).timeout(SCAN_TIMEOUT)).await;
            let locks = manager.inspect_all(list.keys.clone(), options).await;
            (list, locks)
        };
        tokio::select! {
            (list, locks) = update => board.update(&list, &locks),
            () = quit() => return Ok(()),
        }
        terminal.draw(|frame| screen::draw(frame, &board))?;
        let until = Instant::now() + every.max(begun.elapsed() * PAUSE_FACTOR);
        while Instant::now() < until {
            match pressed()? {
                Some(Pressed::Quit) => return Ok(()),
                Some(Pressed::Sort) => board.change_sort(),
                None => sleep(KEYBOARD_PAUSE).await,
            }
            // Redraw: the size of the window may have changed.
            terminal.draw(|frame| screen::draw(frame, &board))?;
        }
    }
}

/// Key that has an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pressed {
    Quit,
    Sort,
}

/// Waits until the user quits. Also returns on a keyboard error, which the next poll reports.
async fn quit() {
    while !matches!(pressed(), Ok(Some(Pressed::Quit)) | Err(_)) {
        sleep(KEYBOARD_PAUSE).await;
    }
}

/// Returns the next pressed key that has an effect: `q`, Escape or Ctrl-C quits, `s` changes the order.
fn pressed() -> io::Result<Option<Pressed>> {
    while event::poll(Duration::ZERO)? {
        let Event::Key(key) = event::read()? else { continue };
        let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        let pressed = match key.code {
            KeyCode::Char('q') | KeyCode::Esc => Pressed::Quit,
            _ if is_interrupt => Pressed::Quit,
            KeyCode::Char('s') => Pressed::Sort,
            _ => continue,
        };
        if key.kind == KeyEventKind::Press {
            return Ok(Some(pressed));
        }
    }
    Ok(None)
}
