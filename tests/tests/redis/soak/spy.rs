//! A user of the same servers who may only read locks and publish messages. It forges wake-ups all the time.
//!
//! It forges no `claimed`, because this message can start a body up to a second early (see the page "Security").

use super::dice::Dice;
use super::worker::{KEYS, NUMBERED};
use redis::RedisResult;
use redis::aio::MultiplexedConnection;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Pause between two messages. Too short: the spy takes the time of the servers. Too long: too few messages.
const PAUSE: Duration = Duration::from_millis(10);
/// Timeout of an answer. Too short: a busy server is taken for a frozen one. Too long: fewer messages.
const PATIENCE: Duration = Duration::from_secs(2);
/// Number of managers that receive messages: the managers whose tokens were seen last.
const MANAGERS: usize = 6;

/// The spy at one server.
pub(super) struct Spy {
    port: u16,
    /// Prefix of the channels. The id of a manager follows.
    channels: String,
    dice: Dice,
    tokens: Vec<String>,
    heard: Arc<AtomicU64>,
}

impl Spy {
    /// Forges messages at each server until the set is dropped. `heard` counts the messages that a manager has received.
    pub(super) fn start(channels: Vec<(u16, String)>, dice: &mut Dice, heard: &Arc<AtomicU64>) -> JoinSet<()> {
        let spy = |(port, channels)| {
            let (dice, heard) = (Dice::new(dice.next()), Arc::clone(heard));
            Self { port, channels, dice, tokens: Vec::new(), heard }.run()
        };
        channels.into_iter().map(spy).collect()
    }

    async fn run(mut self) {
        let client = redis::Client::open(format!("redis://spy:spy@127.0.0.1:{}", self.port)).unwrap();
        loop {
            if let Ok(Ok(mut connection)) = timeout(PATIENCE, client.get_multiplexed_async_connection()).await {
                while let Ok(Ok(())) = timeout(PATIENCE, self.forge(&mut connection)).await {
                    sleep(PAUSE).await;
                }
            }
            sleep(10 * PAUSE).await;
        }
    }

    async fn forge(&mut self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        let keys: Vec<_> = KEYS.into_iter().chain(NUMBERED).collect();
        let key = keys[self.dice.below(keys.len())];
        // The key may be shared, or belong to another member.
        match redis::cmd("GET").arg(key).query_async::<Option<String>>(connection).await {
            Ok(Some(value)) => self.tokens.insert(0, value.trim_end_matches('+').to_owned()),
            Err(error) if error.is_unrecoverable_error() => return Err(error),
            _ => {}
        }
        self.tokens.truncate(MANAGERS);
        if self.tokens.is_empty() {
            return Ok(());
        }
        let [token, other] = [0, 1].map(|_| self.tokens[self.dice.below(self.tokens.len())].clone());
        let Some((_, manager)) = other.split_once('@') else { return Ok(()) };
        let message = self.message(&token, &other, manager, key);
        let channel = format!("{}{manager}", self.channels);
        let heard: u64 = redis::cmd("PUBLISH").arg(channel).arg(message).query_async(connection).await?;
        self.heard.fetch_add(heard, Ordering::Relaxed);
        Ok(())
    }

    /// Returns a message to `manager` about its own token, the token `other` of another manager, or an unknown token.
    fn message(&mut self, token: &str, other: &str, manager: &str, key: &str) -> String {
        let random = self.dice.next();
        let made_up = format!(
            "0198{:04x}-{:04x}-7000-8000-{:012x}@{manager}",
            random >> 48,
            random >> 32 & 0xffff,
            random & 0xffff_ffff
        );
        let about = [token, other, &made_up][self.dice.below(3)];
        match self.dice.below(16) {
            kind @ 0..8 => format!("{} {about} {key}", ["granted", "freed", "free", "busy"][kind % 4]),
            8..12 => format!("revoked {about} {made_up} {key}"),
            12..14 => format!("{} {about} {token} {key}", ["contended", "wanted"][self.dice.below(2)]),
            14 => format!("stopped {about} {key}"),
            _ => format!("granted {about} {}", "k".repeat(self.length())),
        }
    }

    /// Returns the length of a long message. The longest one cuts the connection on which it arrives.
    fn length(&mut self) -> usize {
        match self.dice.below(64) {
            0 => 1_500_000,
            1..4 => 200_000,
            _ => 3000,
        }
    }
}
