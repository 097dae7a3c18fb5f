//! Identity of an annotated function.

use crate::error::SourceLine;
use std::fmt;

/// One attribute in the user's code. Generated code keeps a static of it for each annotated function.
///
/// All calls of a function share it, even with different keys. So it names the function in a span, and identifies its counters, for
/// the price of a pointer.
#[derive(Clone, Copy)]
pub struct Site {
    /// Key as it is written in the attribute, with its placeholders.
    template: &'static str,
    /// Module of the function.
    module: &'static str,
    file: &'static str,
    line: u32,
}

impl Site {
    /// Creates the identity from the facts that the attribute knows.
    #[must_use]
    pub const fn new(template: &'static str, module: &'static str, file: &'static str, line: u32) -> Self {
        Self { template, module, file, line }
    }

    /// Returns the key as it is written in the attribute.
    pub(crate) const fn template(&self) -> &'static str {
        self.template
    }

    /// Returns the module of the function.
    pub(crate) const fn module(&self) -> &'static str {
        self.module
    }

    pub(crate) const fn line(&self) -> SourceLine {
        SourceLine::new(self.file, self.line)
    }
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { template, module, file, line } = self;
        write!(f, "{template:?} in {module} at {file}:{line}")
    }
}
