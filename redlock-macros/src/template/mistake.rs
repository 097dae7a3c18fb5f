//! What is wrong with a template, and where.

use std::ops::Range;

/// A sentence that says what to write, and the place in the text that is meant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    place: Range<usize>,
    pub(crate) message: String,
}

impl Mistake {
    pub(crate) fn new(place: Range<usize>, message: impl Into<String>) -> Self {
        Self { place, message: message.into() }
    }

    /// The sentence above the template, with the place marked. The compiler can mark nothing but the whole literal. A
    /// text of several lines is not shown, because the mark would stand under the last one.
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
