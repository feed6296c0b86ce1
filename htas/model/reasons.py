"""The reasons for what HTAS does and does not do, in operators' words, each with the text that people read.

Sources: Cluster Autoscaler's UnremovableReason and BlockingPodReason; kube-scheduler's filter messages are text and
live beside their filters.
"""
# ruff: noqa: E501 # tables of sentences: each is read, and changed, on its own line

from __future__ import annotations

from enum import StrEnum

import msgspec


class Reason(StrEnum):
    """A word, a sentence that explains it, and what would change it; empty: only time, or nothing."""

    says: str
    remedy: str

    def __new__(cls, word: str, says: str = "", remedy: str = "") -> Reason:
        reason = str.__new__(cls, word)
        reason._value_, reason.says, reason.remedy = word, says, remedy
        return reason


class Unplaced(Reason):
    """Why a pod is pending."""

    NO_FLAVOUR_FITS = (
        "NoFlavourFits",
        "No flavour in the price file fits the pod.",
        "Add a larger flavour, or change its requests or constraints.",
    )
    LIMIT_REACHED = (
        "LimitReached",
        "A flavour fits it, but a limit forbids another machine.",
        "Raise the limits of the group or the cluster (limits.*).",
    )
    NAMESPACE_LIMIT = (
        "NamespaceLimitReached",
        "Its namespace has reached its limit.",
        "Raise its limit under namespaces.",
    )
    QUOTA_REACHED = "QuotaReached", "The project's quota forbids another machine.", "Raise the quota of the project."
    CLOUD_UNREACHABLE = (
        "CloudUnreachable",
        "The cloud does not answer: HTAS launches nothing until it does.",
        "See the cloud's problem above.",
    )
    STORE_UNWRITABLE = (
        "StoreUnwritable",
        "HTAS cannot write its journal, so it launches nothing.",
        "Free space on the disk of store.path.",
    )
    BACKING_OFF = (
        "BackingOff",
        "Every flavour that fits it failed recently, or was launched for it and not used.",
        "Time, at most timeouts.backoffMax; or add another flavour.",
    )
    TOO_MANY_LAUNCHES = (
        "TooManyLaunches",
        "limits.maxLaunchesPerPod machines were launched for it within an hour, and it runs on none of them.",
        "Fix the cause that the message names; then time, or raise limits.maxLaunchesPerPod.",
    )
    DECLINED = (
        "DeclinedByItsScheduler",
        "A node had free resources for it for longer than timeouts.unused, and its own scheduler did not bind it.",
        "See its scheduler's events, such as a full queue; or raise timeouts.unused.",
    )
    SCALE_UP_DELAYED = (
        "ScaleUpDelayed",
        "Its annotation delays scale-up until it is older.",
        "Time; or change its annotation cluster-autoscaler.kubernetes.io/pod-scale-up-delay.",
    )
    CAPACITY_FREES_SOON = (
        "CapacityFreesSoon",
        "Batch nodes free up before a new machine could be ready.",
        "Time, at most maxWaitForCapacity.",
    )
    OWN_MACHINE_CHEAPER = (
        "OwnMachineCheaper",
        "A machine of its own costs less than renting an existing node for longer.",
        "maxRentalLengthening",
    )
    SCHEDULING_GATED = (
        "SchedulingGated",
        "It has scheduling gates, and does not count as pending.",
        "The controller that set the gates removes them.",
    )
    NOT_SUPPORTED = (
        "NotSupported",
        "It has a constraint that HTAS does not support, and HTAS does not guess.",
        "Change the constraints that `htas explain pod` names.",
    )
    AUTOSCALING_NOT_DUE = (
        "AutoscalingNotDue",
        "No node has enough free resources; the next autoscaling cycle decides on a launch.",
        "Time, at most cycles.autoscaling.",
    )
    NO_NODE_GROUP = (
        "NoNodeGroup",
        "No node group takes this kind of work.",
        "Add a node group with workload: any, or of its kind.",
    )
    SEARCH_UNDER_WAY = (
        "SearchUnderWay",
        "HTAS is searching for a better placement of the running pods.",
        "Time, at most fallback.budget.",
    )
    PLANNING_FAILED = (
        "PlanningFailed",
        "A defect of HTAS: no node fits it, and HTAS cannot plan a launch.",
        "Report the traceback in the log to the project; then install a version with the fix.",
    )
    SURPLUS = "SurplusOfItsController", "Its controller has all the pods it wants, and will delete it."
    NOMINATED = (
        "NominatedByPreemption",
        "HTAS evicts pods of lower priority for it.",
        "Time: the grace periods of those pods.",
    )
    GIVES_WAY = (
        "GivesWayToHigherPriority",
        "Pods of higher priority take the resources that were freed for it.",
        "Raise its priority, or add capacity.",
    )


class Kept(Reason):
    """Why a node stays. Cluster Autoscaler's words where it has them."""

    NOT_AUTOSCALED = (
        "NotAutoscaled",
        "HTAS did not launch it: it belongs to no node group.",
        "A worker: let HTAS launch a replacement, or adopt it with the labels htas.io/cluster, htas.io/claim and htas.io/group. The control plane stays as it is.",
    )
    NO_PRICE = (
        "NoPrice",
        "The price file does not have its instance type: no cost here includes it, and HTAS plans nothing for it.",
        "Add its flavour, with its price, to the price file (--flavours).",
    )
    SCALE_DOWN_DISABLED = (
        "ScaleDownDisabledAnnotation",
        "Its annotation forbids autoscalers to remove it.",
        "kubectl annotate node NODE cluster-autoscaler.kubernetes.io/scale-down-disabled-",
    )
    DO_NOT_DISRUPT = (
        "DoNotDisrupt",
        "Its annotation forbids HTAS to disrupt it.",
        "kubectl annotate node NODE htas.io/do-not-disrupt-",
    )
    NOT_READY = (
        "NotReady",
        "Its kubelet does not report Ready, so it is unknown what still runs on it.",
        "kubectl describe node NODE",
    )
    NOT_INITIALIZED = (
        "NotInitialized",
        "It still has a start-up taint, or lacks a device; its machine fails after timeouts.initialization.",
        "kubectl describe node NODE; the agent or device plugin that the message names",
    )
    UNREADABLE_POD = (
        "UnreadablePod",
        "HTAS cannot read a pod on it, which may be running.",
        "See the problems: they name the pod and the reason.",
    )
    CLOUD_UNREACHABLE = (
        "CloudUnreachable",
        "The cloud does not answer, so HTAS cannot delete its machine.",
        "See the cloud's problem above.",
    )
    STORE_UNWRITABLE = (
        "StoreUnwritable",
        "HTAS cannot write its journal, and drains no node without it.",
        "Free space on the disk of store.path.",
    )
    NOT_ELASTIC = (
        "NodeGroupNotElastic",
        "It is in an edge group, where HTAS launches and deletes nothing.",
        "Set elastic: true for its group.",
    )
    CLEANING_DISABLED = (
        "ScaleDownDisabled",
        "Scale-down is disabled for its group.",
        "Set cleaning.enabled: true for its group.",
    )
    CLEANING_NOT_DUE = "CleaningNotDue", "The next cleaning cycle decides on it.", "cycles.cleaning"
    NOT_UNDERUTILIZED = (
        "NotUnderutilized",
        "Its utilization is above the threshold.",
        "Raise cleaning.utilizationThreshold, or run less on it.",
    )
    NOT_UNDERUTILIZED_LONG_ENOUGH = (
        "NotUnneededLongEnough",
        "It is underutilized, but not for long enough yet.",
        "Time; or lower cleaning.underutilizedFor.",
    )
    NOT_EMPTY_LONG_ENOUGH = (
        "NotEmptyLongEnough",
        "It is empty, but not for long enough yet.",
        "Time; or lower cleaning.emptyFor.",
    )
    QUEUE_NOT_EMPTY = (
        "QueueNotEmpty",
        "Pods were pending recently and may need its free resources.",
        "Time; or lower cleaning.queueEmptyFor.",
    )
    PAID_UNTIL_PERIOD_ENDS = (
        "PaidUntilBillingPeriodEnds",
        "It is empty and paid for: HTAS deletes it just before the next billing period.",
        "Set cleaning.emptyRelease: at-once.",
    )
    DRAINS_BEFORE_PERIOD_ENDS = (
        "DrainsBeforeBillingPeriodEnds",
        "It is underutilized, but paid for: HTAS drains it just before the next billing period.",
        "Set cleaning.emptyRelease: at-once.",
    )
    MIN_SIZE_REACHED = (
        "NodeGroupMinSizeReached",
        "Its group is at its minimum size (minNodes).",
        "Lower minNodes of its group.",
    )
    CURRENTLY_BEING_DELETED = "CurrentlyBeingDeleted", "HTAS is draining or deleting it."
    TOO_YOUNG = "InCooldown", "It was launched recently.", "Time; or lower cleaning.delayAfterLaunch."
    NEEDED = (
        "NeededByPlan",
        "This plan schedules pods on it.",
        "None needed: once those pods run, it is treated as any other node.",
    )
    TOO_MANY_AT_ONCE = (
        "NodeGroupMaxDeletionCountReached",
        "cleaning.maxNodesAtOnce nodes are being drained already.",
        "Time; or raise cleaning.maxNodesAtOnce.",
    )
    TOO_MANY_UNHEALTHY = (
        "TooManyUnhealthy",
        "It is unhealthy, but too many nodes of its group are, so HTAS replaces none of them.",
        "Fix the fault that they share, or the detector that reports it.",
    )
    NO_PLACE_TO_MOVE_PODS = (
        "NoPlaceToMovePods",
        "No other node has enough free resources for its pods.",
        "Consolidation (cleaning.consolidation.enabled) may launch one cheaper machine for several nodes.",
    )
    BLOCKED_BY_POD = (
        "BlockedByPod",
        "A pod on it may not be evicted.",
        "Lift the rule that its message names; `htas explain node NODE` lists the pods.",
    )
    BLOCKED_BY_ON_COMPLETION_POD = (
        "BlockedByOnCompletionPod",
        "A pod on it runs to completion first.",
        "Time: the pod completes by itself.",
    )
    EMPTY_BEFORE_MIGRATION_PAYS = (
        "EmptyBeforeMigrationPays",
        "Its pods complete before the savings would cover their migration.",
        "Time; or lower cleaning.migrationTime.",
    )
    RUN_LENGTH_UNKNOWN = (
        "RunLengthUnknown",
        "A batch pod on it would restart, and its run length is unknown.",
        "Annotate such pods with htas.io/runtime, let a few of them complete, or choose a cleaning.migration that keeps progress.",
    )
    BEING_REPLACED = "BeingReplaced", "Cheaper machines replace it, or it is a replacement."
    CANNOT_CHECKPOINT = (
        "RuntimeCannotCheckpoint",
        "Its group migrates pods by checkpoint, which its container runtime does not support.",
        "Set cleaning.migration: evict, or change the runtime.",
    )
    MIGRATION_FAILED = (
        "MigrationFailed",
        "The migration of one of its pods failed; HTAS retries later.",
        "Time; and fix the fault that its message names.",
    )


class Blocking(StrEnum):
    """Why a pod blocks the drain of its node. Cluster Autoscaler's BlockingPodReason, and HTAS's own four."""

    MIN_REPLICAS_REACHED = "MinReplicasReached"
    """Its controller wants fewer replicas than cleaning.minReplicaCount."""
    NOT_REPLICATED = "NotReplicated"
    """It has no controller that would recreate it."""
    UNKNOWN_CONTROLLER = "UnknownController"
    """Its controller is of a kind that HTAS does not know to recreate pods; Cluster Autoscaler says NotReplicated, too."""
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
    """A migration would lose some of its state; the message begins with what (Refusal)."""


class ProposalReason(Reason):
    """Why HTAS disrupts pods. Those that drain nodes are also the reason why a node is deleted."""

    empties_nodes: bool
    """Whether HTAS drains and deletes nodes for it."""

    def __new__(cls, word: str, says: str = "", remedy: str = "", empties_nodes: bool = False) -> ProposalReason:
        reason = str.__new__(cls, word)
        reason._value_, reason.says, reason.remedy, reason.empties_nodes = word, says, remedy, empties_nodes
        return reason

    EMPTY = "Empty", "Only DaemonSet pods run on it.", "", True
    UNDERUTILIZED = (
        "Underutilized",
        "Its pods fit on other nodes, and the savings exceed the cost of moving them.",
        "",
        True,
    )
    CONSOLIDATED = "Consolidated", "Cheaper machines replace it.", "", True
    RETIRED = (
        "Retired",
        "Its flavour is retired in the price file: its pods move to machines of other flavours.",
        "",
        True,
    )
    EXPIRED = (
        "Expired",
        "Its machine has reached its group's maximum age: its pods move to other nodes.",
        "Raise cleaning.maxNodeAge.",
        True,
    )
    OUTDATED = (
        "Outdated",
        "Its kubelet is older than its group's minimum: its pods move to nodes with a newer one.",
        "Lower or remove cleaning.minKubeletVersion.",
        True,
    )
    UNHEALTHY = (
        "Unhealthy",
        "It has had a condition for longer than its group allows: its pods move to other nodes.",
        "Repair the node; or raise the time under cleaning.repair.",
        True,
    )
    PREEMPTED = (
        "Preempted",
        "A pod of higher priority is nominated to the node; HTAS evicts pods of lower priority for it.",
    )
    REARRANGED = "Rearranged", "The optimiser found a placement that schedules more pods of high priority."
    INSTEAD_OF_LAUNCH = (
        "InsteadOfLaunch",
        "Moving running pods costs less than the machine that pending pods need.",
    )
    NEARER_TO_USERS = "NearerToUsers", "HTAS moves services to edge nodes."
    REQUESTED = "Requested", "A user asked to move a pod."
    FORCED = "Forced", "A user asked to move a pod, and overrode the rules that keep it."
    HANDED_BACK = (
        "HandedBack",
        "A user hands back every machine. Evicted pods are pending until another scheduler binds them.",
    )


class OutcomeReason(StrEnum):
    """Why HTAS does not start or continue a decision; mostly of rearrangements and drains."""

    ROOM_TAKEN = "RoomTaken"
    """Another pod took reserved resources."""
    NODE_CLOSED = "NodeClosed"
    """A node that it uses or drains is gone, cordoned or not Ready."""
    NOTHING_GAINED = "NothingGained"
    """The pods it was made for are gone or scheduled: the remaining steps would gain nothing."""
    PROTECTED = "Protected"
    """A pod that was to leave its node may no longer be disrupted."""
    EVICTION_REFUSED = "EvictionRefused"
    """Disruption budgets refused an eviction for too long."""
    MOVE_FAILED = "MoveFailed"
    """A pod's migration was refused or rolled back. The pod stays; HTAS retries later."""
    CONTRADICTED = "Contradicted"
    """Of a suggestion: another party has bound, deleted or scaled away one of the pods that it moves."""
    NOT_READY = "NotReady"
    """Of a suggestion: a pod that it has moved does not become Ready where it is now."""
    PODS_PENDING = "PodsPending"
    """Of a suggestion: new pods are pending that no machine can be launched for; they come first."""
    TIMED_OUT = "TimedOut"
    """It took longer than it may."""
    REJECTED = "Rejected"
    """A user rejected it, or did not approve it in time (mode approve)."""
    OVERTAKEN = "Overtaken"
    """Another daemon has become leader."""
    POD_CAME = "PodCame"
    """Of a drain: a pod was bound to the node after the decision."""
    UNREADABLE_POD = "UnreadablePod"
    """Of a drain: HTAS cannot read a pod on the node, which may be running."""
    ENDS_FIRST = "EndsFirst"
    """Of a node that is handed back: a pod on it runs to completion first."""
    NOT_INITIALIZED = "NotInitialized"
    """Of a machine: start-up taints remained, or devices were missing, after `timeouts.initialization`."""
    CLAIM_GONE = "ClaimGone"
    """Of a drain: its machine is deleted, failed, or no longer HTAS's."""
    SEARCH_FAILED = "SearchFailed"
    """An optional search raised an exception: the plan was made without it."""
    PODS_RUN = "PodsRun"
    """Of a machine that was to be deleted: pods run on its node, which HTAS has not drained."""
    RELABELLED = "Relabelled"
    """Of a node's labels: the labels of ownership had been changed; HTAS restored them."""
    RENAMED = "Renamed"
    """Of a drain: its machine has registered under another name."""
    NOT_JOURNALLED = "NotJournalled"
    """Of a drain: the node is cordoned as HTAS does it, and no journal entry says why."""


class Invalid(msgspec.Struct, frozen=True):
    """Why a decision no longer holds: one of the reasons, and the message shown to people."""

    reason: OutcomeReason
    message: str
