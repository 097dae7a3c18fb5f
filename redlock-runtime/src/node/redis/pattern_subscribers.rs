//! Clients that subscribe to a pattern which matches the channels of locks, such as `PSUBSCRIBE *` of a monitoring program.
//!
//! `PUBLISH` includes them in its number of receivers. A waiter whose process has ended would look alive, and its claim would keep the lock
//! for a second.
//!
//! 1. Together with each comparison of settings, an empty text is published on a channel to which no client subscribes by its name. All of
//!    its receivers are pattern subscribers. In contrast to `PUBSUB NUMPAT`, this needs no further permission, and counts only patterns
//!    that match.
//! 2. If there are any, the connection calls scripts that subtract them from the receivers of each message (`lua/notify.lua`). These are
//!    loaded once. Other connections keep the scripts that publish once.
//! 3. A later pattern subscription is found within 20 s. Before that, a dead waiter costs a second.

use super::live_connection::LiveConnection;
use super::script::Scripts;

/// Counts the pattern subscribers, and loads the scripts that subtract them.
pub(super) async fn count(live: &LiveConnection) {
    let channel = [&*live.own_channel(), "-"].concat();
    // A user without the permission to publish sends no wake-ups.
    let Ok(received) = live.probe(&["PUBLISH", &channel, ""]).await else { return };
    let number: u64 = redis::from_redis_value(received).unwrap_or_default();
    if number > 0 && !live.has_scripts_with_patterns() {
        // The next count tries again.
        let Some(scripts) = scripts(live).await else { return };
        live.load_scripts_with_patterns(scripts);
    }
    live.set_pattern_subscribers(number);
}

/// Loads the scripts that subtract pattern subscribers. If the server does not load one of them, they are sent with each command.
async fn scripts(live: &LiveConnection) -> Option<Scripts> {
    let channels = live.channels().with_patterns();
    if !live.stores_scripts() {
        return Some(Scripts::unloaded(channels));
    }
    let loading: Vec<_> = Scripts::SOURCES
        .iter()
        .map(|(_, source)| live.probe(&["SCRIPT", "LOAD", &channels.in_script(source)]))
        .collect();
    for loaded in loading {
        if loaded.await.is_err() {
            return Some(Scripts::unloaded(channels));
        }
    }
    let mut digests = Scripts::digests(&channels).into_iter();
    Scripts::loaded(channels, || digests.next().ok_or(())).ok()
}
