//! Mistakes in a template, with their positions.

use std::ops::Range;

/// Message and position of a mistake in a template.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    place: Range<usize>,
    pub(crate) message: String,
}

impl Mistake {
    pub(crate) fn new(place: Range<usize>, message: impl Into<String>) -> Self {
        Self { place, message: message.into() }
    }

    /// Returns the message above the template, with the position marked. The compiler can only mark the whole literal.
    /// A text of several lines is not shown, because the mark would be under the last line.
    pub(crate) fn under(&self, template: &str) -> String {
        let (before, marked) = (template.get(..self.place.start), template.get(self.place.clone()));
        match (before, marked) {
            (Some(before), Some(marked)) if !marked.is_empty() && !template.contains(char::is_control) => {
                let (indent, carets) = (" ".repeat(before.chars().count()), "^".repeat(marked.chars().count()));
                format!("{}\n    {template}\n    {indent}{carets}", self.message)
            }
            _ => self.message.clone(),
        }
    }
}
