//! Rules of the protocol that look optional, but are required for safety, progress or fairness.
//!
//! All of them always apply. Only a simulation can switch one off, to prove that something fails without it.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A new token has a later time than every token that a node has reported. Otherwise a process with a slow clock is
    /// always served first.
    TokensFollowTheLatest,
    /// A released token is never used again, because its release may be executed late.
    ReleasedTokensAreDead,
    /// A command that hands the lock to its own token sets the requested `ttl`, not the shorter lifetime of a claim.
    OwnTurnIsALease,
    /// Queues expire. If no release hands the lock over, nothing else removes the entries of dead processes.
    QueuesExpire,
    /// Every queued `ACQUIRE` notifies the holder of the waiter, because the first notification may be lost.
    HolderHearsOfEveryCall,
    /// An extension never creates the lock: another token may have held it since.
    ExtensionNeverCreates,
    /// A process that adopts a detached lock replaces its token. With the old token, several processes could adopt the
    /// lock.
    AdopterReplaces,
    /// A waiter marks the value of the holder. The release of an unmarked value does not look at the queue.
    WaitersMarkTheHolder,
    /// The next holder is marked while waiters remain in the queue, because those waiters marked only the previous
    /// holder.
    HandOverKeepsTheMark,
    /// A process that adopts a lock keeps its mark, because the waiters marked the old token.
    AdoptionKeepsTheMark,
    /// Only the owner of a lock can release it.
    ReleaseChecksTheOwner,
    /// A claim is only a vote unless it is proven: its start is not known, so its expiry is not known either.
    ClaimIsNoLease,
    /// A claim is proven by the times that its server reports, not by the arrival of its announcement.
    ProofNeedsATime,
    /// A claim that began later than its announcement arrived shows a step of the server's clock, and proves nothing.
    StepVoidsProof,
    /// A claim that is announced after a yield was sent proves nothing, because the yield gives the claim away.
    YieldVoidsProof,
    /// A claim from a node that abstains proves nothing: the node may have forgotten the present holder.
    AbstentionVoidsProof,
    /// A grant that was requested before a yield is void after it.
    YieldVoids,
    /// A yield does not wait for other nodes, because other waiters depend on it.
    YieldAtOnce,
    /// A yield that was cut off may be executed at any time. Its node never counts again for this token.
    CutYieldTaints,
    /// Releases are kept and sent again until they are answered.
    ReleasesAreSeenThrough,
    /// A wake-up for a token that this process does not know is answered with a release.
    UnknownTokensAreReleased,
    /// A message about a token of another manager is ignored. Acting on it would change a lock that this process does
    /// not own.
    ForeignTokensAreIgnored,
    /// A process that releases a token after a command was cut off listens for wake-ups from then on. The command may
    /// be executed behind the release.
    WhoWasCutListens,
    /// A lease counts from the moment at which the request was sent, not from the answer.
    ValidityFromTheSend,
    /// A waiter asks again when the lease of the holder ends, because a crashed holder notifies no waiter.
    TtlTimer,
    /// If other processes wait, a lock is passed on within one process only for a limited time.
    PassesAreLimited,
    /// A node accepts a ballot only if it is larger than every ballot that it has accepted before.
    BallotsOnlyRise,
    /// A number that no clock explains counts only if a quorum of nodes returns it. One damaged register must not raise
    /// the others.
    FarNumbersNeedAQuorum,
    /// A node accepts a ballot for several names only if the registers of all names accept it. Each register orders the
    /// owners of its own name.
    EveryRegisterAccepts,
    /// A fencing number needs a majority that has accepted the same ballot. The largest of different ballots may also
    /// belong to another holder.
    AcceptsAreOfOneRound,
    /// A refused ballot is not a fencing number, even if a quorum of votes came with the refusals.
    RefusedIsNotIssued,
    /// An accepted ballot counts only as long as the vote that came with it. Afterwards, the node may have had another
    /// owner.
    AcceptsEndWithTheVote,
    /// A renewed lock ends when its `max_hold` is over.
    HoldsAreCapped,
    /// A key with a `min_hold` is not released before that time is over.
    WindowsAreKept,
    /// A token that only keeps its key taken is not released, although this process has no call for it.
    KeptTokensStay,
    /// A holder asks for missing votes. A lock on a bare majority is lost with the next node that fails.
    VotesAreWonBack,
    /// A waiter that owns a node yields it to the token that holds the lock. No other token can get the lock before the
    /// holder releases it.
    WaitersYieldToTheHolder,
    /// A re-granted vote counts only while the other votes still prove the lock. After a gap, another token may have
    /// held it.
    LapsedLocksStayLost,
    /// A vote is won back only after the present voters have confirmed that they still have the lock. Keys may have
    /// ended at several nodes at once.
    VotersAreAskedFirst,
    /// A claim that arrives while the lock is held counts only after the present voters have confirmed the lock. Keys
    /// may have ended at several nodes at once.
    LateClaimsAreConfirmed,
    /// A vote is won back together with the fencing number of the token, because the node may have lost its register.
    WonVotesCarryTheNumber,
    /// A node that has not accepted an agreed number is sent that number, because a node that has accepted it may lose
    /// its data.
    NodesLearnAgreedNumbers,
    /// A node that returns with other data is sent every number that the process knows, because its register may be
    /// lost.
    ReturningNodesLearnNumbers,
    /// A downgraded lock keeps its number, and that number is also sent to returning nodes. The next writer then gets a
    /// larger number.
    LoweredKeepTheirNumber,
    /// Without renewal, a lock wins votes back only for the rest of its lease.
    UnrenewedLeasesEnd,
    /// A holder asks a node as soon as its connection is new, because the node may have lost its data.
    ReconnectsAsk,
    /// A waiter does not count on a node that did not answer, because another node may be free.
    SilentVotesAreOpen,
    /// A waiter acquires the lock only with leases that were confirmed just now. A server's clock may have been set
    /// forward since.
    OldLeasesAreConfirmed,
    /// Held leases are renewed in time.
    LeasesAreRenewed,
    /// The replies to a renewal are examined soon, not only at the next renewal. They may show that the lock is lost.
    LossesAreLookedFor,
    /// A clock step of a server that one lock detects applies to all other locks.
    StepsShortenLeases,
    /// A node that abstains still extends the leases that it has proven before. Otherwise, a failover without data loss
    /// would lose every lock.
    ProvenLeasesGoOn,
    /// If a node that abstains has not proven a lease before, its extension proves nothing. Another token may have held
    /// the lock.
    FindingProvesNothing,
    /// A server with other data may have forgotten leases, even if its process and its connections are unchanged.
    ReplacedDataIsForgotten,
    /// A promoted replica abstains from its promotion on, not from the end of a connection. The time of the last grant
    /// by its old master is unknown.
    PromotionsAreNoRestarts,
    /// A server abstains if it started shortly before the process that asks it. The server's predecessor may have
    /// granted leases.
    YoungServersAbstain,
    /// A young server votes unless a quorum of other servers is older or unknown. Otherwise, a cold start would never
    /// be quick.
    ColdStartsAreTrusted,
    /// Young servers are compared by age; their number alone does not let all of them vote. A server that restarts soon
    /// after a cold start has forgotten its later grants.
    OlderServersOutvoteYoung,
    /// A server that writes every command to disk remembers its grants only if its marker is still present. It may
    /// return with an empty disk.
    DurabilityIsProven,
    /// A marker that has counted fewer connections than before belongs to an older copy of the data.
    OlderDataIsForgotten,
    /// The settings of a young server do not prove to a new client that the server's predecessor kept its data.
    NewcomersTrustNoSettings,
    /// Shutting down a manager ends the waits in its local queues at once.
    ClosingEndsTheLines,
    /// A shutdown waits until the releases are answered.
    ShutdownWaitsForReleases,
    /// A wanted idle lock is released only after its token knows of the waiter. Otherwise its call could leave it idle
    /// in between, and no further message would release it.
    RecallAfterKnown,
    /// A lock that other processes want does not become idle.
    WantedIsNotKept,
    /// An idle lock is released when its time is over.
    IdleEnds,
    /// A manager releases its idle locks when it is shut down or its last handle is dropped.
    HandlesReturnIdle,
    /// If locks linger, a call that does not wait asks the holder whether a body runs, because the lock may be idle.
    WhoDoesNotWaitAsks,
    /// Only a lock that a call has really acquired becomes idle. A dropped call leaves nothing behind.
    OnlyUsedIsKept,
    /// A process that breaks a lock replaces the holder's token with its own and does not hand the lock on. The holder
    /// still relies on its lease.
    BreakersTakeThePlace,
    /// Only the lock of the named token is broken, because the lock may meanwhile belong to another token.
    BreakersNameTheHolder,
    /// The key of a broken lock stays taken for the rest of its lease. The holder relies on it until that time.
    BrokenLeasesKeepTheirEnd,
    /// A broken lock is served to waiters before the end of its lease only if the holder has reported that it stopped.
    BreakersWait,
    /// A holder that receives a break message asks every node, because the break may not reach the others.
    RevokedAskAll,
    /// A call that receives a break message before its body begins does not use earlier grants to begin it.
    RevokedGrantsAreVoid,
    /// A message to a holder ends nothing, because anyone may publish one. Only the replies of the nodes end a lock.
    NodesAreBelieved,
    /// A holder reports that it has stopped when its token is dead, not when it learns of the loss. Its body may still
    /// be running.
    StoppedIsSaidByTheEnd,
    /// A token that is already dead when its lock is broken reports that. Its end has passed, so no other event would
    /// report it.
    DeadTokensSaySo,
    /// A token that another call of its process has superseded is dead only after its body has stopped.
    SupersededMayWork,
    /// All tokens that share a lock are notified of a waiter, because each may have to give way.
    AllHoldersHear,
    /// Promoting waiters does not change the tokens that already share the name, whichever of them came first.
    HoldersAreLeftAlone,
    /// A token that leaves the queue unblocks the waiters behind it, whether or not it held the lock.
    LeavingUnblocks,
    /// A reader that is blocked by an earlier waiter pings that waiter, and passes it over if its process is gone.
    BlockersArePinged,
    /// Readers pass over a waiter that has not been heard of for a while, as long as they can share the lock.
    SilentWaitersLeave,
    /// A command that removes absent or silent waiters notifies the next waiter for several names that the name is free.
    /// Otherwise, that waiter asks only at its next poll.
    NextAfterTheAbsentAsks,
    /// Queued readers enter together if no writer waits between them.
    ReadersTogether,
    /// A holder that has downgraded its lock never holds it exclusively again, because the other readers rely on their
    /// shares.
    DowngradeNeverRises,
    /// A reader does not overtake a waiting writer.
    WaitersComeFirst,
    /// A request below a name keeps out requests for the whole name, and the other way round.
    IntentsKeepOut,
    /// A token that leaves a name notifies only those waiters for several names that it blocked, not all waiters.
    OnlyConcernedAreTold,
    /// If many tokens wait for several names, a notified waiter notifies the next ones. One command does not notify all
    /// of them.
    ThoseLeftAreTold,
    /// A free name is reserved for a waiter that wants several names. Otherwise a plain `SET` would take the name again
    /// and again.
    FreeNamesAreReserved,
    /// A release that met too many absent waiters is followed by another release. Otherwise the next waiter would only
    /// find the lock by polling.
    UnfinishedReleasesAreRepeated,
    /// A release of a token that holds nothing still hands over what is free, because it may repeat an unfinished
    /// release.
    RepeatedReleasesGoOn,
    /// A node whose script failed halfway is sent a release, because the script may already have written.
    FailedScriptsAreReleased,
    /// A node that reports that a token does not own all of its names is also sent a release, because the token may own
    /// some of them.
    PartsLeftAreReleased,
    /// If a writer waits elsewhere, calls of one process join a shared lock only for a limited time.
    JoinsAreLimited,
    /// Calls join only a token that holds the lock and can prove it. An expired lease is useless to every call.
    HeldIsJoined,
    /// The last of the calls that share one token releases it, because the others rely on it.
    TheLastOneReleases,
    /// A node's list of permit holders counts only while the admission lock provably belongs to the token at that node.
    ListsEndWithTheAdmissionLock,
    /// The lists of permit holders of several nodes are united, because each node knows only some of them.
    ListsAreUnited,
    /// A call for a permit gives back the permits of some nodes if a writer holds the lock at others. The writer may
    /// need those nodes.
    PermitsGiveWay,
    /// A permit passes to another local call only if few enough calls held permits when they were counted under the
    /// admission lock. More calls may have entered since its admission, and each call applies its own limit.
    PassedPermitsAreCounted,
    /// A permit request that was sent right behind the optimistic admission lock request is given up if the admission lock is not
    /// free.
    AskedAheadEndsWithTheTry,
    /// A call that finds all permits taken for a while notifies their holders, so that abandoned permits are released.
    PermitsAreAskedAfter,
    /// A call that has found all permits taken asks for entries that last no longer than its admission lock. Its process may
    /// die while it waits.
    WaitersEnterBriefly,
    /// A call for a permit keeps the share with which it has waited for exclusive locks until it has asked for the
    /// permit. Otherwise the next exclusive lock enters in between.
    SharesAreKeptUntilAsked,
    /// The share with which a call for a permit has waited is not counted as a permit.
    OwnSharesAreNotCounted,
}

/// Set of rules that apply.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    #[cfg(test)]
    pub(crate) without: Option<Rule>,
}

impl Rules {
    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "in a simulation it says which one is off")]
    pub(crate) const fn apply(self, _: Rule) -> bool {
        true
    }

    #[cfg(test)]
    pub(crate) fn apply(self, rule: Rule) -> bool {
        self.without != Some(rule)
    }
}
