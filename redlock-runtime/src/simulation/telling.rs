//! Descriptions of network events for traces.

use super::agenda::Replied;
use super::network::World;
use super::server::Executed;
use super::trace::Trace;
use crate::protocol::command::{Command, Notice, Reply, Verb, Wakeup};

/// Returns the name of a manager: A, B and so on.
pub(super) fn client_name(client: usize) -> char {
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ".chars().nth(client).unwrap_or('?')
}

impl World {
    pub(super) fn name(&self, link: usize) -> String {
        let link = &self.links[link];
        format!("{}/{}", client_name(link.client), link.server + 1)
    }

    pub(super) fn trace_send(&self, link: usize, command: &Command) {
        self.trace.line(|trace| format!("{} -> {}", self.name(link), words(trace, command)));
    }

    pub(super) fn trace_execution(&self, wire: usize, command: &Command, executed: &Executed) {
        let link = self.wires[wire].link;
        self.trace.line(|trace| {
            let published =
                executed.published.iter().map(|(_, wakeup)| format!(", tells {}", wakeup_words(trace, wakeup)));
            let published: String = published.collect();
            let command = words(trace, command);
            format!("{}  * {command} => {}{published}", self.name(link), reply_words(trace, &executed.reply))
        });
    }

    pub(super) fn trace_reply(&self, link: usize, reply: &Replied) {
        self.trace.line(|trace| match reply {
            Replied::Replaced => format!("{} <- other data", self.name(link)),
            Replied::Raised => format!("{} <- an error, halfway", self.name(link)),
            Replied::Subscribed => format!("{} <- subscribed", self.name(link)),
            Replied::Command { reply, .. } => format!("{} <- {}", self.name(link), reply_words(trace, reply)),
        });
    }

    pub(super) fn trace_push(&self, link: usize, wakeup: &Wakeup) {
        self.trace.line(|trace| format!("{} <= {}", self.name(link), wakeup_words(trace, wakeup)));
    }
}

fn words(trace: &Trace, command: &Command) -> String {
    let names: Vec<_> = command.subject.wanted().map(|(key, _)| key.as_str()).collect();
    let (key, token) = (names.join(" + "), trace.name(command.subject.token));
    let token = if command.subject.is_shared() { format!("{token} (shared)") } else { token };
    match command.verb {
        Verb::SetNx { ttl } => format!("set {key} {token} for {ttl:?}"),
        Verb::Acquire { ttl, holds, .. } => {
            format!("acquire {key} {token} for {ttl:?}{}", if holds { ", which holds it" } else { "" })
        }
        Verb::Enter { ttl, .. } => {
            let by = command.subject.other.as_ref().map(|by| trace.name(**by));
            format!("enter {key} {token} by {by:?} for {ttl:?}")
        }
        Verb::Extend { ttl } => format!("extend {key} {token} for {ttl:?}"),
        Verb::Renew { ttl } => format!("renew {key} {token} for {ttl:?}"),
        Verb::Keep { ttl } => format!("keep {key} {token} for {ttl:?}"),
        Verb::Adopt { ttl } => {
            let from = command.subject.other.as_ref().map(|from| trace.name(**from));
            format!("adopt {key} {token} from {from:?} for {ttl:?}")
        }
        Verb::Yield { .. } => {
            let to = command.subject.other.as_ref().map(|to| trace.name(**to));
            format!("yield {key} {token} to {to:?}")
        }
        Verb::Release { .. } => format!("release {key} {token}"),
        Verb::Raise { number } => format!("raise the register of slot key {key} to {number}"),
        Verb::Revoke => {
            let from = command.subject.other.as_ref().map(|from| trace.name(**from));
            format!("revoke {key} {from:?} by {token}")
        }
    }
}

fn reply_words(trace: &Trace, reply: &Reply) -> String {
    match reply {
        Reply::Entered { others, strangers, left } => {
            let others: Vec<_> = others.iter().map(|other| trace.name(*other)).collect();
            format!("Entered beside {others:?} and {strangers} strangers, of whom the first ends in {left:?}")
        }
        reply => format!("{reply:?}"),
    }
}

fn wakeup_words(trace: &Trace, wakeup: &Wakeup) -> String {
    let token = trace.name(wakeup.subject.token);
    match wakeup.notice {
        Notice::Revoked { by } => format!("{token}: {} broken by {}", wakeup.subject.key, trace.name(by)),
        Notice::Stopped => format!("{token}: the holder of {} before has stopped", wakeup.subject.key),
        Notice::Free => format!("{token}: {} may be free", wakeup.subject.key),
        Notice::Freed => format!("{token}: a permit is free behind {}", wakeup.subject.key),
        Notice::Busy => format!("{token}: {} is busy", wakeup.subject.key),
        Notice::Granted | Notice::Claimed(_) => format!("{token}: granted {}", wakeup.subject.key),
        Notice::Proven(claim) => format!("{token}: granted {} for {:?}", wakeup.subject.key, claim.length),
        Notice::Wanted { by } => format!("{token}: {} wanted by {}", wakeup.subject.key, trace.name(by)),
        Notice::Contended { by } => format!("{token}: contended {} by {}", wakeup.subject.key, trace.name(by)),
    }
}
