//! Parser of the attribute: reads its tokens into [`Options`], with a table of one row per option.
//!
//! This module knows the syntax of an option, its possible values, and the messages for values that cannot be read.
//! Rules about two options, or about an option and the function, belong in `check`. The arguments of the function are
//! not known here.

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
