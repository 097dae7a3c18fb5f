//! Draws the times of the faults of a run.

use super::faults::{Fault, Faults};
use super::network::Network;
use crate::time::clock::Instant;
use fastrand::Rng;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Kind of fault: largest number, and a function that draws a fault and its duration.
type Kind<'a> = (u32, &'a dyn Fn(&mut Rng) -> (Fault, Duration));

impl Faults {
    /// Plans all faults. Returns the end of the last one.
    pub(super) fn plan(&self, random: &mut Rng, network: &Network, max_ttl: Duration) -> Instant {
        let (clients, all, _) = network.world().sizes();
        let troubled = if self.is_minority { (all - 1) / 2 } else { all };
        let some_time = |random: &mut Rng| Duration::from_millis(random.u64(1..=self.longest.max(1)));
        // The clock of a server may be slow.
        let whole_lease = max_ttl + max_ttl / 50 + SECOND;
        let restart = |server, for_, wipes| Fault::Restart { server, for_, wipes };
        let of_clients: [Kind<'_>; 2] = [
            (self.pauses, &|random| {
                let for_ = some_time(random);
                (Fault::Pause { client: random.usize(0..clients), for_ }, for_)
            }),
            (self.crashes, &|random| (Fault::Crash { client: random.usize(0..clients) }, SECOND)),
        ];
        let of_servers: [Kind<'_>; 7] = [
            (self.cuts, &|random| {
                // Each manager has a connection to each server.
                let link = random.usize(0..clients) * all + random.usize(0..troubled);
                (Fault::Cut { link }, SECOND)
            }),
            (self.freezes, &|random| {
                let for_ = some_time(random);
                (Fault::Freeze { server: random.usize(0..troubled), for_ }, for_)
            }),
            (self.restarts, &|random| {
                let for_ = some_time(random);
                (restart(random.usize(0..troubled), for_, false), for_ + SECOND)
            }),
            (self.wipes, &|random| (restart(random.usize(0..troubled), whole_lease, true), whole_lease + SECOND)),
            (self.forgets, &|random| {
                let for_ = some_time(random);
                (restart(random.usize(0..troubled), for_, true), for_ + whole_lease)
            }),
            (self.thefts, &|random| theft(random, all, troubled)),
            (self.steps, &|random| {
                let most = if random.bool() { 2 * SECOND } else { max_ttl * 3 };
                let by = most.mul_f64(random.f64());
                (Fault::Step { server: random.usize(0..troubled), by }, SECOND)
            }),
        ];
        let promote = |server, loses| (Fault::Promote { server, loses }, whole_lease);
        let of_data: [Kind<'_>; 3] = [
            (self.replacements, &|random| (Fault::Replace { server: random.usize(0..troubled) }, whole_lease)),
            (self.promotions, &|random| promote(random.usize(0..troubled), true)),
            (self.fail_overs, &|random| promote(random.usize(0..troubled), false)),
        ];
        let of_breaks: [Kind<'_>; 4] = [
            (self.blocks, &|random| {
                let for_ = some_time(random);
                (Fault::Block { client: random.usize(0..clients), for_ }, for_)
            }),
            (self.lies, &|random| (Fault::Lie { key: random.usize(0..2), server: random.usize(0..all) }, SECOND)),
            (self.forgeries, &|random| {
                (Fault::Forge { key: random.usize(0..2), server: random.usize(0..all) }, SECOND)
            }),
            (self.poisons, &|random| {
                (Fault::Poison { key: random.usize(0..2), server: random.usize(0..troubled) }, SECOND)
            }),
        ];
        // Absent kinds draw nothing, so that seeds from before a new kind keep their meaning.
        let of_data = of_data.iter().chain(&of_breaks).filter(|(most, _)| *most > 0);
        let kinds = of_servers.iter().chain(of_data).filter(|_| troubled > 0).chain(&of_clients);
        let mut end = self.plan_restarts(random, network, max_ttl);
        for (most, draw) in kinds {
            for _ in 0..random.u32(0..=*most) {
                let at = network.now().after(Duration::from_millis(self.after + random.u64(0..=self.until)));
                let (fault, lasts) = draw(random);
                network.plan(at, fault);
                end = end.max(at.after(lasts));
            }
        }
        end
    }
}

impl Faults {
    /// Plans the restarts with fixed times. Returns the end of the last one.
    fn plan_restarts(&self, random: &mut Rng, network: &Network, max_ttl: Duration) -> Instant {
        let (clients, all, _) = network.world().sizes();
        if self.loses_the_numbered {
            return plan_loss_of_numbered(random, network, clients, all);
        }
        if self.rolls + self.blinks == 0 {
            return network.now();
        }
        // After this time, the first holder has its lock at all servers.
        let mut at = network.now().after(max_ttl + Duration::from_millis(random.u64(0..=self.until)));
        for roll in 0..self.rolls as usize {
            let for_ = Duration::from_millis(random.u64(1..=self.longest));
            network.plan(at, Fault::Restart { server: roll % all, for_, wipes: true });
            at = at.after(for_ + 2 * (max_ttl + max_ttl / 50));
        }
        for _ in 0..self.blinks {
            for server in 0..all {
                network.plan(at, Fault::Restart { server, for_: AWAY, wipes: false });
            }
            at = at.after(AWAY + THERE);
        }
        at
    }
}

/// Times for which blinking servers are unreachable, and reachable.
const AWAY: Duration = Duration::from_millis(1200);
const THERE: Duration = Duration::from_millis(900);

/// Plans that only a server that missed the numbers at first knows them, see [`Faults::loses_the_numbered`].
fn plan_loss_of_numbered(random: &mut Rng, network: &Network, clients: usize, all: usize) -> Instant {
    let (start, first) = (network.now(), random.usize(0..all));
    let [missing, forgetting, away] = [0, 1, 2].map(|next| (first + next) % all);
    let restart = |server, seconds, wipes| Fault::Restart { server, for_: SECOND * seconds, wipes };
    network.plan(start.after(Duration::from_millis(random.u64(0..100))), restart(missing, 8, false));
    // The missing server has returned long enough ago to learn the numbers.
    (0..clients).for_each(|client| network.plan(start.after(12 * SECOND), Fault::Crash { client }));
    network.plan(start.after(13 * SECOND), restart(forgetting, 1, true));
    network.plan(start.after(13 * SECOND), restart(away, 20, false));
    start.after(34 * SECOND)
}

/// Draws a theft at some of the servers.
fn theft(random: &mut Rng, all: usize, troubled: usize) -> (Fault, Duration) {
    let overwritten_for = random.bool().then(|| Duration::from_millis(random.u64(1..1000)));
    let first = if troubled < all { 0 } else { random.usize(0..all) };
    let servers = random.usize(1..=troubled);
    (Fault::Theft { key: random.usize(0..2), first, servers, overwritten_for }, 2 * SECOND)
}
