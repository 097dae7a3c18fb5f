//! What the attribute says: its tokens, read into [`Options`] by a table with one row for each option.
//!
//! Here belongs how an option is written, what its value may be by itself, and what is said of a value that cannot be
//! read. What two options mean together, or what an option means for the function below it, belongs in `check`; the
//! arguments of that function are no business of this folder.

mod aliases;
mod common;
mod dependency;
mod duration;
mod key;
mod proposal;
mod read;
mod table;
#[cfg(test)]
mod tests;
mod types;
mod values;

pub(crate) use self::duration::Time;
pub(crate) use self::read::{DEFAULTS, read, read_defaults};
pub(crate) use self::types::{
    Contended, Failed, KeyTemplate, KeyTemplates, Lost, Mode, Options, Order, Release, Waiting,
};
