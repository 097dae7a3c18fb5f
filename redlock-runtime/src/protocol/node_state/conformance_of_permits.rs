//! Conformance of the node with the node of the model, for every command in every state of three tokens that want
//! permits. So the results of the model about permits hold for the code.
//!
//! A node of the code also has a queue for the admission lock, and a lock may be exclusive; the model has neither. The
//! connection and the script make sure that a repeated question makes no permit.

use super::*;
use crate::lock::Mode;
use crate::lock::beside::admission_name;
use crate::lock::owner_token::ManagerId;
use redlock_model::permits::{Node, Reply as Model, Variant, Verb as Asked};

const KEY: &str = "export";
const TOKENS: usize = 3;
/// Number of possible owners of the admission lock; 0 means that it is free.
const TURNS: u8 = 3;
const TTL: Duration = Duration::from_secs(60);
const TTL_LEFT: Duration = Duration::from_secs(30);
const TURN: Duration = Duration::from_secs(5);
const TURN_LEFT: Duration = Duration::from_secs(2);
const ASKED: [Asked; 5] = [Asked::Take, Asked::Open, Asked::Enter { is_late: false }, Asked::Extend, Asked::Leave];

/// State of a node, and a command.
#[derive(Clone, Copy, Debug)]
struct Case {
    node: Node,
    asked: Asked,
    by: u8,
    token: usize,
}

/// Effect of a command, in terms of the model.
#[derive(Debug, PartialEq)]
struct Outcome {
    reply: Model,
    node: Node,
    /// Token that is notified of the returned permit.
    freed: Option<u8>,
}

fn cases() -> impl Iterator<Item = Case> {
    let entries = || 0..1 << TOKENS;
    let nodes = (0..=TURNS).flat_map(move |turn| entries().map(move |entries| Node { turn, entries }));
    let callers = || (1..=TURNS).flat_map(|by| (0..TOKENS).map(move |token| (by, token)));
    nodes
        .flat_map(move |node| callers().flat_map(move |(by, token)| ASKED.map(|asked| Case { node, asked, by, token })))
}

fn by_the_model(Case { mut node, asked, by, token }: Case) -> Outcome {
    let reply = node.execute(asked, by, token, Variant::Protocol);
    let is_given_back = asked == Asked::Leave && reply == Model::Released && node.turn != 0;
    Outcome { reply, node, freed: is_given_back.then_some(node.turn) }
}

struct Code {
    /// Possible owners of the admission lock, and tokens that want permits.
    turns: [OwnerToken; TURNS as usize + 1],
    tokens: [OwnerToken; TOKENS],
    now: Instant,
}

impl Code {
    fn new() -> Self {
        let token = |at: usize| OwnerToken::new(ManagerId::random(), TokenTime::new(1, u16::try_from(at).unwrap()));
        let now = Instant::from_origin(Duration::from_secs(3600));
        Self { turns: std::array::from_fn(token), tokens: std::array::from_fn(|at| token(at + 100)), now }
    }

    fn run(&self, case: Case) -> Outcome {
        let (mut state, admission) = (self.state(case.node), admission_name(KEY));
        let mut freed = None;
        let (reply, _) = state.execute(self.now, &self.command(case), &mut |_, wakeup| {
            if wakeup.notice == Notice::Freed {
                assert_eq!(wakeup.subject.key.name(), &*admission, "{case:?}");
                freed = Some(self.turn(wakeup.subject.token));
            }
            1
        });
        let holder = state.holder(&admission);
        let entries = state.readers(KEY, self.now).into_iter().fold(0, |entries, token| entries | self.bit(token));
        let node = Node { turn: holder.map_or(0, |holder| self.turn(holder.token)), entries };
        if matches!(reply, Reply::Entered { .. }) {
            let ends = (holder.map(|holder| holder.expires), state.lease_left(KEY, self.tokens[case.token], self.now));
            assert_eq!(ends, (Some(self.now.after(TURN)), Some(TTL)), "both leases start anew: {case:?}");
        }
        Outcome { reply: self.in_the_model(&reply), node, freed }
    }

    fn state(&self, node: Node) -> NodeState {
        let of = |turn: u8| Holder {
            token: self.turns[usize::from(turn)],
            expires: self.now.after(TURN_LEFT),
            is_marked: false,
        };
        let holder = (node.turn != 0).then(|| of(node.turn));
        let mut state = NodeState::at(Rules { without: None }, &admission_name(KEY), holder, &[], self.now);
        for token in (0..TOKENS).filter(|token| node.entries >> token & 1 == 1) {
            state.put_at(KEY, self.tokens[token], self.now.after(TTL_LEFT), self.now);
        }
        state
    }

    fn command(&self, Case { asked, by, token, .. }: Case) -> Command {
        let (by, claim) = (self.turns[usize::from(by)], TURN);
        let of_admission = || Subject::new(admission_name(KEY).into(), by);
        let of_permit = || Subject::new(KEY.into(), self.tokens[token]).of_mode(Mode::Permit);
        let (verb, subject) = match asked {
            Asked::Take => (Verb::SetNx { ttl: TURN }, of_admission()),
            Asked::Open => (Verb::Release { claim }, of_admission()),
            Asked::Enter { .. } => {
                (Verb::Enter { ttl: TTL, turn: TURN }, Subject { other: Some(Box::new(by)), ..of_permit() })
            }
            Asked::Extend => (Verb::Extend { ttl: TTL }, of_permit()),
            Asked::Leave => (Verb::Release { claim }, of_permit()),
        };
        Command { verb, fence: None, subject: Arc::new(subject) }
    }

    fn in_the_model(&self, reply: &Reply) -> Model {
        match reply {
            Reply::Granted { .. } => Model::Granted,
            Reply::Taken => Model::Taken,
            Reply::Entered { others, strangers: 0, .. } => {
                Model::Entered { others: others.iter().fold(0, |bits, other| bits | self.bit(*other)) }
            }
            Reply::Extended { .. } => Model::Extended,
            Reply::Released => Model::Released,
            Reply::NotOwner => Model::NotOwner,
            other => panic!("nobody has asked for {other:?}"),
        }
    }

    fn turn(&self, token: OwnerToken) -> u8 {
        let turn = self.turns.iter().position(|known| *known == token).expect("it stands in the admission lock");
        u8::try_from(turn).unwrap()
    }

    fn bit(&self, token: OwnerToken) -> u8 {
        1 << self.tokens.iter().position(|known| *known == token).expect("it has a permit")
    }
}

#[test]
fn node_agrees_with_the_model_of_permits_in_every_small_state() {
    let code = Code::new();
    for case in cases() {
        assert_eq!(code.run(case), by_the_model(case), "code left, model right: {case:?}");
    }
}
