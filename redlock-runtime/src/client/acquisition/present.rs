//! Present call of a lock, and its events.

use crate::error::LossCause;
use crate::lock::{LockKey, Mode};
use crate::observe::{Named, RedactedKey, Redaction, events, spans};
use crate::stats::SiteId;
use std::sync::Arc;
use std::time::Duration;
use tracing::Span;

/// Present call of a lock.
#[derive(Debug)]
pub(super) struct Present {
    pub(super) site: SiteId,
    /// Set after the loss of the lock was logged.
    pub(super) is_lost: bool,
    /// Set after the approaching end of the lease was logged.
    pub(super) is_at_risk: bool,
    /// Set if it represents several calls, each of which has its own metrics and events.
    pub(super) is_of_members: bool,
}

impl Present {
    pub(super) const fn new(site: SiteId) -> Self {
        Self { site, is_lost: false, is_at_risk: false, is_of_members: false }
    }

    /// Creates the entry of a lock that several calls share, the first of them at that site.
    pub(super) const fn of_members(site: SiteId) -> Self {
        Self { is_of_members: true, ..Self::new(site) }
    }

    /// Returns `true` if a loss of the lock would still have to be logged.
    pub(super) const fn is_loss_unlogged(&self) -> bool {
        !self.is_lost && !self.is_of_members
    }
}

/// Event to log. It is logged on drop, so it must be dropped after every mutex is free.
#[derive(Debug)]
#[must_use = "it is told when this is dropped"]
pub(crate) struct News {
    pub(super) key: LockKey,
    pub(super) mode: Mode,
    pub(super) redaction: Redaction,
    pub(super) template: Option<&'static str>,
    pub(super) line: (&'static str, u32),
    pub(super) what: Option<Incident>,
    /// Span that has ended, with its outcome.
    pub(super) span: Option<(Arc<Span>, &'static str)>,
}

#[derive(Debug)]
pub(super) enum Incident {
    Lost { cause: LossCause, held: Duration },
    Slow { held: Duration, ttl: Duration },
    AtRisk { remaining: Duration, ttl: Duration, times: u64 },
}

impl Drop for News {
    fn drop(&mut self) {
        let (file, line) = self.line;
        let (key, template, mode) = (RedactedKey::new(&self.key, self.redaction), self.template, self.mode);
        let lock = Named { key, template, mode, file, line };
        if let Some((span, outcome)) = self.span.take() {
            spans::ended(&span, outcome);
            spans::close(span);
        }
        match &self.what {
            None => {}
            Some(Incident::Lost { cause, held }) => events::lost(lock, cause, *held),
            Some(Incident::Slow { held, ttl }) => events::slow_hold(lock, *held, *ttl),
            Some(Incident::AtRisk { remaining, ttl, times }) => events::near_expiry(lock, (*remaining, *ttl), *times),
        }
    }
}
