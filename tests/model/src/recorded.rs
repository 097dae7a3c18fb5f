//! Results of the searches, in tables. `docs/evidence.md` is made from them.

use crate::search::Outcome;
use std::fs;
use std::io::Result;
use std::path::{Path, PathBuf};

/// Environment variable with which the tests also run their large searches.
const ALL: &str = "REDLOCK_MODEL_ALL";

/// Maximum number of states of a search that the tests run by default. Too small: fewer scenarios are checked in every run. Too large: the
/// tests take longer.
pub const MOST_STATES: usize = 800_000;

/// Result of one search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Name of the scenario.
    pub name: String,
    /// Number of different states.
    pub states: usize,
    /// Number of steps within which every state is reached.
    pub depth: usize,
    /// `true` if every state was visited.
    pub exhausted: bool,
    /// The broken property, if there is one.
    pub violation: Option<String>,
}

impl Row {
    /// Returns the row of a scenario with its `outcome`.
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

/// Table of rows, in a file of the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Searches of the lock in the tests.
    Lock,
    /// Searches of requests for several names.
    Sets,
    /// Searches of the fencing numbers.
    Fencing,
    /// Searches of restarted servers.
    Restarts,
    /// Searches of the long run.
    Long,
}

impl Table {
    fn path(self) -> PathBuf {
        let name = match self {
            Self::Lock => "lock.tsv",
            Self::Sets => "sets.tsv",
            Self::Fencing => "fencing.tsv",
            Self::Restarts => "restarts.tsv",
            Self::Long => "long.tsv",
        };
        Path::new(env!("CARGO_MANIFEST_DIR")).join("states").join(name)
    }

    /// Reads the rows of the file. Returns none if the file does not exist.
    #[must_use]
    pub fn read(self) -> Vec<Row> {
        let text = fs::read_to_string(self.path()).unwrap_or_default();
        text.lines().filter_map(Row::read).collect()
    }

    /// Writes all rows.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(self, rows: &[Row]) -> Result<()> {
        fs::write(self.path(), rows.iter().map(Row::line).collect::<String>())
    }

    /// Replaces one row, or adds it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn put(self, row: Row) -> Result<()> {
        let mut rows = self.read();
        match rows.iter_mut().find(|known| known.name == row.name) {
            Some(known) => *known = row,
            None => rows.push(row),
        }
        self.write(&rows)
    }

    /// Returns `true` if the tests leave out the search with this name, because it visited too many states when it last ran.
    /// `tests/run.sh --long` runs these searches, too.
    #[must_use]
    pub fn is_left_out(self, name: &str) -> bool {
        std::env::var_os(ALL).is_none() && self.read().iter().any(|row| row.name == name && row.states > MOST_STATES)
    }

    /// Returns `true` if the file contains exactly `rows`, beside the searches that are left out. If the variable `UPDATE_EXPECT` is set,
    /// writes the rows first.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn check_up_to_date(self, rows: &[Row]) -> Result<bool> {
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            rows.iter().try_for_each(|row| self.put(row.clone()))?;
        }
        let known = self.read();
        Ok(known.iter().filter(|row| !self.is_left_out(&row.name)).eq(rows))
    }
}
