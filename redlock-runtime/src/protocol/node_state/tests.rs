//! Tests of one node, command by command.

use super::*;
use crate::lock::Mode;
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
fn abandoned_locks_and_queues_are_swept() {
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
fn detached_lock_is_adopted_by_only_one_token() {
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
fn adoption_keeps_the_queue_and_proposes_a_larger_number() {
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

/// Node, and those of its tokens whose processes are present.
struct Scene {
    state: NodeState,
    there: Vec<OwnerToken>,
}

impl Scene {
    const KEY: &str = "order:7";
    const ACQUIRE: Verb = Verb::Acquire { ttl: Duration::from_secs(60), claim: Duration::from_secs(1), holds: false };

    fn new(there: &[OwnerToken]) -> Self {
        Self { state: NodeState::default(), there: there.to_vec() }
    }

    fn ask(&mut self, seconds: u64, verb: Verb, mode: Mode, token: OwnerToken, other: Option<OwnerToken>) -> Reply {
        let mut command = after(other, command(verb, Self::KEY, token));
        let subject = Subject { other: other.map(Box::new), ..Subject::new(Self::KEY.into(), token) };
        command.subject = Arc::new(subject.of_mode(mode));
        let there = &self.there;
        let is_there = |name: &str| there.iter().any(|token| channel(token.manager()) == name);
        self.state.execute(at(seconds), &command, &mut |name, _| usize::from(is_there(name))).0
    }

    fn share(&mut self, seconds: u64, token: OwnerToken) -> Reply {
        self.ask(seconds, Self::ACQUIRE, Mode::Shared, token, None)
    }

    fn readers(&self, seconds: u64) -> Vec<OwnerToken> {
        let mut readers = self.state.readers(Self::KEY, at(seconds));
        readers.sort_unstable();
        readers
    }
}

const YIELD: Verb = Verb::Yield { claim: Duration::from_secs(1) };

#[test]
fn readers_that_yield_to_a_holder_do_not_readmit_each_other() {
    let [one, other, holder] = [1, 2, 3].map(token);
    let mut scene = Scene::new(&[one, other, holder]);
    scene.share(0, one);
    scene.share(0, other);
    let win_back = Verb::Acquire { ttl: Duration::from_secs(60), claim: Duration::from_secs(1), holds: true };
    assert!(matches!(scene.ask(0, win_back, Mode::Exclusive, holder, None), Reply::Queued { .. }));
    assert!(matches!(scene.ask(0, YIELD, Mode::Shared, one, Some(holder)), Reply::Yielded { .. }));
    assert_eq!(scene.readers(0), [other]);
    assert!(matches!(scene.ask(0, YIELD, Mode::Shared, other, Some(holder)), Reply::Yielded { .. }));
    assert_eq!(scene.state.owner(Scene::KEY, at(0)), Some(holder));
}

#[test]
fn silent_or_absent_writer_does_not_block_readers() {
    let [reader, writer, next] = [1, 2, 3].map(token);
    let mut scene = scene_of(&[reader, writer, next]);
    assert!(matches!(scene.share(3, next), Reply::Queued { .. }), "it was heard of three seconds ago");
    assert!(matches!(scene.share(4, next), Reply::Granted { .. }));
    let mut gone = scene_of(&[reader, writer, next]);
    gone.there = vec![reader, next];
    assert!(matches!(gone.share(1, next), Reply::Granted { .. }));
}

/// Creates a node where the first token shares the lock, and the second wants it exclusively.
fn scene_of(tokens: &[OwnerToken; 3]) -> Scene {
    let mut scene = Scene::new(tokens);
    scene.share(0, tokens[0]);
    scene.ask(0, Scene::ACQUIRE, Mode::Exclusive, tokens[1], None);
    scene
}

#[test]
fn late_extension_neither_upgrades_nor_revives_a_share() {
    let [one, other] = [1, 2].map(token);
    let extend = Verb::Extend { ttl: Duration::from_secs(60) };
    let mut scene = Scene::new(&[one, other]);
    scene.ask(0, Scene::ACQUIRE, Mode::Exclusive, one, None);
    assert!(matches!(scene.ask(1, extend, Mode::Shared, one, None), Reply::Extended { .. }), "it is lowered");
    scene.share(1, other);
    assert_eq!(scene.ask(1, extend, Mode::Exclusive, one, None), Reply::NotOwner);
    assert_eq!(scene.readers(1), [one, other]);
    scene.ask(2, Verb::Extend { ttl: Duration::from_secs(90) }, Mode::Shared, other, None);
    assert_eq!(scene.readers(61), [other], "each for its own time");
    assert_eq!(scene.ask(61, extend, Mode::Shared, one, None), Reply::NotOwner);
}

#[test]
fn readers_of_many_absent_processes_are_removed_by_repeated_releases() {
    let tokens: Vec<_> = (0..202).map(token).collect();
    let [writer, .., live] = tokens[..] else { panic!() };
    let mut scene = Scene::new(&[writer, live]);
    let take = Verb::SetNx { ttl: Duration::from_secs(60) };
    scene.ask(0, take, Mode::Exclusive, writer, None);
    for reader in &tokens[1..] {
        assert!(matches!(scene.share(0, *reader), Reply::Queued { .. }));
    }
    let release = Verb::Release { claim: Duration::from_secs(1) };
    let unfinished = scene.ask(0, release, Mode::Exclusive, writer, None);
    assert_eq!(unfinished, Reply::Unfinished { was_owner: true });
    assert_eq!(scene.readers(0), []);
    assert_eq!(scene.ask(0, release, Mode::Exclusive, writer, None), Reply::NotOwner);
    assert_eq!(scene.readers(0), [live]);
}

/// The manager of the waiters is notified once, and one command removes all of them.
#[test]
fn absent_waiters_of_one_process_are_removed_together() {
    let (absent, [holder, live]) = (ManagerId::random(), [token(0), token(4095)]);
    let (ttl, claim) = (Duration::from_secs(60), Duration::from_secs(1));
    for mode in [Mode::Exclusive, Mode::Shared] {
        let mut state = NodeState::default();
        let mut notified = Vec::new();
        let mut ask = |verb, mode, token: OwnerToken| {
            let subject = Arc::new(Subject::new(Scene::KEY.into(), token).of_mode(mode));
            let command = Command { verb, fence: None, subject };
            state.execute(at(0), &command, &mut |name, wakeup| {
                notified.push((wakeup.subject.token, wakeup.notice));
                usize::from(name != channel(&absent.to_string()))
            })
        };
        ask(Verb::SetNx { ttl }, Mode::Exclusive, holder);
        for counter in 1..4000 {
            ask(Scene::ACQUIRE, mode, OwnerToken::new(absent, TokenTime::new(1, counter)));
        }
        ask(Scene::ACQUIRE, mode, live);
        assert_eq!(ask(Verb::Release { claim }, Mode::Exclusive, holder).0, Reply::Released);
        let claims = notified.iter().filter(|(_, notice)| matches!(notice, Notice::Claimed(_)));
        let claims: Vec<_> = claims.map(|(token, _)| token.time()).collect();
        assert_eq!(claims, [TokenTime::new(1, 1), live.time()]);
    }
}

#[test]
fn lock_behind_many_absent_waiters_is_granted_on_the_next_request() {
    let tokens: Vec<_> = (0..202).map(token).collect();
    let [writer, .., live] = tokens[..] else { panic!() };
    let mut scene = Scene::new(&[writer, live]);
    scene.ask(0, Verb::SetNx { ttl: Duration::from_secs(5) }, Mode::Exclusive, writer, None);
    for waiter in &tokens[1..201] {
        scene.ask(0, Scene::ACQUIRE, Mode::Exclusive, *waiter, None);
    }
    let acquire = |scene: &mut Scene| scene.ask(6, Scene::ACQUIRE, Mode::Exclusive, live, None);
    assert_eq!(acquire(&mut scene), Reply::Queued { left: Some(Duration::ZERO), rank: 0 });
    assert!(matches!(acquire(&mut scene), Reply::Granted { .. }));
}
