//! Permits of a node: locks that a limited number of tokens hold at a time.
//!
//! 1. A permit is a share of the lock, and the nodes list the permit holders. Each asking call applies its own limit.
//! 2. A permit is given only to a token whose call owns the *admission lock*: an ordinary lock beside it, whose owner the
//!    command names. So later calls find all earlier ones.
//! 3. A permit is extended, lost and broken like any share. Its release notifies the owner of the admission lock.
//! 4. A writer waits for the permit holders, and later permits do not overtake it. A writer that owns the lock is
//!    notified of calls for permits, which wait in no queue, because its lock may be idle.

use super::Execution;
use crate::lock::OwnerToken;
use crate::lock::beside::admission_name;
use crate::lock::class::Class;
use crate::protocol::command::{Notice, Reply, Subject, Wakeup};
use crate::protocol::wakeup::channel;
use std::time::Duration;

impl Execution<'_> {
    /// Gives the token a permit if `by` owns the admission lock, and restarts the lease of the admission lock.
    pub(super) fn enter(&mut self, ttl: Duration, turn: Duration, by: OwnerToken) -> Reply {
        let (name, end) = (admission_name(self.key.name()), self.now.after(turn));
        self.state.expire(&name, self.now);
        let Some(holder) = self.state.locks.get_mut(&*name).filter(|holder| holder.token == by) else {
            return Reply::NotOwner;
        };
        holder.expires = end;
        if self.has_share(self.token) {
            self.take(self.token, Class::Shared, ttl);
        } else if self.try_at_once(ttl) == Reply::Taken {
            if let Some(owner) = self.owner() {
                self.notify(owner, Notice::Contended { by: self.token });
            }
            return Reply::Taken;
        }
        self.entered()
    }

    /// Returns the other permit holders, in the order of their lease ends.
    fn entered(&self) -> Reply {
        let live = self.readers().map_or(Vec::new(), |readers| readers.live_as(Class::Shared, self.now));
        let others: Vec<_> = live.into_iter().filter(|other| *other != self.token).collect();
        let end = others.first().and_then(|first| self.readers()?.end_of(*first, self.now));
        Reply::Entered { strangers: 0, left: end.map(|end| end.since(self.now)), others: others.into() }
    }

    /// Notifies the owner of the admission lock that the token has given its permit back.
    pub(super) fn notify_freed(&mut self) {
        let name = admission_name(self.key.name());
        self.state.expire(&name, self.now);
        if let Some(by) = self.state.locks.get(&*name).map(|holder| holder.token) {
            let subject = Subject::new(name.into(), by);
            (self.publish)(&channel(by.manager()), Wakeup { subject, notice: Notice::Freed });
        }
    }
}
