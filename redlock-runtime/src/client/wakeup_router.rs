//! Brings what the nodes announce to the token that it is about.

use crate::client::release::Parting;
use crate::client::shared::Core;
use crate::protocol::command::{Command, Deliver, Notice, Verb, Wakeup};
use crate::protocol::lease;
use crate::protocol::lease::CLAIM;
use crate::protocol::rules::Rule;
use std::sync::{Arc, OnceLock, Weak};

/// The nodes exist before the manager that they wake.
#[derive(Clone, Debug, Default)]
pub(crate) struct WakeUps(Arc<OnceLock<Weak<Core>>>);

impl WakeUps {
    /// From now on `core` is woken.
    pub(crate) fn connect(&self, core: &Arc<Core>) {
        // Connected once, by the builder.
        let _ = self.0.set(Arc::downgrade(core));
    }

    /// What node number `index` calls.
    pub(crate) fn of_node(&self, index: usize) -> Deliver {
        let wake_ups = self.clone();
        Arc::new(move |wakeup| {
            if let Some(core) = wake_ups.0.get().and_then(Weak::upgrade) {
                core.wake(index, wakeup);
            }
        })
    }
}

impl Core {
    fn wake(&self, node: usize, Wakeup { subject, notice }: Wakeup) {
        if let Notice::Contended { by } = &notice {
            self.token_clock.observe(by.time());
            self.hot_keys.heat(&subject.key, self.clock.now());
        }
        match self.local.ownership(subject.key.name()).filter(|ours| *ours.token() == subject.token) {
            Some(ownership) => ownership.notice(node, notice),
            None if self.rules.apply(Rule::ParkedTokensStay)
                && self.parked.is_parked(&subject.token, self.clock.now()) => {}
            // Its process or its call is gone, or its release went astray: nobody else would ever give it back.
            None if self.rules.apply(Rule::UnknownTokensAreReleased) => {
                let matters_until = self.clock.now().after(lease::QUEUE_EXPIRY);
                let command = Command { verb: Verb::Release { claim: CLAIM }, fence: None, subject: Arc::new(subject) };
                self.give_back(node, Parting { command, matters_until, keeps_until: None, expected: false });
            }
            None => {}
        }
    }
}
