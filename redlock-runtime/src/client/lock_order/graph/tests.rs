use super::*;
use crate::error::SourceLine;

fn step(line: u32) -> OrderStep {
    OrderStep { taken_at: SourceLine::new("held.rs", line), asked_at: SourceLine::new("asked.rs", line) }
}

fn lock(name: &str) -> Taken<'_> {
    let (template, _) = name.split_once(':').unwrap_or((name, ""));
    Taken { kind: Kind::of_template(template), name }
}

/// Returns for each of `orders`, which are all recorded, the lines of the contradicting steps. An order is the gates,
/// the held lock and the requested one, separated by blanks.
fn contradicted(orders: &[&str]) -> Vec<Option<Vec<u32>>> {
    let mut graph = Graph::default();
    let added = (1..).zip(orders).map(|(line, order)| {
        let names: Vec<_> = order.split(' ').collect();
        let [gates @ .., held, asked] = names.as_slice() else { panic!("{order}") };
        let gates = gates.iter().map(|gate| Arc::from(*gate)).collect();
        let steps = graph.look(&lock(held), &lock(asked), (step(line), gates), true);
        steps.map(|steps| steps.iter().map(|step| step.asked_at.line()).collect())
    });
    added.collect()
}

#[test]
fn contradicting_lock_orders_are_found() {
    // Orders of acquisition, one after the other, and the numbers of the steps that contradict the last one.
    let table: [(&[&str], Option<&[u32]>); 18] = [
        (&["a b"], None),
        (&["a b", "b a"], Some(&[1])),
        (&["a b", "b c", "a c"], None),
        (&["a b", "b c", "c a"], Some(&[1, 2])),
        (&["a b", "c d", "b c", "d a"], Some(&[1, 3, 2])),
        (&["a b", "b a", "b a"], None),
        (&["a b", "b a", "a b"], None),
        // With a common third lock.
        (&["g a b", "g b a"], None),
        (&["g a b", "h b a"], Some(&[1])),
        (&["g a b", "h g b a"], None),
        (&["g a b", "b a"], Some(&[1])),
        (&["g a b", "g b a", "a b"], Some(&[2])),
        (&["g a b", "g b c", "c a"], None),
        // Of one kind.
        (&["a:1 a:2", "a:2 a:3"], None),
        (&["a:1 a:2", "a:3 a:2"], Some(&[1])),
        (&["g a:1 a:2", "g a:3 a:2"], None),
        // By numbers, and by letters.
        (&["a:1 a:2", "a:9 a:10"], None),
        (&["a:1 a:2", "a:10 a:9"], None),
    ];
    for (orders, expected) in table {
        let found = contradicted(orders);
        assert_eq!(found.last().unwrap().as_deref(), expected, "{orders:?}");
    }
}

#[test]
fn contradicting_lock_order_is_reported_once() {
    let reports = |orders: &[&str]| contradicted(orders).into_iter().flatten().count();
    assert_eq!(reports(&["a b", "b a", "b a", "a b", "b a"]), 1);
    assert_eq!(reports(&["a:1 a:2", "a:2 a:1", "a:1 a:2", "a:2 a:1"]), 1);
}

#[test]
fn contradicting_call_is_refused_every_time() {
    let mut graph = Graph::default();
    let mut add = |held: &str, asked: &str| {
        let mut look = |is_noted| graph.look(&lock(held), &lock(asked), (step(1), Gates::new()), is_noted).is_some();
        look(false) || look(true)
    };
    assert!(!add("a", "b"));
    assert!(add("b", "a") && add("b", "a"));
    assert!(!add("a", "b"), "the order that was there first is right");
    assert!(!add("c:1", "c:2"));
    assert!(add("c:2", "c:1") && add("c:2", "c:1"));
    assert!(!add("c:1", "c:2"));
}

#[test]
fn template_kind_ignores_placeholder_names() {
    let kinds = ["order:{id}", "order:{order.id}", "order:{}"].map(Kind::of_template);
    assert!(kinds.iter().all(|kind| *kind == Kind::Template("order:{}".into())), "{kinds:?}");
    assert_ne!(Kind::of_template("order:{id}"), Kind::of_template("order:{id}:{line}"));
}

#[test]
fn call_sites_are_distinguished_up_to_a_limit() {
    let mut graph = Graph { calls: MOST_CALLS - 1, ..Graph::default() };
    let calls = [Location::caller(), Location::caller()].map(Kind::Call);
    assert!(graph.number(&calls[0]).is_some());
    assert!(graph.number(&calls[1]).is_none());
    assert!(graph.number(&calls[0]).is_some() && graph.number(&Kind::of_template("a")).is_some());
}
