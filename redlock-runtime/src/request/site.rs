//! Where an attribute stands: what tells one annotated function from another.

use crate::error::SourceLine;
use std::fmt;

/// One attribute in the user's code. Generated code keeps one static of it for each annotated function.
///
/// All calls of a function have the same one, also when their keys differ: so it can name the function in a span, or
/// count its calls, at the price of a pointer.
#[derive(Clone, Copy)]
pub struct Site {
    /// The key as it was written, with its placeholders.
    template: &'static str,
    /// The module of the function.
    module: &'static str,
    file: &'static str,
    line: u32,
}

impl Site {
    /// What the attribute knows about itself.
    #[must_use]
    pub const fn new(template: &'static str, module: &'static str, file: &'static str, line: u32) -> Self {
        Self { template, module, file, line }
    }

    /// The key as it was written.
    pub(crate) const fn template(&self) -> &'static str {
        self.template
    }

    /// The module of the function.
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
