//! Rules of the protocol that look optional but are required.

/// Rule of the protocol that can be switched off, to check that a model notices it. Each rule has its name from the
/// runtime's `protocol/rules.rs`, which also contains rules that no model can notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A released token is never used again, because its release may be executed late.
    ReleasedTokensAreDead,
    /// A token that hands the lock to itself gets its requested ttl, instead of that of a claim.
    OwnTurnIsALease,
    /// Queues expire: only the expiry removes the entries of dead processes.
    QueuesExpire,
    /// The holder is notified of a waiter at every call, because the first notice may be lost.
    HolderHearsOfEveryCall,
    /// An extension never creates the lock. No property here breaks without it: see the crate's documentation.
    ExtensionNeverCreates,
    /// An adopter replaces the detached token, instead of using that token itself.
    AdopterReplaces,
    /// A new waiter marks the value of the holder: a release without the mark does not look for waiters.
    WaitersMarkTheHolder,
    /// A hand-over marks the next holder while others remain in the queue.
    HandOverKeepsTheMark,
    /// An adopter keeps the mark of the lock.
    AdoptionKeepsTheMark,
    /// Only the owner can release a lock.
    ReleaseChecksTheOwner,
    /// A claim is a vote and not a lease, unless it is proven, because the client does not know when its expiry was set.
    ClaimIsNoLease,
    /// A claim is proven by the times of its server: it may be over when its announcement arrives.
    ProofNeedsATime,
    /// A claim that is announced behind a yield proves nothing, because the yield gives it away.
    YieldVoidsProof,
    /// A grant from before a yield is void after it.
    YieldVoids,
    /// A yield does not wait for other nodes.
    YieldAtOnce,
    /// A holder asks for missing votes. Otherwise a lock on a bare majority is lost with the next failed node.
    VotesAreWonBack,
    /// A waiter that owns a node gives it to the token that holds the lock.
    WaitersYieldToTheHolder,
    /// A node whose yield was cut off never counts again for that token.
    CutYieldTaints,
    /// Releases are kept until they are answered, and sent again.
    ReleasesAreSeenThrough,
    /// Wake-ups about unknown tokens are answered by a release.
    UnknownTokensAreReleased,
    /// A lease counts from the time of its request, and ends before the key does.
    ValidityFromTheSend,
    /// All holders of a shared lock are notified of a waiter, because each may have to yield.
    AllHoldersHear,
    /// A waiter that leaves the queue lets the waiters behind it enter.
    LeavingUnblocks,
    /// A reader that only an earlier waiter blocks pings that waiter, and skips it if it is gone.
    BlockersArePinged,
    /// Readers enter together.
    ReadersTogether,
    /// A request below a name blocks requests for all of the name, and the other way round.
    IntentsKeepOut,
    /// A node that does not have all names for the token also receives a release, because it may have some of them.
    PartsLeftAreReleased,
    /// A late extension never makes a shared lock exclusive again.
    DowngradeNeverRises,
    /// A node accepts a ballot only if it is larger than all that it has accepted.
    BallotsOnlyRise,
    /// A node accepts the ballot for several names only if the registers of all of them do.
    EveryRegisterAccepts,
    /// A quorum must accept the same ballot, because the largest of different ballots may have been accepted by one node only.
    AcceptsAreOfOneRound,
    /// A refused ballot is not a number, however many votes came with the refusals.
    RefusedIsNotIssued,
    /// An accepted ballot counts only together with the vote that came with it.
    AcceptsEndWithTheVote,
    /// A request for a missing vote carries the number of the token, because the node may have lost its register.
    WonVotesCarryTheNumber,
    /// A node that has not accepted an agreed number receives it, because a node that has accepted it may lose its data.
    NodesLearnAgreedNumbers,
    /// A node that returns with other data is taught the known numbers, because its register may be lost.
    ReturningNodesLearnNumbers,
    /// A number that no clock explains counts only if a quorum returns it. One damaged register must not raise the others.
    FarNumbersNeedAQuorum,
    /// A message about a token of another process is ignored. Acting on it would change a lock of that process.
    ForeignTokensAreIgnored,
    /// A node whose script failed is sent a release, because the script may have written before.
    FailedScriptsAreReleased,
    /// If a node that abstains has not proven a lease before, its extension proves nothing.
    FindingProvesNothing,
    /// A server with other data may have forgotten leases, even if its process is the same.
    ReplacedDataIsForgotten,
    /// A promoted replica abstains from its promotion on, because the time of the last grant by its old master is unknown.
    PromotionsAreNoRestarts,
    /// A server abstains if it started shortly before the client met it, because its predecessor may have granted leases.
    YoungServersAbstain,
    /// A young server votes unless a quorum of other servers is older or unknown. Otherwise, a cold start would wait.
    ColdStartsAreTrusted,
    /// Young servers are compared by age. A server that restarts soon after a cold start has forgotten its later grants.
    OlderServersOutvoteYoung,
    /// A server with durable settings remembers its grants only if its marker is present. Its disk may be empty.
    DurabilityIsProven,
    /// A server without the last receipt of the client has an older copy of its data.
    OlderDataIsForgotten,
    /// Durable settings do not prove to a new client that the data was kept.
    NewcomersTrustNoSettings,
    /// A node's list of permit holders counts as long as the token provably owns the admission lock there.
    ListsEndWithTheAdmissionLock,
    /// A vote for a permit is won back only after a quorum has confirmed the permit since the return. Otherwise the permit may have been
    /// deleted without the knowledge of its token.
    VotersAreAskedFirst,
    /// The lists of permit holders from several nodes are combined, because each node knows only some holders.
    ListsAreUnited,
}
