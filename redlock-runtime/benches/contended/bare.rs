//! Hand-off without a client: blocking sockets send the commands, and a thread waits for the message.
//!
//! The measured time is that of the kernel and the server, so it is a lower bound for every client. The waiting thread
//! is in this process; the kernel wakes it like a thread of another process.

use crate::moment;
use crate::plan::settle;
use crate::wire::{Wire, command};
use std::io::Read;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Commands that our release executes to hand a lock over.
const HAND_OVER: &str = "
if redis.call('GET', KEYS[1]) == ARGV[1] then
  local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
  redis.call('ZREM', KEYS[2], ARGV[1])
  local begun = redis.call('TIME')
  redis.call('SET', KEYS[1], first, 'PX', ARGV[2])
  redis.call('PUBLISH', ARGV[3], first .. begun[1] .. begun[2])
  redis.call('ZREM', KEYS[2], first)
  return 1
end
return 0";
const KEY: &str = "bench:bare";
const QUEUE: &str = "{bench:bare}:queue";
const CHANNEL: &str = "bench:bare:waiter";
/// Token of the same length as ours.
const HOLDER: &str = "0123456789abcdef-0123456789abcdefghijklm-0123456789abcdefghi";
const WAITER: &str = "1123456789abcdef-0123456789abcdefghijklm-0123456789abcdefghi";

/// Connection of the holder, and the channel from the waiting thread.
pub(crate) struct Bare {
    holder: Wire,
    digest: String,
    woken: Receiver<Duration>,
}

impl Bare {
    pub(crate) fn connect(url: &str) -> Self {
        let mut holder = Wire::connect(url);
        let digest = holder.load(HAND_OVER);
        let (wake, woken) = channel();
        let waiter = subscribed(url);
        std::thread::spawn(move || wait(waiter, &wake));
        Self { holder, digest, woken }
    }

    /// Measures the time from sending the release to receiving the message in the waiter.
    pub(crate) async fn timed(&mut self) -> Duration {
        self.holder.send(&command(&["SET", KEY, HOLDER, "PX", "30000"]));
        self.holder.send(&command(&["ZADD", QUEUE, "0", WAITER]));
        self.holder.settle();
        settle().await;
        let released = moment::now();
        self.holder.send(&command(&["EVALSHA", &self.digest, "2", KEY, QUEUE, HOLDER, "1000", CHANNEL]));
        let woken = self.woken.recv().expect("the waiter lives");
        self.holder.settle();
        woken.saturating_sub(released)
    }
}

/// Connects and subscribes to the channel of the hand-off.
fn subscribed(url: &str) -> Wire {
    let mut waiter = Wire::connect(url);
    waiter.send(&command(&["SUBSCRIBE", CHANNEL]));
    let mut confirmation = [0; 256];
    let length = waiter.socket.read(&mut confirmation).expect("it answers");
    assert!(length > 0, "the server has hung up");
    waiter
}

/// Reports the arrival time of each message, until the server closes the connection.
fn wait(mut waiter: Wire, wake: &Sender<Duration>) {
    let mut message = [0; 512];
    while waiter.socket.read(&mut message).is_ok_and(|length| length > 0) && wake.send(moment::now()).is_ok() {}
}
