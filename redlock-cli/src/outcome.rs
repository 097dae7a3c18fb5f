//! What a command says, and how it ends.

/// Yes: it was found, done, or is well.
pub(crate) const YES: u8 = 0;
/// No: there is nothing, or something to look at.
pub(crate) const NO: u8 = 1;
/// It cannot be told, because too few nodes answer, or the command is wrong.
pub(crate) const UNKNOWN: u8 = 2;
/// A lock is broken, and its holder has not said that it has stopped.
pub(crate) const UNANSWERED: u8 = 3;

/// What a command says, and how it ends.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// For standard output; with its last line end.
    pub(crate) text: String,
    /// For standard error, a line each.
    pub(crate) complaints: Vec<String>,
    pub(crate) code: u8,
}

impl Outcome {
    /// `text` on standard output.
    pub(crate) fn said(text: &impl ToString, code: u8) -> Self {
        let mut text = text.to_string();
        if !text.is_empty() {
            text.push('\n');
        }
        Self { text, complaints: Vec::new(), code }
    }

    /// It cannot be told, for the reason that `complaint` says.
    pub(crate) fn failed(complaint: &str) -> Self {
        Self { text: String::new(), complaints: vec![complaint.to_owned()], code: UNKNOWN }
    }

    /// The same with more on standard error.
    pub(crate) fn complaining(mut self, complaints: impl IntoIterator<Item = String>) -> Self {
        self.complaints.extend(complaints);
        self
    }
}
