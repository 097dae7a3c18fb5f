//! What searches have found, in tables of which `docs/evidence.md` is made.

use crate::search::Outcome;
use std::fs;
use std::io::Result;
use std::path::{Path, PathBuf};

/// What one search has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The name of the scenario.
    pub name: String,
    /// Different states.
    pub states: usize,
    /// Every state is reached within that many steps.
    pub depth: usize,
    /// Whether every state was visited.
    pub exhausted: bool,
    /// What was broken, if anything was.
    pub violation: Option<String>,
}

impl Row {
    /// What `outcome` says of the scenario called `name`.
    #[must_use]
    pub fn new(name: &str, outcome: &Outcome) -> Self {
        let violation = outcome.violation.as_ref().map(|violation| violation.what.clone());
        let Outcome { states, depth, exhausted, .. } = *outcome;
        Self { name: name.to_owned(), states, depth, exhausted, violation }
    }

    fn line(&self) -> String {
        let Self { name, states, depth, exhausted, violation } = self;
        format!("{name}\t{states}\t{depth}\t{exhausted}\t{}\n", violation.as_deref().unwrap_or("-"))
    }

    fn read(line: &str) -> Option<Self> {
        let [name, states, depth, exhausted, violation] = line.split('\t').collect::<Vec<_>>().try_into().ok()?;
        let violation = (violation != "-").then(|| violation.to_owned());
        let (states, depth, exhausted) = (states.parse().ok()?, depth.parse().ok()?, exhausted.parse().ok()?);
        Some(Self { name: name.to_owned(), states, depth, exhausted, violation })
    }
}

/// A table of rows, in a file of the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// The searches of the lock in the tests.
    Lock,
    /// Those of requests for several names.
    Sets,
    /// Those of the fencing numbers.
    Fencing,
    /// Those of the long run.
    Long,
}

impl Table {
    fn path(self) -> PathBuf {
        let name = match self {
            Self::Lock => "lock.tsv",
            Self::Sets => "sets.tsv",
            Self::Fencing => "fencing.tsv",
            Self::Long => "long.tsv",
        };
        Path::new(env!("CARGO_MANIFEST_DIR")).join("states").join(name)
    }

    /// What the file says; nothing where there is none.
    #[must_use]
    pub fn read(self) -> Vec<Row> {
        let text = fs::read_to_string(self.path()).unwrap_or_default();
        text.lines().filter_map(Row::read).collect()
    }

    /// # Errors
    /// When the file cannot be written.
    pub fn write(self, rows: &[Row]) -> Result<()> {
        fs::write(self.path(), rows.iter().map(Row::line).collect::<String>())
    }

    /// Writes one row anew, or adds it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn put(self, row: Row) -> Result<()> {
        let mut rows = self.read();
        match rows.iter_mut().find(|known| known.name == row.name) {
            Some(known) => *known = row,
            None => rows.push(row),
        }
        self.write(&rows)
    }

    /// Whether the file says the same as `rows`, which are written to it when the variable `UPDATE_EXPECT` is set.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn is_up_to_date(self, rows: &[Row]) -> Result<bool> {
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            self.write(rows)?;
        }
        Ok(self.read() == rows)
    }
}
