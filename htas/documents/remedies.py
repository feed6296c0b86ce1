"""Each reason in a sentence, and what would change it: for people who read a reason and want to act on it."""
# ruff: noqa: E501 # a table of sentences: each is read, and changed, on its own line

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from htas.model.reasons import Kept, ProposalReason, Unplaced


class Meaning(msgspec.Struct, frozen=True):
    """What a reason says, and what would change it; empty: time alone, or nothing needs to."""

    says: str
    remedy: str = ""


KEPT: Mapping[Kept, Meaning] = {
    Kept.NOT_AUTOSCALED: Meaning(
        "HTAS did not buy it: it belongs to none of its node groups.",
        "A worker: replace it by a machine that HTAS buys, or adopt it with the labels htas.io/cluster, htas.io/claim and htas.io/group. The control plane stays as it is.",
    ),
    Kept.NO_PRICE: Meaning(
        "The price file does not have its instance type: it is in no price shown here, and nothing is planned for it.",
        "Add its flavour, with its price, to the price file (--flavours).",
    ),
    Kept.SCALE_DOWN_DISABLED: Meaning(
        "Somebody has annotated it so that no autoscaler removes it.",
        "kubectl annotate node NODE cluster-autoscaler.kubernetes.io/scale-down-disabled-",
    ),
    Kept.DO_NOT_DISRUPT: Meaning(
        "Somebody has annotated it, so that it is left alone.", "kubectl annotate node NODE htas.io/do-not-disrupt-"
    ),
    Kept.NOT_READY: Meaning(
        "Its kubelet does not report Ready; nobody can tell what still runs on it.", "kubectl describe node NODE"
    ),
    Kept.UNREADABLE_POD: Meaning(
        "A pod on it could not be understood, and may be at work.", "See the problems for which, and why."
    ),
    Kept.CLOUD_UNREACHABLE: Meaning(
        "The cloud does not answer, so its machine could not be given back.", "See the cloud's problem above."
    ),
    Kept.STORE_UNWRITABLE: Meaning(
        "The journal cannot be written, and nothing is emptied that is not written down first.",
        "Make room on the disk of store.path.",
    ),
    Kept.NOT_ELASTIC: Meaning(
        "It is of an edge group, where nothing is bought or released.", "elastic: true for its group."
    ),
    Kept.CLEANING_DISABLED: Meaning("Its group is not cleaned.", "cleaning.enabled: true for its group."),
    Kept.CLEANING_NOT_DUE: Meaning("Nodes are judged at the next cleaning cycle.", "cycles.cleaning"),
    Kept.NOT_UNDERUTILIZED: Meaning(
        "It is well used: more of it is asked for than the threshold.",
        "A higher cleaning.utilizationThreshold, or less work.",
    ),
    Kept.NOT_UNDERUTILIZED_LONG_ENOUGH: Meaning(
        "It has room to spare, but not for long enough yet.", "A shorter cleaning.underutilizedFor, or time."
    ),
    Kept.NOT_EMPTY_LONG_ENOUGH: Meaning(
        "It is empty, but not for long enough yet.", "A shorter cleaning.emptyFor, or time."
    ),
    Kept.QUEUE_NOT_EMPTY: Meaning(
        "Work waited within the last while: its room is about to be needed.",
        "A shorter cleaning.queueEmptyFor, or time.",
    ),
    Kept.PAID_UNTIL_PERIOD_ENDS: Meaning(
        "It is empty and paid for: it goes just before the next period would be charged.",
        "cleaning.emptyRelease: at-once",
    ),
    Kept.DRAINS_BEFORE_PERIOD_ENDS: Meaning(
        "It is hardly used, but paid for: it is emptied just before the next period would be charged.",
        "cleaning.emptyRelease: at-once",
    ),
    Kept.MIN_SIZE_REACHED: Meaning("Its group has no more nodes than it must have.", "A lower minNodes for its group."),
    Kept.CURRENTLY_BEING_DELETED: Meaning("It is on its way out already."),
    Kept.TOO_YOUNG: Meaning("It was bought a moment ago.", "A shorter cleaning.delayAfterLaunch, or time."),
    Kept.NEEDED: Meaning(
        "This plan places work on it.", "Nothing needs to: once that work has come it is judged as any other node."
    ),
    Kept.TOO_MANY_AT_ONCE: Meaning(
        "As many nodes are being emptied as may be at once.", "A higher cleaning.maxNodesAtOnce, or time."
    ),
    Kept.NO_PLACE_TO_MOVE_PODS: Meaning(
        "Nothing else has room for its pods.",
        "Consolidation (cleaning.consolidation.enabled) may buy one cheaper machine for several.",
    ),
    Kept.BLOCKED_BY_POD: Meaning(
        "A pod on it may not be moved.", "What lifts the rule that its message names; each node tells of which pods."
    ),
    Kept.BLOCKED_BY_ON_COMPLETION_POD: Meaning(
        "A pod on it asked to run to its end first.", "Time: the pod ends by itself."
    ),
    Kept.EMPTY_BEFORE_MIGRATION_PAYS: Meaning(
        "Its work ends before moving it would have paid for itself.", "Time; or a lower cleaning.migrationSeconds."
    ),
    Kept.BEING_REPLACED: Meaning("Cheaper machines are to take over its pods, or it is one of those."),
    Kept.CANNOT_CHECKPOINT: Meaning(
        "Its group moves pods by checkpoint, which its container runtime does not write.",
        "cleaning.migration: evict, or another runtime.",
    ),
    Kept.MIGRATION_FAILED: Meaning(
        "A pod of it could not be moved; it is left alone for a while.",
        "Time, and what its message says went wrong.",
    ),
}

UNPLACED: Mapping[Unplaced, Meaning] = {
    Unplaced.NO_FLAVOUR_FITS: Meaning(
        "No machine on offer could hold it, however many were bought.",
        "A flavour that is large enough, or other requests and constraints.",
    ),
    Unplaced.LIMIT_REACHED: Meaning(
        "A machine would hold it, but a limit forbids another one.",
        "Higher limits of the group or the cluster (limits.*).",
    ),
    Unplaced.NAMESPACE_LIMIT: Meaning(
        "Its namespace has as much of the machines as it may have.", "A higher limit under namespaces."
    ),
    Unplaced.QUOTA_REACHED: Meaning("The cloud would not grant another machine.", "A higher quota of the project."),
    Unplaced.CLOUD_UNREACHABLE: Meaning(
        "The cloud does not answer: nothing is bought until it does.", "See the cloud's problem above."
    ),
    Unplaced.STORE_UNWRITABLE: Meaning(
        "The journal cannot be written, so nothing is bought.", "Make room on the disk of store.path."
    ),
    Unplaced.BACKING_OFF: Meaning(
        "Every flavour that would hold it failed a moment ago.",
        "Time, at most timeouts.backoffMax; or another flavour.",
    ),
    Unplaced.CAPACITY_FREES_SOON: Meaning(
        "Batch nodes end their work before a purchase could arrive.", "Time, at most maxWaitForCapacity."
    ),
    Unplaced.OWN_MACHINE_CHEAPER: Meaning(
        "Nodes with room would be rented too long for it: a machine of its own comes.", "maxRentalLengthening"
    ),
    Unplaced.GATHERING: Meaning("Batch work waits a moment for more to be bought with it.", "Time, at most gatherFor."),
    Unplaced.SCHEDULING_GATED: Meaning(
        "It has scheduling gates, and does not count as waiting.", "Whoever set the gates removes them."
    ),
    Unplaced.NOT_SUPPORTED: Meaning(
        "It asks for something HTAS does not understand, and HTAS does not guess.",
        "Other constraints: what is explained of the pod names those.",
    ),
    Unplaced.AUTOSCALING_NOT_DUE: Meaning(
        "It has no room now; the next autoscaling cycle decides on buying.", "Time, at most cycles.autoscaling."
    ),
    Unplaced.NO_NODE_GROUP: Meaning(
        "No node group takes this kind of work.", "A node group with workload: any, or of its kind."
    ),
    Unplaced.SEARCH_UNDER_WAY: Meaning(
        "A better placement of what runs is being searched for.", "Time, at most fallback.budget."
    ),
    Unplaced.SURPLUS: Meaning("Its controller has all the pods it wants, and will delete it."),
    Unplaced.NOMINATED: Meaning(
        "Work of lower priority leaves for it; it waits for that.", "Time: their grace periods."
    ),
    Unplaced.GIVES_WAY: Meaning(
        "More important work takes the room that was made for it.", "A higher priority, or more room."
    ),
}

REMOVAL: Mapping[ProposalReason, Meaning] = {
    ProposalReason.EMPTY: Meaning("Nothing but its DaemonSet pods runs on it."),
    ProposalReason.UNDERUTILIZED: Meaning("Its pods fit elsewhere, and moving them pays."),
    ProposalReason.CONSOLIDATED: Meaning("Cheaper machines, bought for that, take over its pods."),
    ProposalReason.RETIRED: Meaning("Its flavour is retired in the price file: its pods go to machines of others."),
    ProposalReason.EXPIRED: Meaning(
        "Its machine is older than machines of its group may be: its pods go to others.",
        "A longer cleaning.maxNodeAge.",
    ),
}

OTHERS: Mapping[str, Meaning] = {
    "Coming": Meaning("It was bought and is not Ready yet."),
    "Leaving": Meaning(
        "It is being emptied and given back.",
        "To keep it: kubectl annotate node NODE htas.io/do-not-disrupt=true; what is under way is undone.",
    ),
    "Unjudged": Meaning("No cleaning cycle has judged it yet.", "Time, at most cycles.cleaning."),
}

_KNOWN: Mapping[str, Meaning] = {
    str(reason): said for table in (KEPT, UNPLACED, REMOVAL, OTHERS) for reason, said in table.items()
}


def meaning(reason: str) -> Meaning:
    """Of any reason that the API tells; an unknown one says nothing."""
    return _KNOWN.get(reason, Meaning(""))
