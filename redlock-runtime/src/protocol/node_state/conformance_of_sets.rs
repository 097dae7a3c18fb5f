//! Conformance of the node with the node of the model, for every command in every state of three tokens that want two
//! names. So the results of the model about requests for several names hold for the code.
//!
//! A node of the code also pings the waiters that block a request, and reserves names. The model has neither: its
//! processes are always present, and it has no other programs.

use super::conformance::to_code_rule;
use super::*;
use crate::lock::owner_token::ManagerId;
use crate::lock::part::Part;
use crate::lock::parts::Parts;
use redlock_model::sets::{self, Class as Model, NAMES, Wish};
use std::collections::BTreeSet;

const NAMED: [&str; NAMES] = ["a", "b", "c"];
const TOKENS: usize = 3;
const TTL: Duration = Duration::from_secs(60);
const RULES: [redlock_model::Rule; 4] = [
    redlock_model::Rule::AllHoldersHear,
    redlock_model::Rule::LeavingUnblocks,
    redlock_model::Rule::IntentsKeepOut,
    redlock_model::Rule::DowngradeNeverRises,
];

const X: Option<Model> = Some(Model::Exclusive);
const S: Option<Model> = Some(Model::Shared);
const IX: Option<Model> = Some(Model::IntentExclusive);
const IS: Option<Model> = Some(Model::IntentShared);

/// Wishes of three tokens: each combination of these.
const WISHES: [Wish; 6] = [[X, None, None], [S, None, None], [X, X, None], [S, X, None], [IX, X, None], [IS, S, None]];

/// Relation of a token to a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stand {
    Nothing,
    Holds,
    Waits,
}

const STANDS: [Stand; 3] = [Stand::Nothing, Stand::Holds, Stand::Waits];

const VERBS: [sets::Verb; 5] =
    [sets::Verb::Acquire, sets::Verb::Yield, sets::Verb::Extend, sets::Verb::Lower, sets::Verb::Release];

fn class(of: Model) -> Class {
    match of {
        Model::Exclusive => Class::Exclusive,
        Model::Shared => Class::Shared,
        Model::IntentExclusive => Class::IntentExclusive,
        Model::IntentShared => Class::IntentShared,
    }
}

fn tables() -> impl Iterator<Item = [Wish; TOKENS]> {
    WISHES
        .iter()
        .flat_map(|one| WISHES.iter().flat_map(move |other| WISHES.iter().map(move |third| [*one, *other, *third])))
}

/// Returns the classes in which a token wants its names, or has them by downgrade.
fn classes(wishes: &[Wish; TOKENS], token: usize, lowered: u8) -> Wish {
    let is_lowered = lowered >> token & 1 == 1;
    wishes[token].map(|class| if is_lowered { class.map(Model::lowered) } else { class })
}

/// Returns `true` if a token may downgrade: one of its classes changes.
fn may_be_lowered(wish: Wish) -> bool {
    wish.iter().flatten().any(|class| *class != class.lowered())
}

/// Returns all states with compatible holders. A token that has downgraded owns all that it wants.
fn nodes(wishes: [Wish; TOKENS]) -> impl Iterator<Item = sets::Node> {
    let is_possible =
        move |lowered: &u8| (0..TOKENS).all(|token| lowered >> token & 1 == 0 || may_be_lowered(wishes[token]));
    (0..1 << TOKENS).filter(is_possible).flat_map(move |lowered| nodes_with(wishes, lowered))
}

fn nodes_with(wishes: [Wish; TOKENS], lowered: u8) -> impl Iterator<Item = sets::Node> {
    let wishes: [Wish; TOKENS] = std::array::from_fn(|token| classes(&wishes, token, lowered));
    let places: Vec<_> = (0..TOKENS).flat_map(|token| (0..2).map(move |name| (token, name))).collect();
    (0..3_usize.pow(6)).filter_map(move |mut choice| {
        let mut node = sets::Node { lowered, ..sets::Node::default() };
        for (token, name) in &places {
            let stand = STANDS[choice % 3];
            choice /= 3;
            let Some(wanted) = wishes[*token][*name] else {
                if stand == Stand::Nothing {
                    continue;
                }
                return None;
            };
            if lowered >> token & 1 == 1 && stand != Stand::Holds {
                return None;
            }
            let holders = (0..*token).filter(|other| node.holders[*name] >> other & 1 == 1);
            let mut classes = holders.filter_map(|other| wishes[other][*name]);
            match stand {
                Stand::Holds if classes.any(|other| other.conflicts_with(wanted)) => return None,
                Stand::Holds => node.holders[*name] |= 1 << token,
                Stand::Waits => node.queue[*name] |= 1 << token,
                Stand::Nothing => {}
            }
        }
        Some(node)
    })
}

/// Effect of a command: the reply, the node, and the notifications.
type Outcome = (&'static str, sets::Node, BTreeSet<(usize, String)>);

fn by_the_model(
    mut node: sets::Node,
    token: usize,
    verb: sets::Verb,
    wishes: &[Wish; TOKENS],
    without: Option<redlock_model::Rule>,
) -> Outcome {
    let mut told = BTreeSet::new();
    let token = u8::try_from(token).unwrap();
    let reply = node.execute(token, verb, wishes, without, &mut |to, notice| {
        told.insert((
            usize::from(to),
            match notice {
                sets::Notice::Granted => "given".to_owned(),
                sets::Notice::Free => "free".to_owned(),
                sets::Notice::Contended { by } => format!("contended by {by}"),
            },
        ));
    });
    let reply = match reply {
        sets::Reply::Granted { smaller: false } => "granted",
        sets::Reply::Granted { smaller: true } => "granted before",
        sets::Reply::Queued => "queued",
        sets::Reply::Kept => "kept",
        sets::Reply::Yielded => "yielded",
        sets::Reply::Extended => "extended",
        sets::Reply::NotOwner => "not its own",
        sets::Reply::Released => "released",
    };
    (reply, node, told)
}

struct Code {
    tokens: [OwnerToken; TOKENS],
    now: Instant,
}

impl Code {
    fn run(
        &self,
        node: sets::Node,
        token: usize,
        verb: sets::Verb,
        wishes: &[Wish; TOKENS],
        without: Option<Rule>,
    ) -> Outcome {
        let mut state = self.built(node, wishes, without);
        let wish = match verb {
            sets::Verb::Lower => classes(wishes, token, 1 << token),
            // Names are released in their present class.
            sets::Verb::Release => classes(wishes, token, node.lowered),
            sets::Verb::Acquire | sets::Verb::Yield | sets::Verb::Extend => wishes[token],
        };
        let verb = match verb {
            sets::Verb::Acquire => Verb::Acquire { ttl: TTL, claim: TTL, holds: false },
            sets::Verb::Yield => Verb::Yield { claim: TTL },
            sets::Verb::Extend | sets::Verb::Lower => Verb::Extend { ttl: TTL },
            sets::Verb::Release => Verb::Release { claim: TTL },
        };
        let wanted = wish.iter().zip(NAMED).filter_map(|(of, name)| Some(Part::new(name.into(), class((*of)?))));
        let subject = Subject::of(&Parts::of(wanted).unwrap(), self.tokens[token]);
        let command = Command { verb, fence: None, subject: Arc::new(subject) };
        let mut told = BTreeSet::new();
        let (reply, _) = state.execute(self.now, &command, &mut |_, wakeup| {
            let to = self.number(wakeup.subject.token);
            let held = NAMED
                .iter()
                .zip(node.holders)
                .any(|(name, holders)| *name == wakeup.subject.key.name() && holders >> to & 1 == 1);
            match wakeup.notice {
                Notice::Granted | Notice::Claimed(_) => _ = told.insert((to, "given".to_owned())),
                Notice::Free => _ = told.insert((to, "free".to_owned())),
                // Other tokens are only pinged.
                Notice::Contended { by } if held => _ = told.insert((to, format!("contended by {}", self.number(by)))),
                _ => {}
            }
            1
        });
        let reply = match reply {
            Reply::Granted { smaller: false, .. } => "granted",
            Reply::Granted { smaller: true, .. } => "granted before",
            Reply::Queued { .. } => "queued",
            Reply::Kept => "kept",
            Reply::Yielded { .. } => "yielded",
            Reply::NotOwner if matches!(verb, Verb::Yield { .. }) => "yielded",
            Reply::Extended { .. } => "extended",
            Reply::NotOwner if matches!(verb, Verb::Extend { .. }) => "not its own",
            Reply::Released | Reply::NotOwner => "released",
            other => panic!("{other:?}"),
        };
        (reply, self.seen(&state, wishes), told)
    }

    fn built(&self, node: sets::Node, wishes: &[Wish; TOKENS], without: Option<Rule>) -> NodeState {
        let mut state = NodeState::following(Rules { without });
        let (now, expires) = (self.now, self.now.after(TTL));
        for (name, (holders, queue)) in NAMED.into_iter().zip(node.holders.into_iter().zip(node.queue)) {
            for (number, token) in self.tokens.iter().enumerate() {
                let at = NAMED.iter().position(|other| *other == name).unwrap();
                let Some(of) = classes(wishes, number, node.lowered)[at].map(class) else { continue };
                let several = wishes[number].iter().flatten().count() > 1;
                if queue >> number & 1 == 1 {
                    let line = Line::new(of, several);
                    state.queues.entry(name.into()).or_insert_with(|| Queue::new(now)).join(*token, line, now);
                } else if holders >> number & 1 == 1 && of == Class::Exclusive {
                    // Every waiter has left a mark.
                    let holder = Holder { token: *token, expires, is_marked: queue != 0 };
                    state.locks.insert(name.into(), holder);
                } else if holders >> number & 1 == 1 {
                    let readers = state.readers.entry(name.into()).or_insert_with(|| Readers::new(now));
                    readers.put(*token, of, expires, now);
                }
            }
        }
        state
    }

    fn seen(&self, state: &NodeState, wishes: &[Wish; TOKENS]) -> sets::Node {
        let mut node = sets::Node::default();
        for (at, name) in NAMED.into_iter().enumerate() {
            let set = |tokens: Vec<OwnerToken>| tokens.into_iter().fold(0, |set, token| set | 1 << self.number(token));
            node.holders[at] = set(state.holders(name, self.now));
            node.queue[at] = set(state.queue(name, self.now));
            for (number, wish) in wishes.iter().enumerate() {
                let is_lowered = |class: Model| class != class.lowered() && node.holders[at] >> number & 1 == 1;
                let had = state.readers.get(name).and_then(|readers| readers.held_by(self.tokens[number], self.now));
                let is_reader = |lowered: Model| had.is_some_and(|(had, _)| had == class(lowered));
                if wish[at].is_some_and(|class| is_lowered(class) && is_reader(class.lowered())) {
                    node.lowered |= 1 << number;
                }
            }
        }
        node
    }

    fn number(&self, token: OwnerToken) -> usize {
        self.tokens.iter().position(|other| *other == token).unwrap()
    }
}

fn code() -> Code {
    let manager = ManagerId::random();
    let tokens = std::array::from_fn(|at| OwnerToken::new(manager, TokenTime::new(1, u16::try_from(at).unwrap())));
    Code { tokens, now: Instant::from_origin(Duration::from_secs(1)) }
}

/// Compares the cases of one in `one_in` combinations of wishes. Returns the number of cases that differ from the
/// behavior with all rules, and the number of all cases.
fn compared(without: Option<redlock_model::Rule>, one_in: usize) -> (u32, u32) {
    let (code, mut differing, mut cases) = (code(), 0, 0);
    for wishes in tables().step_by(one_in) {
        for node in nodes(wishes) {
            let commands = (0..TOKENS).flat_map(|token| VERBS.map(|verb| (token, verb)));
            // Only waiters yield, and none of these owns the lock as a reader instead.
            let makes_sense = |(token, verb): &(usize, sets::Verb)| match verb {
                sets::Verb::Lower => may_be_lowered(wishes[*token]),
                sets::Verb::Yield => node.lowered >> token & 1 == 0,
                _ => true,
            };
            for (token, verb) in commands.filter(makes_sense) {
                let ours = code.run(node, token, verb, &wishes, without.map(to_code_rule));
                let theirs = by_the_model(node, token, verb, &wishes, without);
                let case = format!("without {without:?}, {verb:?} of {token} who want {wishes:?}, in {node:?}");
                assert_eq!(ours, theirs, "code left, model right: {case}");
                differing += u32::from(without.is_some() && ours != by_the_model(node, token, verb, &wishes, None));
                cases += 1;
            }
        }
    }
    (differing, cases)
}

#[test]
fn node_agrees_with_the_model_of_several_keys() {
    let (_, cases) = compared(None, 1);
    assert!(cases > 200_000, "{cases}");
}

#[test]
fn node_agrees_with_the_model_of_several_keys_without_each_rule() {
    for rule in RULES {
        let (differing, cases) = compared(Some(rule), 5);
        println!("without {rule:?}, {differing} of {cases} steps are others");
        assert!(differing > 0, "{rule:?} is not a rule of the node");
    }
}
