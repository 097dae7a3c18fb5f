//! The rules of the protocol that look as if one could do without them.

/// A rule of the protocol that can be switched off, to see that a model notices. Each has the name that it has in the
/// runtime's `protocol/rules.rs`, where more rules stand that no model can notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A released token is never used again: its release may be executed late.
    ReleasedTokensAreDead,
    /// Whoever hands the lock to itself gets the ttl it asked for, not that of a claim.
    OwnTurnIsALease,
    /// Queues expire: nobody else removes the entries of dead processes.
    QueuesExpire,
    /// The holder hears of a waiter at every call: the first notice may be lost.
    HolderHearsOfEveryCall,
    /// An extension never creates the lock. No property here breaks without it: see the crate's documentation.
    ExtensionNeverCreates,
    /// Whoever adopts a lock takes the place of the token that it was left with, and does not go on with that one.
    AdopterReplaces,
    /// Whoever comes to wait marks the value of the holder: a release without the mark looks for nobody.
    WaitersMarkTheHolder,
    /// A hand-over marks the next holder while others remain in the queue.
    HandOverKeepsTheMark,
    /// Whoever adopts a lock takes its mark over.
    AdoptionKeepsTheMark,
    /// Only the owner gives a lock back.
    ReleaseChecksTheOwner,
    /// A claim is a vote and not a lease, unless it is proven: nobody knows when its expiry was set.
    ClaimIsNoLease,
    /// A claim is proven by the times of its server: it may be over when its announcement comes.
    ProofNeedsATime,
    /// A claim that is announced behind a yield proves nothing: the yield gives it away.
    YieldVoidsProof,
    /// What was granted before a yield does not count after it.
    YieldVoids,
    /// A yield waits for no other node.
    YieldAtOnce,
    /// A holder asks for the votes that it lacks: a lock on a bare majority is lost with the next node that fails.
    VotesAreWonBack,
    /// A waiter that has a node gives it to the token that holds the lock.
    WaitersYieldToTheHolder,
    /// A node whose yield was cut off never counts again for that token.
    CutYieldTaints,
    /// Releases are kept until they are answered, and sent again.
    ReleasesAreSeenThrough,
    /// Wake-ups about tokens that nobody has any more are answered by a release.
    UnknownTokensAreReleased,
    /// A lease is counted from when it was asked for, and ends before the key does.
    ValidityFromTheSend,
    /// All who share a lock hear of a waiter: each may have to give way.
    AllHoldersHear,
    /// Who leaves the queue lets those in who were behind it.
    LeavingUnblocks,
    /// Who cannot share a lock because of an earlier waiter asks after that one, and passes it over when it is gone.
    BlockersArePinged,
    /// Those who share a lock enter together.
    ReadersTogether,
    /// What is wanted below a name keeps those out who want all of it, and the other way round.
    IntentsKeepOut,
    /// A node that says that not all names are the token's is sent a release as well: it may have the others.
    PartsLeftAreReleased,
    /// What is shared by now is never had alone again by an extension that comes late.
    DowngradeNeverRises,
    /// A node accepts a ballot only if it is larger than all that it has accepted.
    BallotsOnlyRise,
    /// A node accepts the ballot for several names only if the registers of all of them do.
    EveryRegisterAccepts,
    /// A quorum has accepted the same ballot: the largest of different ones may have been accepted nowhere else.
    AcceptsAreOfOneRound,
    /// A ballot that was refused is no number, however many votes came with the refusals.
    RefusedIsNotIssued,
    /// What a node has accepted counts only together with the vote that came with it.
    AcceptsEndWithTheVote,
    /// A vote that is won back comes with the number of the token: the node may have lost its register.
    WonVotesCarryTheNumber,
    /// A node that has not accepted an agreed number is sent it: a node that has accepted it may lose its data.
    NodesLearnAgreedNumbers,
    /// What a node has told of those who have permits counts for as long as the turnstile provably is the token's there.
    RollsEndWithTheTurnstile,
    /// A vote for a permit is won back when a quorum has confirmed since that it still has it: somebody may have taken away what it
    /// counts on.
    VotersAreAskedFirst,
    /// What several nodes tell of those who have permits is put together: each of them knows of some only.
    ListsAreUnited,
}
