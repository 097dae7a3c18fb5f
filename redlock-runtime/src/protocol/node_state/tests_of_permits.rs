//! Tests of one node with permits, command by command.

use super::*;
use crate::lock::Mode;
use crate::lock::beside::admission_name;
use crate::lock::owner_token::ManagerId;
use crate::lock::part::Part;
use crate::lock::parts::Parts;

const TTL: Duration = Duration::from_secs(60);
const TURN: Duration = Duration::from_secs(5);
const KEY: &str = "export";
const TRY: Verb = Verb::SetNx { ttl: TTL };
const ENTER: Verb = Verb::Enter { ttl: TTL, turn: TURN };
const ACQUIRE: Verb = Verb::Acquire { ttl: TTL, claim: TURN, holds: false };
const RELEASE: Verb = Verb::Release { claim: TURN };

/// Node, and its notifications.
#[derive(Default)]
struct Scene {
    state: NodeState,
    seconds: u64,
    said: Vec<(OwnerToken, Notice)>,
}

fn tokens<const N: usize>() -> [OwnerToken; N] {
    std::array::from_fn(|at| OwnerToken::new(ManagerId::random(), TokenTime::new(1, u16::try_from(at).unwrap())))
}

impl Scene {
    /// Creates a node where `by` owns the admission lock.
    fn of(by: OwnerToken) -> Self {
        let mut scene = Self::default();
        scene.execute(Verb::SetNx { ttl: TURN }, Subject::new(admission_name(KEY).into(), by));
        scene
    }

    fn execute(&mut self, verb: Verb, subject: Subject) -> Reply {
        let command = Command { verb, fence: None, subject: Arc::new(subject) };
        let (now, said) = (Instant::from_origin(Duration::from_secs(self.seconds)), &mut self.said);
        let mut publish = |_: &str, wakeup: Wakeup| {
            said.push((wakeup.subject.token, wakeup.notice));
            1
        };
        self.state.execute(now, &command, &mut publish).0
    }

    fn ask(&mut self, verb: Verb, mode: Mode, token: OwnerToken) -> Reply {
        self.execute(verb, Subject::new(KEY.into(), token).of_mode(mode))
    }

    fn enter(&mut self, token: OwnerToken, by: OwnerToken) -> Reply {
        let other = Some(Box::new(by));
        self.execute(ENTER, Subject { other, ..Subject::new(KEY.into(), token).of_mode(Mode::Permit) })
    }
}

fn others(reply: &Reply) -> &[OwnerToken] {
    let Reply::Entered { others, strangers: 0, .. } = reply else { panic!("{reply:?}") };
    others
}

#[test]
fn permit_requires_the_admission_lock() {
    let [by, next, one, two] = tokens();
    let mut scene = Scene::of(by);
    assert_eq!(others(&scene.enter(one, by)), []);
    assert_eq!(scene.enter(two, next), Reply::NotOwner);
    // A command under the admission lock restarts its lease.
    scene.seconds += 4;
    assert_eq!(others(&scene.enter(two, by)), [one]);
    scene.seconds += 4;
    assert_eq!(others(&scene.enter(one, by)), [two]);
    scene.seconds += 6;
    assert_eq!(scene.enter(one, by), Reply::NotOwner, "somebody else may have it by now");
}

#[test]
fn permit_release_notifies_the_admission_holder() {
    let [by, one, reader] = tokens();
    let mut scene = Scene::of(by);
    scene.enter(one, by);
    scene.ask(TRY, Mode::Shared, reader);
    assert_eq!(scene.ask(RELEASE, Mode::Shared, reader), Reply::Released);
    assert_eq!(scene.said, [], "a reader has no permit");
    assert_eq!(scene.ask(RELEASE, Mode::Permit, one), Reply::Released);
    assert_eq!(scene.said, [(by, Notice::Freed)]);
    assert_eq!(scene.ask(RELEASE, Mode::Permit, one), Reply::NotOwner);
    assert_eq!(scene.said.len(), 1, "once");
}

#[test]
fn permit_does_not_overtake_a_waiting_writer() {
    let [by, one, alone, late] = tokens();
    let mut scene = Scene::of(by);
    scene.enter(one, by);
    assert!(matches!(scene.ask(ACQUIRE, Mode::Exclusive, alone), Reply::Queued { .. }));
    assert_eq!(scene.enter(late, by), Reply::Taken);
    assert_eq!(others(&scene.enter(one, by)), [], "who has one keeps it");
    scene.ask(RELEASE, Mode::Permit, one);
    assert_eq!(scene.enter(late, by), Reply::Taken, "the lock was handed over");
}

#[test]
fn exclusive_holder_is_notified_of_a_permit_request() {
    let [by, one, alone, next] = tokens();
    let mut scene = Scene::of(by);
    scene.ask(TRY, Mode::Exclusive, alone);
    assert_eq!(scene.enter(one, by), Reply::Taken);
    assert_eq!(scene.said, [(alone, Notice::Contended { by: one })]);
    assert_eq!(scene.enter(one, next), Reply::NotOwner);
    assert_eq!(scene.said.len(), 1, "not of one that may not enter");
}

#[test]
fn readers_count_as_permits_and_intents_and_reservations_do_not() {
    let [by, one, reader, below, waiting] = tokens();
    let mut scene = Scene::of(by);
    scene.ask(TRY, Mode::Shared, reader);
    let set = |class, token| {
        let parts = [Part::new(KEY.into(), class), Part::new("export/a".into(), Class::Shared)];
        Subject::of(&Parts::of(parts).unwrap(), token)
    };
    assert!(matches!(scene.execute(TRY, set(Class::IntentShared, below)), Reply::Granted { .. }));
    // The token waits for the other name, and reserves this one.
    let alone = tokens::<1>()[0];
    scene.execute(RELEASE, set(Class::IntentShared, below));
    scene.execute(TRY, Subject::new("export/a".into(), alone));
    assert!(matches!(scene.execute(ACQUIRE, set(Class::IntentShared, waiting)), Reply::Queued { .. }));
    assert_eq!(others(&scene.enter(one, by)), [reader]);
    scene.execute(RELEASE, Subject::new("export/a".into(), alone));
    assert!(matches!(scene.execute(ACQUIRE, set(Class::IntentShared, waiting)), Reply::Granted { .. }));
    assert_eq!(others(&scene.enter(one, by)), [reader]);
}
