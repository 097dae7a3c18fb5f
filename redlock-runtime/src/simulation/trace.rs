//! Trace of a run, to be read and to compare runs.

use crate::lock::OwnerToken;
use crate::time::clock::Clock;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Mutex;

/// Lines of text. They are not written if no reader wants them.
pub(super) struct Trace {
    clock: Clock,
    lines: Option<Mutex<Lines>>,
}

#[derive(Default)]
struct Lines {
    text: String,
    /// Tokens in the order of their first use. Their texts depend on the wall clock, and differ from run to run.
    names: HashMap<OwnerToken, usize>,
}

impl Trace {
    pub(super) fn new(clock: Clock, is_kept: bool) -> Self {
        Self { clock, lines: is_kept.then(Mutex::default) }
    }

    pub(super) fn line(&self, text: impl FnOnce(&Self) -> String) {
        if let Some(lines) = &self.lines {
            let text = text(self);
            let millis = self.clock.now().since_origin().as_micros();
            writeln!(lines.lock().unwrap().text, "{:>7}.{:03} ms  {text}", millis / 1000, millis % 1000).unwrap();
        }
    }

    /// Returns a short name for `token`.
    pub(super) fn name(&self, token: OwnerToken) -> String {
        let Some(lines) = &self.lines else { return "a token".into() };
        let mut lines = lines.lock().unwrap();
        let next = lines.names.len() + 1;
        format!("t{}", lines.names.entry(token).or_insert(next))
    }

    pub(super) fn text(&self) -> String {
        self.lines.as_ref().map(|lines| lines.lock().unwrap().text.clone()).unwrap_or_default()
    }
}
