//! Analysis of the annotated function: its form, its arguments, its body, and the placeholders of its key.
//!
//! This module only collects facts from the tokens of the function. Rules that reject a function or an option belong in
//! `check`. Code generation belongs in `expand`.

pub(crate) mod async_trait;
pub(crate) mod bindings;
pub(crate) mod block;
pub(crate) mod captures;
pub(crate) mod form;
pub(crate) mod future;
pub(crate) mod identity;
pub(crate) mod item;
pub(crate) mod key;
pub(crate) mod lints;
pub(crate) mod mentions;
pub(crate) mod output;
mod words;
