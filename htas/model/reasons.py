"""The reasons for everything HTAS does not do, in the words operators know.

Sources: Cluster Autoscaler's UnremovableReason and BlockingPodReason; kube-scheduler's filter messages are text and
live beside their filters.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Unplaced(StrEnum):
    """Why a pod waits."""

    NO_FLAVOUR_FITS = "NoFlavourFits"
    """No machine on offer could hold it, however many were bought."""
    LIMIT_REACHED = "LimitReached"
    """A machine would hold it, but a limit of the group or the cluster forbids another one."""
    NAMESPACE_LIMIT = "NamespaceLimitReached"
    """Its namespace has as much of the machines that were bought as it may have."""
    QUOTA_REACHED = "QuotaReached"
    """The cloud would not grant another one."""
    CLOUD_UNREACHABLE = "CloudUnreachable"
    """The cloud does not answer: nothing is bought until it does."""
    STORE_UNWRITABLE = "StoreUnwritable"
    """The journal cannot be written (a full disk, say): nothing is bought that is not written down first."""
    BACKING_OFF = "BackingOff"
    """Every flavour that would hold it failed recently and is not asked for yet."""
    CAPACITY_FREES_SOON = "CapacityFreesSoon"
    """Batch nodes end their work before a purchase could arrive (the 0-bin, HTAS paper Algorithm 4)."""
    OWN_MACHINE_CHEAPER = "OwnMachineCheaper"
    """Nodes with room would be rented longer for it than is worth it: a machine of its own is bought in a moment."""
    GATHERING = "GatheringForPurchase"
    """Batch work waits a moment for more of it to be bought with it."""
    SCHEDULING_GATED = "SchedulingGated"
    """It has scheduling gates: it does not count as waiting."""
    NOT_SUPPORTED = "NotSupported"
    """It asks for something HTAS does not understand, and HTAS does not guess."""
    AUTOSCALING_NOT_DUE = "AutoscalingNotDue"
    """It does not fit now; the next autoscaling cycle decides on buying."""
    NO_NODE_GROUP = "NoNodeGroup"
    """No node group takes this kind of work."""
    SEARCH_UNDER_WAY = "SearchUnderWay"
    """The optimiser searches for a better placement; new pods wait for it, as configured (fallback.newPods)."""
    SURPLUS = "SurplusOfItsController"
    """Its controller has all the pods it wants, one of them moved: it was made in between, and will be deleted."""
    NOMINATED = "NominatedByPreemption"
    """Work of lower priority is preempted for it on the node it is nominated to; it waits for that to leave."""
    GIVES_WAY = "GivesWayToHigherPriority"
    """Others left a node for it, but more important work takes that room."""


class Kept(StrEnum):
    """Why a node stays. Cluster Autoscaler's words where it has them."""

    NOT_AUTOSCALED = "NotAutoscaled"
    """It belongs to no node group of HTAS."""
    NO_PRICE = "NoPrice"
    """Of a dump: the price file does not have its instance type, so what its end would save is not known."""
    SCALE_DOWN_DISABLED = "ScaleDownDisabledAnnotation"
    DO_NOT_DISRUPT = "DoNotDisrupt"
    """The node is annotated `do-not-disrupt`, HTAS's or Karpenter's."""
    NOT_READY = "NotReady"
    UNREADABLE_POD = "UnreadablePod"
    """A pod on it could not be understood: what it asks for is not known, and it may be at work."""
    CLOUD_UNREACHABLE = "CloudUnreachable"
    """The cloud does not answer: its machine could not be given back."""
    STORE_UNWRITABLE = "StoreUnwritable"
    """The journal cannot be written: its emptying could not be written down first."""
    NOT_ELASTIC = "NodeGroupNotElastic"
    """It is of an edge group that neither buys nor releases."""
    CLEANING_DISABLED = "ScaleDownDisabled"
    """The group's cleaning is switched off."""
    CLEANING_NOT_DUE = "CleaningNotDue"
    NOT_UNDERUTILIZED = "NotUnderutilized"
    NOT_UNDERUTILIZED_LONG_ENOUGH = "NotUnneededLongEnough"
    NOT_EMPTY_LONG_ENOUGH = "NotEmptyLongEnough"
    QUEUE_NOT_EMPTY = "QueueNotEmpty"
    """Work that somebody may have room for waited within the last while: room is about to be needed."""
    PAID_UNTIL_PERIOD_ENDS = "PaidUntilBillingPeriodEnds"
    DRAINS_BEFORE_PERIOD_ENDS = "DrainsBeforeBillingPeriodEnds"
    """Under-used, but paid for longer than it takes to empty it: that would save nothing yet."""
    MIN_SIZE_REACHED = "NodeGroupMinSizeReached"
    CURRENTLY_BEING_DELETED = "CurrentlyBeingDeleted"
    TOO_YOUNG = "InCooldown"
    NEEDED = "NeededByPlan"
    """This plan places work on it."""
    TOO_MANY_AT_ONCE = "NodeGroupMaxDeletionCountReached"
    NO_PLACE_TO_MOVE_PODS = "NoPlaceToMovePods"
    BLOCKED_BY_POD = "BlockedByPod"
    BLOCKED_BY_ON_COMPLETION_POD = "BlockedByOnCompletionPod"
    EMPTY_BEFORE_MIGRATION_PAYS = "EmptyBeforeMigrationPays"
    BEING_REPLACED = "BeingReplaced"
    """Cheaper machines are to take over its pods, or it is one of those."""
    CANNOT_CHECKPOINT = "RuntimeCannotCheckpoint"
    """Its group moves pods by checkpoint, which its container runtime does not write."""
    MIGRATION_FAILED = "MigrationFailed"
    """A pod of it could not be moved, after every attempt; it is left alone for a while."""


class Blocking(StrEnum):
    """Why a pod holds its node. Cluster Autoscaler's BlockingPodReason, and HTAS's own four."""

    MIN_REPLICAS_REACHED = "MinReplicasReached"
    NOT_REPLICATED = "NotReplicated"
    """It has no controller: nobody would start it again."""
    UNKNOWN_CONTROLLER = "UnknownController"
    """It has one, of a kind that HTAS does not know to start pods again; Cluster Autoscaler says NotReplicated, too."""
    LOCAL_STORAGE_REQUESTED = "LocalStorageRequested"
    NOT_SAFE_TO_EVICT = "NotSafeToEvictAnnotation"
    UNMOVABLE_KUBE_SYSTEM_POD = "UnmovableKubeSystemPod"
    NOT_ENOUGH_PDB = "NotEnoughPdb"
    DO_NOT_DISRUPT = "DoNotDisrupt"
    SERVICE_NOT_OPTED_IN = "ServiceNotOptedIn"
    NOT_MOVABLE = "NotMovable"
    """It would lose something if it were moved with its progress; the message begins with what (Refusal)."""


class ProposalReason(StrEnum):
    """What work is disrupted for. The first five empty nodes that go; people read these words as why a node goes."""

    EMPTY = "Empty"
    UNDERUTILIZED = "Underutilized"
    CONSOLIDATED = "Consolidated"
    """Cheaper machines, bought for that, take over its pods."""
    RETIRED = "Retired"
    """Its flavour is to be used no more: its pods go to others, bought for that where they must be."""
    EXPIRED = "Expired"
    """Its machine is older than it may be: its pods go to others, bought for that where they must be."""
    PREEMPTED = "Preempted"
    """A more important pod is nominated to a node; those of lower priority that stand in its way leave."""
    REARRANGED = "Rearranged"
    """The optimiser found a placement that takes in more of the important work."""
    INSTEAD_OF_BUYING = "InsteadOfBuying"
    """A machine would be bought for the pods that are seated; moving what runs costs less."""
    NEARER_TO_USERS = "NearerToUsers"
    """Services are moved to the edge."""
    REQUESTED = "Requested"
    """Somebody asked for a pod to be moved."""
    FORCED = "Forced"
    """The same, whoever wishes that it stay."""
    HANDED_BACK = "HandedBack"
    """Somebody gives every machine back. What leaves a node is evicted, and waits for whoever schedules it."""

    @property
    def empties_nodes(self) -> bool:
        """Whether nodes are emptied and given back for it."""
        return self in (
            ProposalReason.EMPTY,
            ProposalReason.UNDERUTILIZED,
            ProposalReason.CONSOLIDATED,
            ProposalReason.RETIRED,
            ProposalReason.EXPIRED,
        )


class OutcomeReason(StrEnum):
    """Why what was decided is not begun, or not gone on with. Most are of rearrangements and drains."""

    ROOM_TAKEN = "RoomTaken"
    """Somebody else's pod took room that was kept for one of its own."""
    NODE_CLOSED = "NodeClosed"
    """A node that it fills or empties is gone, closed or not Ready."""
    NOTHING_GAINED = "NothingGained"
    """The work it was made for is gone or placed: what is left to do would gain nothing."""
    PROMISED = "Promised"
    """A pod that was to leave its node may no longer be disturbed."""
    EVICTION_REFUSED = "EvictionRefused"
    """Disruption budgets refused an eviction for too long."""
    NAMESPACE_LIMIT = "NamespaceLimitReached"
    """A namespace would have had more of the machines that were bought than it may have."""
    MOVE_FAILED = "MoveFailed"
    """A pod's twin was refused, or taken back. The pod stays, and is left alone for a while."""
    CONTRADICTED = "Contradicted"
    """Of a suggestion: somebody else has bound, deleted or scaled away one of the pods that it moves."""
    NOT_READY = "NotReady"
    """Of a suggestion: a pod that it has moved does not become Ready where it is now."""
    WORK_WAITS = "WorkWaits"
    """Of a suggestion: work has come that nothing can be bought for; room for it is looked for first."""
    TIMED_OUT = "TimedOut"
    REJECTED = "Rejected"
    """Somebody has said no to it, or nobody yes in time (mode approve)."""
    OVERTAKEN = "Overtaken"
    """Another daemon has led meanwhile."""
    POD_CAME = "PodCame"
    """Of a drain: a pod came to the node that was not there when it was decided."""
    UNREADABLE_POD = "UnreadablePod"
    """Of a drain: a pod on the node could not be understood, and may be at work."""
    ENDS_FIRST = "EndsFirst"
    """Of a node that is handed back: a pod on it runs to its end first."""
    CLAIM_GONE = "ClaimGone"
    """Of a drain: its machine is released, failed, or not ours any more."""
    NOT_JOURNALLED = "NotJournalled"
    """Of a drain: the node is closed as ours are, and no journal tells why."""


class Invalid(msgspec.Struct, frozen=True):
    """What makes something that was decided wrong by now: one of the reasons, and what people are told."""

    reason: OutcomeReason
    message: str
