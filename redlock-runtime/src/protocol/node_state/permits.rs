//! What a node does for locks of which no more than so many may be had: permits.
//!
//! 1. A permit is a share of the lock, of which the nodes tell who has one. How many there may be is up to whoever asks.
//! 2. It is made for a token that stands in the *turnstile*, and for no other: an ordinary lock beside it, whose owner the command
//!    names. So those that come later find all that have come before.
//! 3. It is extended, lost and broken like any share. Who gives it back tells whoever stands in the turnstile.
//! 4. Who wants the lock alone waits for those that have permits, and is not overtaken by later ones. Who has it alone is told of those
//!    that want permits, which stand in no queue: it may have it for nobody.

use super::Execution;
use crate::lock::OwnerToken;
use crate::lock::beside::turnstile_name;
use crate::lock::class::Class;
use crate::protocol::command::{Notice, Reply, Subject, Wakeup};
use crate::protocol::wakeup::channel;
use std::time::Duration;

impl Execution<'_> {
    /// Gives the token a permit if `by` stands in the turnstile, whose lease starts anew.
    pub(super) fn enter(&mut self, ttl: Duration, turn: Duration, by: OwnerToken) -> Reply {
        let (name, end) = (turnstile_name(self.key.name()), self.now.after(turn));
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

    /// Who else has a permit, the one first whose lease ends first.
    fn entered(&self) -> Reply {
        let live = self.readers().map_or(Vec::new(), |readers| readers.live_as(Class::Shared, self.now));
        let others: Vec<_> = live.into_iter().filter(|other| *other != self.token).collect();
        let end = others.first().and_then(|first| self.readers()?.end_of(*first, self.now));
        Reply::Entered { strangers: 0, left: end.map(|end| end.since(self.now)), others: others.into() }
    }

    /// Tells whoever stands in the turnstile that the token has a permit no more.
    pub(super) fn tell_freed(&mut self) {
        let name = turnstile_name(self.key.name());
        self.state.expire(&name, self.now);
        if let Some(by) = self.state.locks.get(&*name).map(|holder| holder.token) {
            let subject = Subject::new(name.into(), by);
            (self.publish)(&channel(by.manager()), Wakeup { subject, notice: Notice::Freed });
        }
    }
}
