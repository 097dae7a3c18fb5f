//! What one node does, command by command.

use super::*;
use crate::lock::owner_token::ManagerId;

fn at(seconds: u64) -> Instant {
    Instant::from_origin(Duration::from_secs(seconds))
}

fn token(counter: u16) -> OwnerToken {
    OwnerToken::new(ManagerId::random(), TokenTime::new(1, counter))
}

fn command(verb: Verb, key: &str, token: OwnerToken) -> Command {
    Command { verb, fence: None, subject: Arc::new(Subject::new(key.into(), token)) }
}

fn after(from: Option<OwnerToken>, mut command: Command) -> Command {
    let Subject { key, token, .. } = &*command.subject;
    command.subject = Arc::new(Subject { other: from.map(Box::new), ..Subject::new(key.clone(), *token) });
    command
}

#[test]
fn what_is_abandoned_does_not_pile_up() {
    let (ttl, claim) = (Duration::from_secs(5), Duration::from_secs(1));
    let mut state = NodeState::default();
    for i in 0..5 * SWEEP_FROM as u64 {
        for counter in 0..2 {
            let acquire = command(Verb::Acquire { ttl, claim, holds: false }, &i.to_string(), token(counter));
            state.execute(at(i), &acquire, &mut |_, _| 0);
        }
    }
    assert!(state.locks.len() + state.queues.len() <= SWEEP_FROM);
}

#[test]
fn a_lock_is_adopted_by_one() {
    const EXTENDED: Reply = Reply::Extended { waiters: 0, number: None };
    let [first, one, other] = [0, 1, 2].map(token);
    let ttl = Duration::from_secs(5);
    let adopt = Verb::Adopt { ttl };
    let table = [
        ("nobody has it", 0, one, Some(first), adopt, Reply::NotOwner),
        ("", 0, first, None, Verb::SetNx { ttl }, Reply::Granted { smaller: false, number: None }),
        ("it is there", 4, one, Some(first), adopt, EXTENDED),
        ("with a lease of its own", 8, one, None, Verb::Extend { ttl }, EXTENDED),
        ("another was first", 8, other, Some(first), adopt, Reply::NotOwner),
        ("it was left by another", 8, other, Some(token(3)), adopt, Reply::NotOwner),
        ("who had it has it no more", 8, first, None, Verb::Extend { ttl }, Reply::NotOwner),
        ("nor gives it back", 8, first, None, Verb::Release { claim: ttl }, Reply::NotOwner),
        ("the command is sent again", 12, one, Some(first), adopt, EXTENDED),
        ("it has expired", 17, one, Some(first), adopt, Reply::NotOwner),
    ];
    let mut state = NodeState::default();
    for (what, seconds, token, from, verb, expected) in table {
        let command = after(from, command(verb, "order:7", token));
        let (reply, _) = state.execute(at(seconds), &command, &mut |_, _| 0);
        assert_eq!(reply, expected, "{what}");
    }
    assert!(state.is_empty(at(17)));
}

#[test]
fn an_adoption_leaves_the_queue_alone_and_proposes_a_larger_number() {
    let [first, one, waiter] = [0, 1, 2].map(token);
    let (ttl, claim) = (Duration::from_secs(5), Duration::from_secs(1));
    let fenced =
        |verb, token, ballot| Command { fence: Some(Ballot::known(ballot)), ..command(verb, "order:7", token) };
    let mut state = NodeState::default();
    let mut execute = |command: &Command| state.execute(at(0), command, &mut |_, _| 1).0;
    let granted = execute(&fenced(Verb::SetNx { ttl }, first, 1));
    assert_eq!(granted, Reply::Granted { smaller: false, number: Some(Number::Accepted(1)) });
    execute(&command(Verb::Acquire { ttl, claim, holds: false }, "order:7", waiter));
    for number in [Number::Accepted(2), Number::Refused { largest: 2 }] {
        let adopted = execute(&after(Some(first), fenced(Verb::Adopt { ttl }, one, 2)));
        assert_eq!(adopted, Reply::Extended { waiters: 1, number: Some(number) }, "once");
    }
    assert_eq!(execute(&command(Verb::Release { claim }, "order:7", one)), Reply::Released);
    assert_eq!(state.owner("order:7", at(0)), Some(waiter));
}
