"""The reasons for everything HTAS does, and does not do, in the words operators know, each with what people are told.

Sources: Cluster Autoscaler's UnremovableReason and BlockingPodReason; kube-scheduler's filter messages are text and
live beside their filters.
"""
# ruff: noqa: E501 # tables of sentences: each is read, and changed, on its own line

from __future__ import annotations

from enum import StrEnum

import msgspec


class Reason(StrEnum):
    """A word, a sentence that says it, and what would change it; empty: time alone, or nothing needs to."""

    says: str
    remedy: str

    def __new__(cls, word: str, says: str = "", remedy: str = "") -> Reason:
        reason = str.__new__(cls, word)
        reason._value_, reason.says, reason.remedy = word, says, remedy
        return reason


class Unplaced(Reason):
    """Why a pod waits."""

    NO_FLAVOUR_FITS = (
        "NoFlavourFits",
        "No machine on offer could hold it, however many were bought.",
        "A flavour that is large enough, or other requests and constraints.",
    )
    LIMIT_REACHED = (
        "LimitReached",
        "A machine would hold it, but a limit forbids another one.",
        "Higher limits of the group or the cluster (limits.*).",
    )
    NAMESPACE_LIMIT = (
        "NamespaceLimitReached",
        "Its namespace has as much of the machines as it may have.",
        "A higher limit under namespaces.",
    )
    QUOTA_REACHED = "QuotaReached", "The cloud would not grant another machine.", "A higher quota of the project."
    CLOUD_UNREACHABLE = (
        "CloudUnreachable",
        "The cloud does not answer: nothing is bought until it does.",
        "See the cloud's problem above.",
    )
    STORE_UNWRITABLE = (
        "StoreUnwritable",
        "The journal cannot be written, so nothing is bought.",
        "Make room on the disk of store.path.",
    )
    BACKING_OFF = (
        "BackingOff",
        "Every flavour that would hold it failed a moment ago, or was launched for it and not used.",
        "Time, at most timeouts.backoffMax; or another flavour.",
    )
    NOT_LET_IN = (
        "NotLetIn",
        "Of an earlier htas: a node was launched for it a moment ago and did not admit it yet.",
        "Time; or the labels and taints that nodes really get, under nodeGroups.",
    )
    TOO_MANY_LAUNCHES = (
        "TooManyLaunches",
        "As many machines were launched for it within an hour as may be, and it runs on none of them.",
        "The cause that the message names; then time, or a higher limits.maxLaunchesPerPod.",
    )
    DECLINED = (
        "DeclinedByItsScheduler",
        "It had room for longer than timeouts.unused, and its own scheduler did not bind it.",
        "What its scheduler says of it, such as a full queue; or a longer timeouts.unused.",
    )
    SCALE_UP_DELAYED = (
        "ScaleUpDelayed",
        "It asks that no machine is launched for it while it is so young.",
        "Time; or its annotation cluster-autoscaler.kubernetes.io/pod-scale-up-delay.",
    )
    CAPACITY_FREES_SOON = (
        "CapacityFreesSoon",
        "Batch nodes end their work before a purchase could arrive.",
        "Time, at most maxWaitForCapacity.",
    )
    OWN_MACHINE_CHEAPER = (
        "OwnMachineCheaper",
        "Nodes with room would be rented too long for it: a machine of its own comes.",
        "maxRentalLengthening",
    )
    GATHERING = (
        "GatheringForPurchase",
        "Batch work waits a moment for more to be bought with it.",
        "Time, at most gatherFor.",
    )
    SCHEDULING_GATED = (
        "SchedulingGated",
        "It has scheduling gates, and does not count as waiting.",
        "Whoever set the gates removes them.",
    )
    NOT_SUPPORTED = (
        "NotSupported",
        "It asks for something HTAS does not understand, and HTAS does not guess.",
        "Other constraints: what is explained of the pod names those.",
    )
    AUTOSCALING_NOT_DUE = (
        "AutoscalingNotDue",
        "It has no room now; the next autoscaling cycle decides on buying.",
        "Time, at most cycles.autoscaling.",
    )
    NO_NODE_GROUP = (
        "NoNodeGroup",
        "No node group takes this kind of work.",
        "A node group with workload: any, or of its kind.",
    )
    SEARCH_UNDER_WAY = (
        "SearchUnderWay",
        "A better placement of what runs is being searched for.",
        "Time, at most fallback.budget.",
    )
    PLANNING_FAILED = (
        "PlanningFailed",
        "A defect of HTAS: no node has room for it, and nothing can be launched.",
        "The traceback in the log, reported to the project; then a version without the defect.",
    )
    SURPLUS = "SurplusOfItsController", "Its controller has all the pods it wants, and will delete it."
    NOMINATED = (
        "NominatedByPreemption",
        "Work of lower priority leaves for it; it waits for that.",
        "Time: their grace periods.",
    )
    GIVES_WAY = (
        "GivesWayToHigherPriority",
        "More important work takes the room that was made for it.",
        "A higher priority, or more room.",
    )


class Kept(Reason):
    """Why a node stays. Cluster Autoscaler's words where it has them."""

    NOT_AUTOSCALED = (
        "NotAutoscaled",
        "HTAS did not buy it: it belongs to none of its node groups.",
        "A worker: replace it by a machine that HTAS buys, or adopt it with the labels htas.io/cluster, htas.io/claim and htas.io/group. The control plane stays as it is.",
    )
    NO_PRICE = (
        "NoPrice",
        "The price file does not have its instance type: it is in no price shown here, and nothing is planned for it.",
        "Add its flavour, with its price, to the price file (--flavours).",
    )
    SCALE_DOWN_DISABLED = (
        "ScaleDownDisabledAnnotation",
        "Somebody has annotated it so that no autoscaler removes it.",
        "kubectl annotate node NODE cluster-autoscaler.kubernetes.io/scale-down-disabled-",
    )
    DO_NOT_DISRUPT = (
        "DoNotDisrupt",
        "Somebody has annotated it, so that it is left alone.",
        "kubectl annotate node NODE htas.io/do-not-disrupt-",
    )
    NOT_READY = (
        "NotReady",
        "Its kubelet does not report Ready; nobody can tell what still runs on it.",
        "kubectl describe node NODE",
    )
    NOT_INITIALIZED = (
        "NotInitialized",
        "A start-up taint has not gone, or a device has not come; its machine fails after timeouts.initialization.",
        "kubectl describe node NODE; the agent or device plugin that the message names",
    )
    UNREADABLE_POD = (
        "UnreadablePod",
        "A pod on it could not be understood, and may be at work.",
        "See the problems for which, and why.",
    )
    CLOUD_UNREACHABLE = (
        "CloudUnreachable",
        "The cloud does not answer, so its machine could not be given back.",
        "See the cloud's problem above.",
    )
    STORE_UNWRITABLE = (
        "StoreUnwritable",
        "The journal cannot be written, and nothing is emptied that is not written down first.",
        "Make room on the disk of store.path.",
    )
    NOT_ELASTIC = (
        "NodeGroupNotElastic",
        "It is of an edge group, where nothing is bought or released.",
        "elastic: true for its group.",
    )
    CLEANING_DISABLED = "ScaleDownDisabled", "Its group is not cleaned.", "cleaning.enabled: true for its group."
    CLEANING_NOT_DUE = "CleaningNotDue", "Nodes are judged at the next cleaning cycle.", "cycles.cleaning"
    NOT_UNDERUTILIZED = (
        "NotUnderutilized",
        "It is well used: more of it is asked for than the threshold.",
        "A higher cleaning.utilizationThreshold, or less work.",
    )
    NOT_UNDERUTILIZED_LONG_ENOUGH = (
        "NotUnneededLongEnough",
        "It has room to spare, but not for long enough yet.",
        "A shorter cleaning.underutilizedFor, or time.",
    )
    NOT_EMPTY_LONG_ENOUGH = (
        "NotEmptyLongEnough",
        "It is empty, but not for long enough yet.",
        "A shorter cleaning.emptyFor, or time.",
    )
    QUEUE_NOT_EMPTY = (
        "QueueNotEmpty",
        "Work waited within the last while: its room is about to be needed.",
        "A shorter cleaning.queueEmptyFor, or time.",
    )
    PAID_UNTIL_PERIOD_ENDS = (
        "PaidUntilBillingPeriodEnds",
        "It is empty and paid for: it goes just before the next period would be charged.",
        "cleaning.emptyRelease: at-once",
    )
    DRAINS_BEFORE_PERIOD_ENDS = (
        "DrainsBeforeBillingPeriodEnds",
        "It is hardly used, but paid for: it is emptied just before the next period would be charged.",
        "cleaning.emptyRelease: at-once",
    )
    MIN_SIZE_REACHED = (
        "NodeGroupMinSizeReached",
        "Its group has no more nodes than it must have.",
        "A lower minNodes for its group.",
    )
    CURRENTLY_BEING_DELETED = "CurrentlyBeingDeleted", "It is on its way out already."
    TOO_YOUNG = "InCooldown", "It was bought a moment ago.", "A shorter cleaning.delayAfterLaunch, or time."
    NEEDED = (
        "NeededByPlan",
        "This plan places work on it.",
        "Nothing needs to: once that work has come it is judged as any other node.",
    )
    TOO_MANY_AT_ONCE = (
        "NodeGroupMaxDeletionCountReached",
        "As many nodes are being emptied as may be at once.",
        "A higher cleaning.maxNodesAtOnce, or time.",
    )
    TOO_MANY_UNHEALTHY = (
        "TooManyUnhealthy",
        "It is unhealthy, but so are too many nodes of its group for any of them to be replaced.",
        "What is wrong with all of them is mended, or the detector that says so.",
    )
    NO_PLACE_TO_MOVE_PODS = (
        "NoPlaceToMovePods",
        "Nothing else has room for its pods.",
        "Consolidation (cleaning.consolidation.enabled) may buy one cheaper machine for several.",
    )
    BLOCKED_BY_POD = (
        "BlockedByPod",
        "A pod on it may not be moved.",
        "What lifts the rule that its message names; each node tells of which pods.",
    )
    BLOCKED_BY_ON_COMPLETION_POD = (
        "BlockedByOnCompletionPod",
        "A pod on it asked to run to its end first.",
        "Time: the pod ends by itself.",
    )
    EMPTY_BEFORE_MIGRATION_PAYS = (
        "EmptyBeforeMigrationPays",
        "Its work ends before moving it would have paid for itself.",
        "Time; or a lower cleaning.migrationTime.",
    )
    RUN_LENGTH_UNKNOWN = (
        "RunLengthUnknown",
        "A batch pod on it would begin again, and nobody knows how long it runs.",
        "The annotation htas.io/runtime on such pods, a few runs to learn from, or a cleaning.migration that keeps progress.",
    )
    BEING_REPLACED = "BeingReplaced", "Cheaper machines are to take over its pods, or it is one of those."
    CANNOT_CHECKPOINT = (
        "RuntimeCannotCheckpoint",
        "Its group moves pods by checkpoint, which its container runtime does not write.",
        "cleaning.migration: evict, or another runtime.",
    )
    MIGRATION_FAILED = (
        "MigrationFailed",
        "A pod of it could not be moved; it is left alone for a while.",
        "Time, and what its message says went wrong.",
    )


class Blocking(StrEnum):
    """Why a pod holds its node. Cluster Autoscaler's BlockingPodReason, and HTAS's own four."""

    MIN_REPLICAS_REACHED = "MinReplicasReached"
    """Its controller wants fewer replicas than cleaning.minReplicaCount."""
    NOT_REPLICATED = "NotReplicated"
    """It has no controller: nobody would start it again."""
    UNKNOWN_CONTROLLER = "UnknownController"
    """It has one, of a kind that HTAS does not know to start pods again; Cluster Autoscaler says NotReplicated, too."""
    LOCAL_STORAGE_REQUESTED = "LocalStorageRequested"
    """It keeps data on its node (cleaning.skipLocalStorage)."""
    NOT_SAFE_TO_EVICT = "NotSafeToEvictAnnotation"
    """It is annotated safe-to-evict: "false"."""
    UNMOVABLE_KUBE_SYSTEM_POD = "UnmovableKubeSystemPod"
    """It is of kube-system and has no disruption budget (cleaning.skipSystemPods)."""
    NOT_ENOUGH_PDB = "NotEnoughPdb"
    """A disruption budget allows no eviction now."""
    DO_NOT_DISRUPT = "DoNotDisrupt"
    """It is annotated do-not-disrupt, or htas.io/migrate: "false"."""
    SERVICE_NOT_OPTED_IN = "ServiceNotOptedIn"
    """It is of a service that is not annotated htas.io/migrate: "true" (cleaning.moveServices)."""
    NOT_MOVABLE = "NotMovable"
    """It would lose something if it were moved with its progress; the message begins with what (Refusal)."""


class ProposalReason(Reason):
    """What work is disrupted for; of what empties nodes people read these words as why a node goes."""

    empties_nodes: bool
    """Whether nodes are emptied and given back for it."""

    def __new__(cls, word: str, says: str = "", remedy: str = "", empties_nodes: bool = False) -> ProposalReason:
        reason = str.__new__(cls, word)
        reason._value_, reason.says, reason.remedy, reason.empties_nodes = word, says, remedy, empties_nodes
        return reason

    EMPTY = "Empty", "Nothing but its DaemonSet pods runs on it.", "", True
    UNDERUTILIZED = "Underutilized", "Its pods fit elsewhere, and moving them pays.", "", True
    CONSOLIDATED = "Consolidated", "Cheaper machines, bought for that, take over its pods.", "", True
    RETIRED = "Retired", "Its flavour is retired in the price file: its pods go to machines of others.", "", True
    EXPIRED = (
        "Expired",
        "Its machine is older than machines of its group may be: its pods go to others.",
        "A longer cleaning.maxNodeAge.",
        True,
    )
    OUTDATED = (
        "Outdated",
        "Its kubelet is older than its group asks for: its pods go to nodes with a newer one.",
        "A lower cleaning.minKubeletVersion, or none.",
        True,
    )
    UNHEALTHY = (
        "Unhealthy",
        "It has borne a condition for longer than its group lets it: its pods go to other nodes.",
        "What is wrong with it is mended; or a longer time under cleaning.repair.",
        True,
    )
    PREEMPTED = (
        "Preempted",
        "A more important pod is nominated to a node; those of lower priority that stand in its way leave.",
    )
    REARRANGED = "Rearranged", "The optimiser found a placement that takes in more of the important work."
    INSTEAD_OF_BUYING = (
        "InsteadOfBuying",
        "A machine would be bought for the pods that are seated; moving what runs costs less.",
    )
    NEARER_TO_USERS = "NearerToUsers", "Services are moved to the edge."
    REQUESTED = "Requested", "Somebody asked for a pod to be moved."
    FORCED = "Forced", "Somebody asked for a pod to be moved, whoever wishes that it stay."
    HANDED_BACK = (
        "HandedBack",
        "Somebody gives every machine back. What leaves a node is evicted, and waits for whoever schedules it.",
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
    """It took longer than it may."""
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
    NOT_INITIALIZED = "NotInitialized"
    """Of a machine: its start-up taints did not go, or its devices did not come, within `timeouts.initialization`."""
    CLAIM_GONE = "ClaimGone"
    """Of a drain: its machine is released, failed, or not ours any more."""
    SEARCH_FAILED = "SearchFailed"
    """An optional search raised an exception: the plan was made without it."""
    PODS_RUN = "PodsRun"
    """Of a machine that was to be deleted: pods run on its node, and nothing has drained it."""
    RELABELLED = "Relabelled"
    """Of a node's labels: somebody had changed those that say whose it is, and they are set back."""
    RENAMED = "Renamed"
    """Of a drain: its machine has registered under another name since."""
    NOT_JOURNALLED = "NotJournalled"
    """Of a drain: the node is closed as ours are, and no journal tells why."""


class Invalid(msgspec.Struct, frozen=True):
    """What makes something that was decided wrong by now: one of the reasons, and what people are told."""

    reason: OutcomeReason
    message: str
