//! Temporary.
use redlock_model::lock::{Scenario, UNBOUNDED, Rule};
use redlock_model::search::{Limits, search};
fn main() {
    if std::env::args().nth(1).as_deref() == Some("fence") {
        use redlock_model::fencing::*;
        for (tokens, rounds, v) in [(2, 2, Variant::Protocol), (2,2,Variant::MaximumOfIncr), (2,2,Variant::NumberFromPush), (2,2,Variant::RaisesLeaveMaximum), (2,2,Variant::EarlierRoundCounts),(2, 3, Variant::Protocol), (3, 2, Variant::Protocol)] {
            let t = std::time::Instant::now();
            let o = search(&Fencing { tokens, rounds, variant: v }, Limits { states: 30_000_000, progress: false });
            println!("{tokens} {rounds} {v:?} {:.1?} {o}", t.elapsed());
        }
        return;
    }
    let mut s = Scenario::new(3, 2);
    let mut limit = 30_000_000;
    for a in std::env::args().skip(1) {
        let (k, v) = a.split_once('=').unwrap_or((&a, "255"));
        let n: u8 = v.parse().unwrap_or(0);
        match k {
            "nodes" => s.nodes = n.into(), "tokens" => s.tokens = n.into(), "fast" => s.fast = true,
            "exp" => s.expiries = n, "polls" => s.polls = n, "giveup" => s.give_up = true, "crash" => s.crashes = n,
            "cuts" => s.cuts = n, "frozen" => s.frozen = true, "free" => s.free = Some(n.into()), "succ" => s.successor = true,
            "limit" => limit = v.parse::<usize>().unwrap()*1_000_000,
            "rule" => s.without = [Rule::VoidOnYield, Rule::ClaimIsNoLease, Rule::TaintOnCutYield, Rule::OwnerCheckInRelease, Rule::ReleasesKept, Rule::TokensNeverReused, Rule::YieldAtOnce, Rule::UnknownPushReleased, Rule::CallersTtlInHand, Rule::ContendedEveryCall, Rule::QueueExpires, Rule::ExtendNeverCreates, Rule::LeaseFromSending].into_iter().find(|r| format!("{r:?}")==v),
            _ => panic!("{k}"),
        }
    }
    let _ = UNBOUNDED;
    let t = std::time::Instant::now();
    let o = search(&s, Limits { states: limit, progress: std::env::var("P").is_ok() });
    println!("{:?} {:.1?}\n{o}", std::env::args().skip(1).collect::<Vec<_>>(), t.elapsed());
}
