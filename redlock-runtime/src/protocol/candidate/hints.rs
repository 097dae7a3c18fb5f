//! Reports of a node apart from its vote. Boxed: most holders never receive any, and there are many holders.

use crate::error::NodeError;
use crate::lock::OwnerToken;
use crate::protocol::command::Number;

#[derive(Clone, Debug)]
pub(super) struct VoterHints(Option<Box<Hints>>);

#[derive(Clone, Debug, Default)]
struct Hints {
    number: Option<Number>,
    failure: Option<NodeError>,
    /// Boxed: it is as large as all other fields, and a silent node leaves a failure with every lock.
    wanted_by: Option<Box<OwnerToken>>,
}

impl VoterHints {
    pub(super) const fn new() -> Self {
        Self(None)
    }

    /// Returns the reply to a ballot, as long as the vote that came with it is unchanged.
    pub(super) fn number(&self) -> Option<Number> {
        self.0.as_ref()?.number
    }

    pub(super) fn set_number(&mut self, number: Option<Number>) {
        self.set(number, |said| &mut said.number);
    }

    /// Returns the reason that the last command got no answer.
    pub(super) fn failure(&self) -> Option<&NodeError> {
        self.0.as_ref()?.failure.as_ref()
    }

    pub(super) fn set_failure(&mut self, failure: Option<NodeError>) {
        self.set(failure, |said| &mut said.failure);
    }

    /// Returns the token that holds the lock at other nodes and waits at this one.
    pub(super) fn wanted_by(&self) -> Option<OwnerToken> {
        self.0.as_ref()?.wanted_by.as_deref().copied()
    }

    pub(super) fn set_wanted_by(&mut self, token: Option<OwnerToken>) {
        self.set(token.map(Box::new), |said| &mut said.wanted_by);
    }

    /// Sets one of the fields. The box exists only while a field is set.
    fn set<T>(&mut self, value: Option<T>, part: impl FnOnce(&mut Hints) -> &mut Option<T>) {
        if value.is_none() && self.0.is_none() {
            return;
        }
        let said = self.0.get_or_insert_default();
        *part(said) = value;
        if said.is_empty() {
            self.0 = None;
        }
    }
}

impl Hints {
    const fn is_empty(&self) -> bool {
        self.number.is_none() && self.failure.is_none() && self.wanted_by.is_none()
    }
}
