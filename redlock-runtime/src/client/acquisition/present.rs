//! The call that has a lock now, and what there is to tell of it.

use crate::error::LossCause;
use crate::lock::{LockKey, Mode};
use crate::observe::{Named, Redaction, ToldKey, events, spans};
use crate::stats::SiteId;
use std::sync::Arc;
use std::time::Duration;
use tracing::Span;

/// The call that has a lock now.
#[derive(Debug)]
pub(super) struct Present {
    pub(super) site: SiteId,
    /// Whether it was told that the lock is lost.
    pub(super) is_lost: bool,
    /// Whether it was told that the lease runs out.
    pub(super) is_at_risk: bool,
    /// Whether it stands for several, each of which counts and tells for itself what becomes of it.
    pub(super) is_of_members: bool,
}

impl Present {
    pub(super) const fn new(site: SiteId) -> Self {
        Self { site, is_lost: false, is_at_risk: false, is_of_members: false }
    }

    /// That of a lock which several calls have by one token, the first of them at that site.
    pub(super) const fn of_members(site: SiteId) -> Self {
        Self { is_of_members: true, ..Self::new(site) }
    }

    /// Whether a loss of the lock would still have to be told.
    pub(super) const fn is_to_be_told(&self) -> bool {
        !self.is_lost && !self.is_of_members
    }
}

/// Something to tell. It is told when this is dropped, so that is done when no mutex is held any more.
#[derive(Debug)]
#[must_use = "it is told when this is dropped"]
pub(crate) struct News {
    pub(super) key: LockKey,
    pub(super) mode: Mode,
    pub(super) redaction: Redaction,
    pub(super) template: Option<&'static str>,
    pub(super) line: (&'static str, u32),
    pub(super) what: Option<What>,
    /// The span that has ended, and how.
    pub(super) span: Option<(Arc<Span>, &'static str)>,
}

#[derive(Debug)]
pub(super) enum What {
    Lost { cause: LossCause, held: Duration },
    Slow { held: Duration, ttl: Duration },
    AtRisk { remaining: Duration, ttl: Duration, times: u64 },
}

impl Drop for News {
    fn drop(&mut self) {
        let (file, line) = self.line;
        let (key, template, mode) = (ToldKey::new(&self.key, self.redaction), self.template, self.mode);
        let lock = Named { key, template, mode, file, line };
        if let Some((span, outcome)) = self.span.take() {
            spans::ended(&span, outcome);
            spans::close(span);
        }
        match &self.what {
            None => {}
            Some(What::Lost { cause, held }) => events::lost(lock, cause, *held),
            Some(What::Slow { held, ttl }) => events::slow_hold(lock, *held, *ttl),
            Some(What::AtRisk { remaining, ttl, times }) => events::near_expiry(lock, (*remaining, *ttl), *times),
        }
    }
}
