//! How long things take and last: the times of the protocol, in one place.
//!
//! Each says what breaks when it is smaller or larger. What a user can set (ttl, wait, node timeout, drift) is in
//! `request`; how lease ends are calculated from these is in [`lease`](super::lease).

use std::time::Duration;

// --- Leases -------------------------------------------------------------------------------------------------------

/// What is taken off every lease for the rounding of expiries: Redis expires keys to the millisecond, on both sides of
/// the measurement. Smaller, a lease could count as held when its key has just expired; larger, short leases are lost.
pub(crate) const EXPIRY_PRECISION: Duration = Duration::from_millis(2);

/// The longest `ttl`. Longer, a lock that is left behind by a crash would need a person and not a lease.
pub(crate) const MAX_TTL: Duration = Duration::from_secs(30 * 24 * 3600);

/// A lock with less than this part of its `ttl` left (one twentieth) is not worth entering a body for. Smaller, bodies are
/// stopped right after they begin; larger, slow answers turn good acquisitions into failures.
pub(crate) const LEAST_USEFUL_PER_TTL: u32 = 20;

/// A lock is passed on within a process as it is when more than this part of its `ttl` is left (a quarter), and extended
/// first otherwise. Smaller, the next body may lose it before the first renewal; larger, more commands.
pub(crate) const PASSABLE_PER_TTL: u32 = 4;

// --- Waiting ------------------------------------------------------------------------------------------------------

/// The longest lease of a turnstile. Smaller, and a call that waits for a permit renews it more often; larger, and one that dies
/// there keeps the others out for longer.
pub(crate) const TURN: Duration = Duration::from_secs(5);

/// Who waits for a permit in the turnstile asks again after this part of its lease. Smaller, and a question that is lost may end the
/// turn; larger, more questions.
pub(crate) const QUESTIONS_PER_TURN: u32 = 3;

/// The lifetime of a claim, for a `ttl` that is not shorter. Smaller than the worst round trip, a waiter would lose what
/// was handed to it before it could confirm; larger, a waiter that dies just then blocks the others for longer.
pub(crate) const CLAIM: Duration = Duration::from_secs(1);

/// After this part of a claim the node is asked whether it still stands. Smaller, needless commands; at 1, the claim may
/// be gone before the question arrives.
pub(crate) const RECHECK_PER_CLAIM: f64 = 0.9;

/// A body begins by claims that are proven for longer than this part of a claim (a quarter), while their extensions are on
/// their way. Smaller, it is stopped when an answer takes a while; larger, it waits for answers although it need not.
pub(crate) const ENTERABLE_PER_CLAIM: u32 = 4;

/// A lock that stands on claims is looked at after this part of what is left of them (an eighth): for the answers to their
/// extensions, and by whoever wants to know that its lease is nearly over. At 1, the answers are taken in when it is lost;
/// smaller, that it is nearly over is known late; larger, looks for nothing.
pub(crate) const LOOKS_PER_CLAIM: u32 = 8;

/// The last look at the answers that a node owes to the holder of a permit comes this part of the `ttl` (a sixteenth), or the
/// timeout of a node, before the lease ends. Larger numbers: a busy machine looks too late. Smaller: answers that come after the
/// look are missed.
pub(crate) const LAST_LOOK_PER_TTL: u32 = 16;

/// How long a waiting token stands in the queue of a node without being heard of. Smaller than a few polls, waiters that
/// live would lose their places; larger, the entries of dead processes stay for longer where nobody hands over.
pub(crate) const QUEUE_EXPIRY: Duration = Duration::from_secs(30);

/// A waiting token that was not heard of for so long does not keep others from sharing a lock that it cannot have yet: its
/// process may be frozen. Smaller than a few polls, waiters that live lose their places now and then; larger, a frozen process
/// keeps others out for longer.
pub(crate) const SILENT_AFTER: Duration = Duration::from_secs(3);

/// A name that could be had by a token which waits for others as well is kept for it for so long, against a plain `SET`. Smaller
/// than a poll, it is free in between; larger, a process that has died keeps other programs out for longer.
pub(crate) const RESERVED: Duration = Duration::from_secs(2);

/// A waiting token asks every node again after about this time, should all wake-ups have been lost. Smaller, it is polling;
/// larger, a lock that another program has deleted stays unnoticed for longer.
pub(crate) const POLL: Duration = Duration::from_secs(1);

/// How often a call for several keys that are taken tries again before it stands in their queues. Fewer, and it keeps others from the
/// free ones of its keys for a body that is over soon, at many times the cost for the nodes; more, and it comes late to the queues of
/// keys that are taken for long.
pub(crate) const TRIES_BEFORE_THE_QUEUES: u32 = 24;
/// About how long it pauses before the first of these tries, and twice as long before each further one, up to the longest. Shorter, and
/// the nodes say for nothing that somebody has a key; longer, and a free key is left alone.
pub(crate) const PAUSE_OF_TRIES: Duration = Duration::from_millis(1);
pub(crate) const LONGEST_PAUSE_OF_TRIES: Duration = Duration::from_millis(4);
/// These tries take no longer than this, however far away the nodes are. Shorter, as with fewer tries; longer, as with more.
pub(crate) const LONGEST_TRYING: Duration = Duration::from_millis(100);
/// One of so many of these tries asks all nodes at once, and the others one node first. Smaller, and those who want the same keys keep
/// the votes of the nodes from each other; larger, and a node that alone has kept a lock keeps out all for longer.
pub(crate) const TRIES_FOR_ONE_AT_ALL: u32 = 4;

/// When to ask again a node that refused, or that could not be asked. Smaller, a hot loop against a server that is down;
/// larger, a server that is back is used later.
pub(crate) const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// The key of a holder has expired for certain when it is this much over its time: Redis and our timers count whole
/// milliseconds. Smaller, waiters would ask a moment too early and wait for the next poll.
pub(crate) const EXPIRY_MARGIN: Duration = Duration::from_millis(5);

/// When a holder has crashed, its successors ask one after the other, by so much for each place in the queue, so that the
/// first one finds no crowd. Smaller, they meet; larger, the next one is slow to notice when the first is dead as well.
pub(crate) const PER_RANK: Duration = Duration::from_millis(30);
/// Ranks beyond this one add nothing, so that nobody asks later than 300 ms after the first.
pub(crate) const MOST_RANKS: u32 = 10;

/// How often to look whether the channel for wake-ups is open, before a place in a queue is asked for. Smaller, a hot
/// loop; larger, the first wait of a manager begins later.
pub(crate) const LISTENING_PAUSE: Duration = Duration::from_millis(2);

/// A caller with a limit does not wait for servers that are gone for longer than this: waiting is for holders. Smaller, a
/// short hiccup of the network fails calls; larger, calls hang when Redis is down.
pub(crate) const LONGEST_SILENCE: Duration = Duration::from_secs(1);

/// For how long the votes of a majority may stand before all of them are confirmed anew: half a claim. Smaller than a
/// slow round trip, nodes that answer at different times are never confirmed all together; larger, a step of a server's
/// clock in between stays unnoticed for longer.
pub(crate) const LONGEST_CONFIRMATION: Duration = Duration::from_millis(500);

// --- Holding ------------------------------------------------------------------------------------------------------

/// Renewals are asked for after this part of what was left of the lease the last time (a third), so that two may fail.
pub(crate) const RENEWALS_PER_LEASE: f64 = 3.0;
/// The first renewal is spread over the last tenth of its pause. Smaller, locks that were taken together are renewed in a
/// burst once; larger, more short calls are renewed.
pub(crate) const FIRST_RENEWAL_SPREAD: f32 = 0.1;
/// The next one, and one that follows a renewal that was held up, over so much of its pause, so that locks that were taken
/// together, or held up together, are not renewed together for ever. Smaller, they stay nearer to each other; larger, more
/// renewals of calls that are over soon.
pub(crate) const RENEWAL_SPREAD: f32 = 2.0 / 3.0;
/// A renewal that is later than this part of the `ttl` was held up, and others with it. Smaller, what is only late is spread
/// once more, which costs renewals; larger, what came together stays together.
pub(crate) const HELD_UP_PER_TTL: u32 = 32;
/// Renewals are not closer together than this part of the `ttl`, however near the end is. Without it, a lease that cannot
/// be renewed ends in a hot loop (defect 12 of peers).
pub(crate) const MOST_RENEWALS_PER_TTL: u32 = 30;
/// Nor than this, for a very short `ttl`. Smaller, a hot loop; larger, a very short lease has fewer tries.
pub(crate) const CLOSEST_RENEWALS: Duration = Duration::from_millis(10);

// --- Breaking -----------------------------------------------------------------------------------------------------

/// How long the holder of a lock that is broken may take to find out and to stop, until whoever breaks it goes away. Smaller,
/// nodes that are slow and bodies that stop slowly look like bodies that do not stop; larger, it takes as long to learn that a
/// body does not.
pub(crate) const STOPPING: Duration = Duration::from_secs(5);

// --- Nodes --------------------------------------------------------------------------------------------------------

/// The node timeout, where the user has set none, is this part of the `ttl` (a fiftieth): short enough that a dead
/// majority is noticed long before a lease runs out.
pub(crate) const NODE_TIMEOUTS_PER_TTL: u32 = 50;
/// It is never shorter than this: a healthy network and a busy server take some milliseconds.
pub(crate) const SHORTEST_NODE_TIMEOUT: Duration = Duration::from_millis(10);
/// Nor longer, unless the nodes are further away than that: an acquisition whose majority is dead takes as long.
pub(crate) const LONGEST_NODE_TIMEOUT: Duration = Duration::from_millis(50);
/// For nodes that are further away it is so many round trips. Smaller, a busy moment fails a lock; larger, a dead majority
/// is noticed late.
pub(crate) const ROUND_TRIPS_PER_NODE_TIMEOUT: u32 = 4;
/// However far they are, it is no longer than this part of a claim (a quarter), in which a waiter has to confirm what was
/// handed to it, and has to be asked again.
pub(crate) const NODE_TIMEOUTS_PER_CLAIM: u32 = 4;
/// Nor than this part of the `ttl` (a tenth), in which a renewal has to come in time after several that did not.
pub(crate) const LONGEST_NODE_TIMEOUT_PER_TTL: u32 = 10;
