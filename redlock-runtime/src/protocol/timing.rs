//! Durations of the protocol, in one place.
//!
//! Each constant states the consequences of a smaller and of a larger value. The durations that a user can set (ttl,
//! wait, node timeout, drift) are in `request`. [`lease`](super::lease) calculates lease ends from these constants.

use std::time::Duration;

// --- Leases -------------------------------------------------------------------------------------------------------

/// Time subtracted from every lease for the rounding of expiries: Redis expires keys to the millisecond, on both sides
/// of the measurement. Smaller: a lease could count as held just after its key has expired. Larger: short leases are
/// lost.
pub(crate) const EXPIRY_PRECISION: Duration = Duration::from_millis(2);

/// Longest allowed `ttl`. Longer: a lock that a crashed process left behind would need an operator instead of a lease.
pub(crate) const MAX_TTL: Duration = Duration::from_secs(30 * 24 * 3600);

/// Smallest useful rest of a lease, as a fraction of the `ttl` (1/20). A body does not begin with less. Smaller: bodies
/// are stopped right after they begin. Larger: slow replies turn good acquisitions into failures.
pub(crate) const LEAST_USEFUL_PER_TTL: u32 = 20;

/// Rest of the `ttl` (1/4) above which a lock passes to the next local call unchanged; below it, the lock is extended
/// first. Smaller: the next body may lose the lock before the first renewal. Larger: more commands.
pub(crate) const PASSABLE_PER_TTL: u32 = 4;

// --- Waiting ------------------------------------------------------------------------------------------------------

/// Longest lease of an admission lock. Smaller: a call that waits for a permit renews the admission lock more often. Larger: a
/// process that dies in the admission lock blocks the others for longer.
pub(crate) const TURN: Duration = Duration::from_secs(5);

/// Divisor of the admission lock lease that gives the interval of the questions of a waiting call. Smaller: a lost question
/// may end the turn. Larger: more questions.
pub(crate) const QUESTIONS_PER_TURN: u32 = 3;

/// Lifetime of a claim, unless the `ttl` is shorter. Smaller than the worst round trip: a waiter loses a granted node
/// before it can confirm the grant. Larger: a waiter that dies at that moment blocks the others for longer.
pub(crate) const CLAIM: Duration = Duration::from_secs(1);

/// Fraction of a claim after which the waiter asks the node whether the claim still exists. Smaller: needless commands.
/// At 1: the claim may be gone before the question arrives.
pub(crate) const RECHECK_PER_CLAIM: f64 = 0.9;

/// Rest of a claim (1/4) that proven claims must have so that a body can begin on them while their extensions are in
/// flight. Smaller: a slow reply stops the body. Larger: the body waits for replies without need.
pub(crate) const ENTERABLE_PER_CLAIM: u32 = 4;

/// Time for which a body runs on proven claims before they are confirmed. Smaller: more bodies cost a command that they
/// do not need. Larger: a body depends for longer on claims that a restarted server may have forgotten.
pub(crate) const CONFIRM_AFTER: Duration = Duration::from_millis(4);

/// Divisor of the ttl that gives the time of the first check of a lock. At 3 or smaller: a lock could be renewed late.
/// Larger: more checks that find nothing due.
pub(crate) const LOOKS_PER_TTL: u32 = 8;

/// Divisor of the rest of the claims that gives the next check of a lock that depends on claims (an eighth). The check
/// processes the replies to their extensions; calls that watch for the approaching end of the lease check at this
/// interval as well. At 1: the replies are read when the lock is already lost. Smaller: the approaching end is noticed
/// late. Larger: checks that find nothing.
pub(crate) const LOOKS_PER_CLAIM: u32 = 8;

/// Time before the end of a permit's lease at which its manager examines outstanding replies for the last time: this
/// part of the `ttl` (1/16), or the node timeout. Larger numbers: a busy machine looks too late. Smaller: replies that
/// arrive after the check are missed.
pub(crate) const LAST_LOOK_PER_TTL: u32 = 16;

/// Lifetime of a queue on a node after the last waiter was heard of. Smaller than a few polls: live waiters would lose
/// their places. Larger: entries of dead processes stay for longer if no release hands the lock over.
pub(crate) const QUEUE_EXPIRY: Duration = Duration::from_secs(30);

/// Silence after which a waiting token no longer keeps readers from a lock that it cannot have yet, because its process
/// may be frozen. Smaller than a few polls: live waiters sometimes lose their places. Larger: a frozen process keeps
/// others out for longer.
pub(crate) const SILENT_AFTER: Duration = Duration::from_secs(3);

/// Time for which a free name is reserved, against a plain `SET`, for a token that waits for several names. Smaller
/// than a poll: the name is free in between. Larger: a dead process keeps other programs out for longer.
pub(crate) const RESERVED: Duration = Duration::from_secs(2);

/// Interval after which a waiting token asks every node again, in case all wake-ups were lost. Smaller: this becomes
/// polling. Larger: a lock that another program has deleted stays unnoticed for longer.
pub(crate) const POLL: Duration = Duration::from_secs(1);

/// Number of retries of a call for several keys before it joins their queues. Fewer: for the sake of a short body, the
/// call blocks the free keys and costs the nodes much more. More: the call joins the queues of long-held keys late.
pub(crate) const TRIES_BEFORE_THE_QUEUES: u32 = 24;
/// Approximate pause before the first retry; it doubles up to `LONGEST_PAUSE_OF_TRIES`. Shorter: retries that cannot
/// succeed. Longer: free keys stay unused.
pub(crate) const PAUSE_OF_TRIES: Duration = Duration::from_millis(1);
pub(crate) const LONGEST_PAUSE_OF_TRIES: Duration = Duration::from_millis(4);
/// Time limit for all of these retries, whatever the distance of the nodes. Shorter: the effect of fewer retries.
/// Longer: the effect of more.
pub(crate) const LONGEST_TRYING: Duration = Duration::from_millis(100);
/// Every n-th retry asks all nodes at once; the others ask one node first. Smaller: competing requests split the votes
/// of the nodes. Larger: one node that has kept a stale lock blocks all requests for longer.
pub(crate) const TRIES_FOR_ONE_AT_ALL: u32 = 4;

/// Pause before a node is asked again that refused or could not be reached. Smaller: a busy loop against a server that
/// is down. Larger: a server that is back is used later.
pub(crate) const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// Time after which the key of a holder has certainly expired: Redis and our timers count whole milliseconds. Smaller:
/// waiters ask a moment too early and wait for the next poll.
pub(crate) const EXPIRY_MARGIN: Duration = Duration::from_millis(5);

/// Delay for each place in the queue before a waiter asks for the lock of a crashed holder, so that the first waiter
/// meets no crowd. Smaller: waiters collide. Larger: if the first waiter is also dead, the next one notices late.
pub(crate) const PER_RANK: Duration = Duration::from_millis(30);
/// Largest rank that adds a delay, so that every waiter asks within 300 ms of the first.
pub(crate) const MOST_RANKS: u32 = 10;

/// Interval of the checks whether the wake-up channel is open, before a call joins a queue. Smaller: a busy loop.
/// Larger: the first wait of a manager begins later.
pub(crate) const LISTENING_PAUSE: Duration = Duration::from_millis(2);

/// Longest time for which a call with a time limit waits for unreachable servers, because its wait is meant for
/// holders. Smaller: a short network failure fails calls. Larger: calls hang when Redis is down.
pub(crate) const LONGEST_SILENCE: Duration = Duration::from_secs(1);

/// Age of a majority's votes after which all of them are confirmed again: half a claim. Smaller than a slow round trip:
/// nodes that answer at different times are never confirmed together. Larger: a step of a server's clock stays
/// unnoticed for longer.
pub(crate) const LONGEST_CONFIRMATION: Duration = Duration::from_millis(500);

// --- Holding ------------------------------------------------------------------------------------------------------

/// Divisor of the remaining lease that gives the time of the next renewal (a third of it), so that two renewals may
/// fail.
pub(crate) const RENEWALS_PER_LEASE: f64 = 3.0;
/// Spread of the first renewal, as a fraction of its pause. Smaller: locks that were acquired together are once renewed
/// in a burst. Larger: more short calls are renewed.
pub(crate) const FIRST_RENEWAL_SPREAD: f32 = 0.1;
/// Spread of the second renewal, and of one that follows a delayed renewal. Locks that were acquired or delayed
/// together are then not renewed together forever. Smaller: their renewals stay closer to each other. Larger: more
/// renewals of calls that end soon.
pub(crate) const RENEWAL_SPREAD: f32 = 2.0 / 3.0;
/// Part of the `ttl` (1/32) by which a renewal must be late to count as delayed together with others. Smaller: a merely
/// late renewal is spread again, which costs renewals. Larger: renewals that coincided stay together.
pub(crate) const HELD_UP_PER_TTL: u32 = 32;
/// Smallest distance of renewals, as a part of the `ttl`, however near the end is. Without it, a lease that cannot be
/// renewed ends in a busy loop (defect 12 of peers).
pub(crate) const MOST_RENEWALS_PER_TTL: u32 = 30;
/// Smallest absolute distance of renewals, for a very short `ttl`. Smaller: a busy loop. Larger: a very short lease has
/// fewer attempts.
pub(crate) const CLOSEST_RENEWALS: Duration = Duration::from_millis(10);

// --- Breaking -----------------------------------------------------------------------------------------------------

/// Time that the holder of a broken lock has to notice and to stop before the breaking call returns. Smaller: slow
/// nodes and slowly stopping bodies look like bodies that do not stop. Larger: it takes longer to report a body that
/// does not stop.
pub(crate) const STOPPING: Duration = Duration::from_secs(5);

// --- Nodes --------------------------------------------------------------------------------------------------------

/// Divisor of the `ttl` that gives the default node timeout (1/50). It is short enough that a dead majority is noticed
/// long before a lease ends.
pub(crate) const NODE_TIMEOUTS_PER_TTL: u32 = 50;
/// Lower limit of the default node timeout: a healthy network and a busy server take some milliseconds.
pub(crate) const SHORTEST_NODE_TIMEOUT: Duration = Duration::from_millis(10);
/// Upper limit of the default node timeout, unless the nodes are further away: an acquisition with a dead majority
/// takes this long.
pub(crate) const LONGEST_NODE_TIMEOUT: Duration = Duration::from_millis(50);
/// Node timeout for distant nodes, in round trips. Smaller: a busy moment fails a lock. Larger: a dead majority is
/// noticed late.
pub(crate) const ROUND_TRIPS_PER_NODE_TIMEOUT: u32 = 4;
/// Upper limit of the node timeout for distant nodes, as a part of a claim (1/4). Within one claim a waiter must
/// confirm its grant, and must be asked again.
pub(crate) const NODE_TIMEOUTS_PER_CLAIM: u32 = 4;
/// Upper limit of the node timeout as a part of the `ttl` (1/10), so that a renewal succeeds in time after several
/// failures.
pub(crate) const LONGEST_NODE_TIMEOUT_PER_TTL: u32 = 10;
