//! Output and exit code of a command.

use serde_core::Serialize;
use serde_json::{Value, to_value};

/// Yes: found, done, or healthy.
pub(crate) const YES: u8 = 0;
/// No: not found, or something needs attention.
pub(crate) const NO: u8 = 1;
/// Unknown: too few nodes answer, or the command line is wrong.
pub(crate) const UNKNOWN: u8 = 2;
/// A lock was broken, and its holder has not reported that it stopped.
pub(crate) const UNCONFIRMED: u8 = 3;

/// Output and exit code of a command.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Standard output, with a line break at its end.
    pub(crate) text: String,
    /// Lines on standard error.
    pub(crate) messages: Vec<String>,
    pub(crate) code: u8,
}

impl Outcome {
    /// Creates an outcome with `text` on standard output.
    pub(crate) fn new(text: &impl ToString, code: u8) -> Self {
        let mut text = text.to_string();
        if !text.is_empty() {
            text.push('\n');
        }
        Self { text, messages: Vec::new(), code }
    }

    /// Creates an outcome with `result` as JSON on standard output, with more `fields` if it is an object.
    pub(crate) fn json<const N: usize>(result: &impl Serialize, fields: [(&str, Value); N], code: u8) -> Self {
        // Serialization of these types to memory does not fail.
        let mut value = to_value(result).unwrap_or_default();
        if let Some(object) = value.as_object_mut() {
            object.extend(fields.map(|(name, field)| (name.to_owned(), field)));
        }
        Self::new(&value, code)
    }

    /// Creates an outcome with `message` on standard error and the exit code for unknown.
    pub(crate) fn failed(message: &str) -> Self {
        Self { text: String::new(), messages: vec![message.to_owned()], code: UNKNOWN }
    }

    /// Adds lines on standard error.
    pub(crate) fn with_messages(mut self, messages: impl IntoIterator<Item = String>) -> Self {
        self.messages.extend(messages);
        self
    }
}
