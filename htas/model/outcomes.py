"""Outcomes: what became of each action of a cycle, and why, in words that code may branch on."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from htas.model.migrations import MigrationRecord
from htas.model.reasons import OutcomeReason


class Action(StrEnum):
    """What was done, or tried. People read these words in `htas history`, logs and metrics."""

    BIND = "bind"
    NOMINATE = "nominate"
    PREEMPT = "preempt"
    """A pod of lower priority is evicted, or deleted, for one that is nominated to its node."""

    LAUNCH = "launch"
    ADOPT = "adopt"
    """A machine of ours that the journal did not know is taken up."""
    OTHER_FLAVOUR = "other-flavour"
    """The cloud runs a machine of another flavour than was ordered, or one was resized."""
    RECONCILE = "reconcile"
    """The cloud's own usage has machines that the bills lacked."""
    INITIALIZE = "initialize"
    """A machine was not initialized in time: it fails, or is taken as it is."""
    MEASURE = "measure"
    """Machines of a flavour (the subject) offer less than the price file says."""
    SET_UP = "set-up"
    """A node is given labels and taints that it came without."""
    REVOKE_TOKEN = "revoke-token"
    DELETE = "delete"
    DELETE_NODE = "delete-node"

    DRAIN = "drain"
    UNDO_DRAIN = "undo-drain"
    EVICT = "evict"
    MIGRATE = "migrate"
    """A move off a node that is drained is begun, or one that somebody asked for."""
    MOVED = "moved"
    """A move has ended, either way."""

    SEARCH = "search"
    REARRANGE = "rearrange"
    """A rearrangement is begun, or could not be gone on with in this cycle."""
    MOVE = "move"
    """A pod leaves for its slot."""
    DISPLACE = "displace"
    """A pod is evicted for nowhere: it waits again."""
    REARRANGED = "rearranged"
    CANCEL_REARRANGEMENT = "cancel-rearrangement"
    SUGGEST = "suggest"
    """Moves for the edge's sake are begun."""
    SUGGESTED = "suggested"
    CANCEL_SUGGESTION = "cancel-suggestion"

    PROPOSE = "propose"
    """Of mode approve, as the next two: a disruption waits for a word. The subject is its id, `target` who said it."""
    APPROVE = "approve"
    REJECT = "reject"

    CLOSE = "close"
    """A node takes no pods any more: of `htas handback`, as the next three, or of a machine that failed."""
    OPEN = "open"
    END = "end"
    FORGET = "forget"

    CALL = "call"
    """A call that did not come to its action: it failed by a defect of htas, or this daemon leads no more."""


class OutcomeStatus(StrEnum):
    DONE = "done"
    DROPPED = "dropped"
    """The world had changed: the action was no longer right, and was not done."""
    FAILED = "failed"
    RECOMMENDED = "recommended"
    """It would be done, or would have been, were HTAS let: nothing was."""

    @property
    def is_well(self) -> bool:
        """Whether it came to what was planned, in the real course or in that with HTAS."""
        return self in (OutcomeStatus.DONE, OutcomeStatus.RECOMMENDED)


CLUSTER = "cluster"
"""The subject of what is about the whole: a search, a rearrangement."""


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one action.

    `subject` is a pod (namespace/name), a node, a claim, or `cluster`. `target` is the node that a pod is bound,
    nominated or moved to. `reason` is why it was not done, or is undone; None where it went well, or nobody branches on
    why. `message` is for people. `move` has the times and sizes of one that ended.
    """

    action: Action = msgspec.field(name="verb")
    """Written down as `verb`, as it always was."""
    subject: str
    status: OutcomeStatus
    message: str = ""
    reason: OutcomeReason | None = None
    target: str = ""
    move: MigrationRecord | None = None
