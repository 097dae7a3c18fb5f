//! The network between the processes and their servers: a proxy in front of each cluster member, Sentinel and watched server.
//!
//! Servers announce their own addresses. The parameter `map` of the URL maps each announced address to its proxy, so that all traffic of
//! the
//! processes goes through proxies. The first proxy is reached by its IP address, and the other ones by a host name.

use super::dice::Dice;
use super::pause;
use redlock_tests::{NameService, Proxy, RedisServer};
use std::ffi::OsString;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Longest wait for a lookup while lookups are slow or fail. Too short: the fault is over before a process connects. Too long: fewer
/// faults.
const LOOKUP: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(10);

pub(super) struct Network {
    /// Announced port of each server, and its proxy.
    proxies: Vec<(u16, Proxy)>,
    names: NameService,
}

impl Network {
    pub(super) async fn in_front_of(servers: impl IntoIterator<Item = &RedisServer>) -> Self {
        let mut proxies = Vec::new();
        for server in servers {
            proxies.push((server.port(), Proxy::to(server).await));
        }
        Self { proxies, names: NameService::start() }
    }

    /// Returns the address at which processes reach server number `index`.
    pub(super) fn address(&self, index: usize) -> String {
        let host = if index == 0 { "127.0.0.1" } else { "localhost" };
        format!("{host}:{}", self.proxies[index].1.address().port())
    }

    /// Returns the parameters of a URL that map all announced addresses.
    pub(super) fn maps(&self) -> String {
        let map = |(index, (port, _)): (usize, &(u16, _))| format!("map=127.0.0.1:{port}/{}", self.address(index));
        self.proxies.iter().enumerate().map(map).collect::<Vec<_>>().join("&")
    }

    /// Returns the environment variables for the processes.
    pub(super) fn variables(&self) -> Vec<(&'static str, OsString)> {
        self.names.variables().into()
    }

    /// Returns the number of lookups that were delayed or have failed.
    pub(super) fn disturbed_lookups(&self) -> u64 {
        self.names.disturbed()
    }

    /// Injects one fault and heals it. Returns its name.
    pub(super) async fn trouble(&self, dice: &mut Dice) -> &'static str {
        let one = dice.below(self.proxies.len());
        let targets = if dice.below(6) == 0 { &self.proxies[..] } else { &self.proxies[one..=one] };
        let targets: Vec<_> = targets.iter().map(|(_, proxy)| proxy).collect();
        match dice.below(16) {
            0..5 => silence(&targets, dice).await,
            5..8 => forget(&targets),
            8 => cut(&targets).await,
            9..12 => refuse(&targets, dice).await,
            12..15 => self.disturb_names(false, dice).await,
            _ => self.disturb_names(true, dice).await,
        }
    }

    /// Makes lookups slow or fail, and resets all connections, so that processes reconnect meanwhile.
    async fn disturb_names(&self, fails: bool, dice: &mut Dice) -> &'static str {
        // The longest delay exceeds the `connect_timeout`.
        let delay = Duration::from_millis([20, 400, 3000][dice.below(3)]);
        let before = self.names.disturbed();
        if fails {
            self.names.fail(delay);
        } else {
            self.names.delay(delay);
        }
        for (_, proxy) in &self.proxies {
            proxy.cut().await;
        }
        let looked_up = async {
            while self.names.disturbed() == before {
                sleep(LOOK_EVERY).await;
            }
        };
        let _ = timeout(LOOKUP, looked_up).await;
        sleep(pause(dice)).await;
        self.names.recover();
        if fails { "names failing" } else { "names slow" }
    }
}

/// Delivers nothing, or only requests, for a while. Then everything arrives late, or the connections are reset, or they are forgotten.
async fn silence(proxies: &[&Proxy], dice: &mut Dice) -> &'static str {
    let loses_replies = dice.below(3) == 0;
    let all = |order: fn(&Proxy)| proxies.iter().for_each(|proxy| order(proxy));
    all(if loses_replies { Proxy::drop_replies } else { Proxy::hold });
    sleep(pause(dice)).await;
    match dice.below(3) {
        // A connection that has lost bytes must not deliver later ones.
        0 if !loses_replies => {}
        1 => all(Proxy::forget),
        _ => {
            cut(proxies).await;
        }
    }
    all(Proxy::pass);
    "silent"
}

/// Drops all later bytes of the present connections without closing them. New connections work.
fn forget(proxies: &[&Proxy]) -> &'static str {
    for proxy in proxies {
        proxy.forget();
    }
    "connections forgotten"
}

async fn cut(proxies: &[&Proxy]) -> &'static str {
    for proxy in proxies {
        proxy.cut().await;
    }
    "cut"
}

/// Resets all connections, and refuses new ones for a while.
async fn refuse(proxies: &[&Proxy], dice: &mut Dice) -> &'static str {
    for proxy in proxies {
        proxy.refuse(true).await;
        proxy.cut().await;
    }
    sleep(pause(dice)).await;
    for proxy in proxies {
        proxy.refuse(false).await;
    }
    "connections refused"
}
