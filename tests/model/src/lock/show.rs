//! Short description of a state, for traces.

use super::message::{Command, Reply};
use super::scenario::Scenario;
use super::state::{Column, Link, State};
use crate::fifo::Fifo;

pub(crate) fn show(scenario: &Scenario, state: &State) -> String {
    let tokens = scenario.all_tokens();
    let phases = state.phases[..tokens].iter().enumerate().map(|(token, phase)| format!("t{token} {phase:?}"));
    let nodes = state.columns[..scenario.nodes].iter().enumerate();
    let nodes = nodes.map(|(node, column)| format!("n{node} {}", show_column(column, tokens)));
    phases.chain(nodes).collect::<Vec<_>>().join(" | ")
}

fn show_column(column: &Column, tokens: usize) -> String {
    let owner = column.node.owner.map_or("-".to_owned(), |owner| format!("t{owner}"));
    let readers: Vec<_> = (0..tokens).filter(|token| column.node.readers >> token & 1 == 1).collect();
    let readers = if readers.is_empty() { String::new() } else { format!(" readers {readers:?}") };
    let queue: Vec<_> = (0..tokens).filter(|token| column.node.is_queued(*token as u8)).collect();
    let links = column.links[..tokens].iter().enumerate().map(|(token, link)| show_link(token, *link));
    let mark = if column.node.is_marked { "+" } else { "" };
    format!("owner {owner}{mark}{readers} queue {queue:?}{}", links.collect::<String>())
}

fn show_link(token: usize, link: Link) -> String {
    let flags = [
        (link.vote, "vote"),
        (link.lease, "lease"),
        (link.claim, "claim"),
        (link.tainted, "tainted"),
        (link.down, "down"),
    ];
    let flags = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name.to_owned());
    let commands = |stale: &str, fifo: Fifo| {
        let names = fifo.iter().filter_map(Command::from_code).map(Command::name).collect::<Vec<_>>();
        (!names.is_empty()).then(|| format!("{stale}>{}", names.join(",")))
    };
    let replies = link.replies.iter().filter_map(Reply::from_code).map(Reply::name).collect::<Vec<_>>();
    let replies = (!replies.is_empty()).then(|| format!("<{}", replies.join(",")));
    let parts = flags.chain(commands("", link.commands)).chain(commands("stale ", link.stale)).chain(replies);
    let parts = parts.collect::<Vec<_>>();
    if parts.is_empty() { String::new() } else { format!(" t{token}[{}]", parts.join(" ")) }
}
