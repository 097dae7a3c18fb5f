//! The rules of the protocol that look as if one could do without them.
//!
//! All of them apply, always. Only a simulation can switch one off, to prove that it would be missed.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// New tokens are later than every token that a node has told of: otherwise a slow clock is always served first.
    TokensFollowTheLatest,
    /// A token that was released is never used again: its release may be executed late.
    ReleasedTokensAreDead,
    /// Whoever hands the lock to itself gets the `ttl` it asked for, not that of a claim.
    OwnTurnIsALease,
    /// Queues expire: where nobody hands the lock over, nobody else removes the entries of dead processes.
    QueuesExpire,
    /// The holder hears of a waiter at every call: the first notice may be lost.
    HolderHearsOfEveryCall,
    /// An extension never creates the lock: somebody else may have held it in between.
    ExtensionNeverCreates,
    /// Whoever adopts a lock takes the place of the token that it was left with: with that one, others could go on as well.
    AdopterReplaces,
    /// Whoever comes to wait marks the value of the holder: whose value has no mark gives it back without a look at the
    /// queue.
    WaitersMarkTheHolder,
    /// The next holder is marked while others remain in the queue: they have come to wait for the one before.
    HandOverKeepsTheMark,
    /// Whoever adopts a lock takes its mark over: those who wait do so for the one before.
    AdoptionKeepsTheMark,
    /// Only the owner gives a lock back.
    ReleaseChecksTheOwner,
    /// A claim is a vote, unless it is proven: nobody knows when its expiry was set.
    ClaimIsNoLease,
    /// A claim is proven by the times that its server tells, and not by when its announcement came.
    ProofNeedsATime,
    /// A claim that began later than its announcement came shows a step of the server's clock, and proves nothing.
    StepVoidsProof,
    /// A claim that is announced behind a yield proves nothing: the yield gives it away.
    YieldVoidsProof,
    /// A claim of a node that abstains proves nothing: the node may have forgotten who has the lock.
    AbstentionVoidsProof,
    /// What was granted before a yield does not count after it.
    YieldVoids,
    /// A yield waits for no other node: everybody else waits for it.
    YieldAtOnce,
    /// A yield that was cut off may be executed at any time, so that its node never counts again.
    CutYieldTaints,
    /// Releases are kept until they are answered, and sent again.
    ReleasesAreSeenThrough,
    /// Wake-ups about tokens that nobody here has are answered by a release.
    UnknownTokensAreReleased,
    /// A message about a token of another manager is ignored: acting on it would change a lock that this process does not own.
    ForeignTokensAreIgnored,
    /// Whoever gives back what was cut off hears wake-ups from then on: it may be executed behind that.
    WhoWasCutListens,
    /// A lease is counted from when it was asked for, not from the answer.
    ValidityFromTheSend,
    /// A waiter asks again when the lease of the holder runs out: a crashed one tells nobody.
    TtlTimer,
    /// A lock passes on within a process only for a while when others wait for it.
    PassesAreLimited,
    /// A node accepts a ballot only if it is larger than all that it has accepted.
    BallotsOnlyRise,
    /// A number that no clock explains counts only if a quorum of nodes returns it: one damaged register must not raise the others.
    FarNumbersNeedAQuorum,
    /// A node accepts the ballot for several names only if the registers of all of them do: each orders the owners of its own.
    EveryRegisterAccepts,
    /// A majority has accepted the same ballot: the largest of different ones may be that of somebody else, too.
    AcceptsAreOfOneRound,
    /// A ballot that was refused is no number, however many votes came with the refusals.
    RefusedIsNotIssued,
    /// What a node has accepted counts only together with the vote that came with it: it may have had another owner since.
    AcceptsEndWithTheVote,
    /// A lock that is renewed ends all the same when it was held for as long as it may be.
    HoldsAreCapped,
    /// A key that has to stay taken for a while is not given back before.
    WindowsAreKept,
    /// Nothing is known here of a token that only keeps its key taken, and yet it is not given back.
    KeptTokensStay,
    /// A holder asks for the votes that it lacks: a lock on a bare majority is lost with the next node that fails.
    VotesAreWonBack,
    /// A waiter that has a node gives it to the token that holds the lock: nobody else can have it before that one ends.
    WaitersYieldToTheHolder,
    /// A vote that is granted anew counts only while the others prove the lock: after a gap, somebody else may have had it.
    LapsedLocksStayLost,
    /// A vote is won back when those who have voted have said that they still have the lock: keys may have ended at several
    /// nodes at once.
    VotersAreAskedFirst,
    /// A vote that is won back comes with the fencing number of the token: the node may have lost its register.
    WonVotesCarryTheNumber,
    /// A node that has not accepted an agreed number is sent it: a node that has accepted it may lose its data.
    NodesLearnAgreedNumbers,
    /// A node that comes back with other data is sent every number that the process knows: its register may be lost.
    ReturningNodesLearnNumbers,
    /// So does one of a lock that is shared by now, and was not when it got its number: the next writer has a larger one.
    LoweredKeepTheirNumber,
    /// A lock that is not renewed wins votes back for the rest of its lease only.
    UnrenewedLeasesEnd,
    /// A holder asks at once when a connection is new: what the node knew may be gone.
    ReconnectsAsk,
    /// Who waits does not count on a node that gave no answer: another one may be free.
    SilentVotesAreOpen,
    /// Who has waited enters by leases that were heard of just now: the clock of a server may have been set forward since.
    OldLeasesAreConfirmed,
    /// Leases are renewed in time.
    LeasesAreRenewed,
    /// The answers to a renewal are looked for, and not only at the next one: they may say that the lock is lost.
    LossesAreLookedFor,
    /// What one lock shows of the clock of a server counts for all others.
    StepsShortenLeases,
    /// A node that abstains goes on with the leases that it has proven before: otherwise a fail-over that kept the data
    /// would lose every lock.
    ProvenLeasesGoOn,
    /// Where a node that abstains has proven no lease before, its extension proves none: another may have had the lock.
    FindingProvesNothing,
    /// A server with the data of another one may have forgotten leases, although its process and its connections are the
    /// same.
    ReplacedDataIsForgotten,
    /// A promoted replica abstains from its promotion on, and not from the end of a connection: until when its master has
    /// granted something to others, nobody knows.
    PromotionsAreNoRestarts,
    /// A server abstains that was started shortly before the process that asks it: its predecessor may have granted
    /// leases.
    YoungServersAbstain,
    /// A young server votes unless a quorum of other servers is older or unknown: a cold start would never be quick.
    ColdStartsAreTrusted,
    /// Young servers are compared by age, and do not all vote because they are many: one that restarts soon after a cold start has
    /// forgotten what it granted since.
    OlderServersOutvoteYoung,
    /// A server that writes every command to disk remembers only if its marker is still there: it may come back on an empty disk.
    DurabilityIsProven,
    /// A marker that has counted fewer connections than before belongs to an older copy of the data.
    OlderDataIsForgotten,
    /// The settings of a young server do not prove to a newcomer that its predecessor kept its data.
    NewcomersTrustNoSettings,
    /// A manager that is shut down ends the waits in its lines at once.
    ClosingEndsTheLines,
    /// A shutdown waits until the releases are answered.
    ShutdownWaitsForReleases,
    /// A lock that others want is given back when its token knows of them, and not before: the call that has it could leave
    /// it idle in between, and nobody would ask for it again.
    RecallAfterKnown,
    /// A lock that others want does not become idle.
    WantedIsNotKept,
    /// An idle lock is given back when its time is over.
    IdleEnds,
    /// A manager that was shut down or has no handle any more gives back what is idle.
    HandlesReturnIdle,
    /// Where locks linger, a call that does not wait asks whoever has the lock whether a body runs: it may be idle.
    WhoDoesNotWaitAsks,
    /// Only a lock that a call really had becomes idle: a call that was dropped leaves nothing behind.
    OnlyUsedIsKept,
    /// Whoever breaks a lock puts a token of its own in the place of the holder's, and gives it to nobody: the holder relies on
    /// it still.
    BreakersTakeThePlace,
    /// Only the lock of the token that was named is broken: meanwhile it may be another one's.
    BreakersNameTheHolder,
    /// The key of a lock that is broken is taken for as long as it was: until then, its holder counts on it.
    BrokenLeasesKeepTheirEnd,
    /// A lock that is broken is served to others before its lease is over only when its holder has said that it has stopped.
    BreakersWait,
    /// A holder that is told that its lock is broken asks every node: the others may not get through to it.
    RevokedAskAll,
    /// Who is told before its body begins does not begin it by what it was granted before.
    RevokedGrantsAreVoid,
    /// What a holder is told ends nothing: anybody may publish it. The answers of the nodes do.
    NodesAreBelieved,
    /// A holder says that it has stopped when its token is dead, and not when it knows of the loss: its body may be at work.
    StoppedIsSaidByTheEnd,
    /// A token that is dead when somebody breaks its lock says so: its end is over, and nobody else would.
    DeadTokensSaySo,
    /// A token that another call of its process has superseded is not dead before its body has stopped.
    SupersededMayWork,
    /// All who share a lock hear of a waiter: each may have to give way.
    AllHoldersHear,
    /// Who lets in those that wait leaves those alone that share the name, whoever of them came first.
    HoldersAreLeftAlone,
    /// Who leaves the queue unblocks those behind, whether or not it had the lock.
    LeavingUnblocks,
    /// Who cannot share a lock because of an earlier waiter asks after that one, and passes it over when its process is gone.
    BlockersArePinged,
    /// A waiter that was not heard of for a while is passed over by those who can share the lock meanwhile.
    SilentWaitersLeave,
    /// Those who share a lock enter together, as long as nobody between them wants it alone.
    ReadersTogether,
    /// Who shares a lock with others that it had alone never has it alone again: they count on their shares.
    DowngradeNeverRises,
    /// Who shares a lock does not overtake those who have come to have it alone.
    WaitersComeFirst,
    /// What is wanted below a name keeps those out who want all of it, and the other way round.
    IntentsKeepOut,
    /// Who leaves a name tells those of whoever wants several names that it was in the way of, and not all who wait.
    OnlyConcernedAreTold,
    /// Of a crowd that waits for several names, who is told that one is free tells the next ones: one command does not tell all.
    ThoseLeftAreTold,
    /// A name that could be had by who waits for several is kept for it: a plain `SET` would take it again and again.
    FreeNamesAreReserved,
    /// A release that has found too many absent waiters is followed by another one: otherwise the next waiter would find out by itself.
    UnfinishedReleasesAreRepeated,
    /// A release of a token that has nothing hands over what is free: it may be the repetition of an unfinished one.
    RepeatedReleasesGoOn,
    /// A node whose script failed halfway is sent a release: the script may have written before.
    FailedScriptsAreReleased,
    /// A node that says that not all names are the token's is sent a release as well: it may have the others.
    PartsLeftAreReleased,
    /// Calls of one process join those that share a lock only for a while when others wait to have it alone.
    JoinsAreLimited,
    /// Calls join only who has the lock and can prove it: a lease that has run out is good for nobody.
    HeldIsJoined,
    /// Of those who share one token, the last to leave gives it back: the others count on it.
    TheLastOneReleases,
    /// What a node has told of those who have permits counts for as long as the turnstile provably is the token's there.
    RollsEndWithTheTurnstile,
    /// What several nodes tell of those who have permits is put together: each of them knows of some only.
    ListsAreUnited,
    /// Who wants a permit gives back what some nodes have given, when somebody else has the lock alone at others: that one may need
    /// them.
    PermitsGiveWay,
    /// A permit is passed on within a process to a call for which all who have one are few enough, as they were counted in the turnstile:
    /// others may have come since it was admitted, and each call applies its own number.
    PassedPermitsAreCounted,
    /// What was asked behind the question for a turnstile, in the hope that it is free, is given back when it is not.
    AskedAheadEndsWithTheTry,
    /// Whoever finds all permits taken for a while tells those who have them, so that those that nobody has are given back.
    PermitsAreAskedAfter,
    /// A call that has found all permits taken asks for entries that last no longer than its turnstile: the process may die while it
    /// waits.
    WaitersEnterBriefly,
    /// A call for a permit keeps the share by which it has waited for exclusive locks until it has asked for the permit: otherwise the
    /// next exclusive lock comes in between.
    SharesAreKeptUntilAsked,
    /// The share by which a call for a permit has waited is not counted as a permit.
    OwnSharesAreNotCounted,
}

/// Which rules apply.
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
