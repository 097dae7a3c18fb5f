//! A permit whose token comes back to the turnstile, for the votes that it lacks.

use super::{Acquisition, NO_MEMBER};
use crate::protocol::candidate::turn;
use std::future::poll_fn;
use std::task::Poll;

impl Acquisition {
    /// Whether it is a permit that lacks votes which nodes may give, and nobody stands in the turnstile for them yet: then somebody does
    /// from now on, until [`has_come_back`](Self::has_come_back).
    pub(crate) fn comes_back(&self) -> bool {
        let mut state = self.state();
        let begins = state.candidate.comes_back(self.now()) && !state.rare().comes_back;
        state.rare().comes_back |= begins;
        begins
    }

    pub(crate) fn has_come_back(&self) {
        self.state().rare().comes_back = false;
    }

    /// A new token for the turnstile, in a line of its own: those of this process who count the others there would not see the votes that
    /// are given to it by theirs.
    pub(crate) fn way_back(&self) -> Self {
        let key = self.key().turnstile();
        let mut way = Self::of_key(&self.shared, &key, turn(self.ttl()), self.now());
        way.stands_beside = true;
        way
    }

    /// Asks the nodes for the votes that it lacks, while `turnstile` is its own, and hears what they say.
    pub(crate) async fn enter_again(&self, turnstile: &Self) {
        self.ask_for_permit(turnstile);
        let patience = self.lock().candidate.patience_at_turnstile();
        self.until_answered(patience).await;
    }

    /// Waits until nobody has the lock any more.
    pub(crate) async fn until_ended(&self) {
        let mut watcher = None;
        poll_fn(|cx| {
            let left = self.watch(&mut watcher, NO_MEMBER, cx.waker());
            if left.is_zero() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}
