"""The life of a claim: what the journal says, what the cloud and the cluster show, and what follows. Pure."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from htas.model.claims import COMING, TRANSITIONS, ClaimState, Instance, InstanceState, NodeClaim
from htas.model.machine_times import MachineTimes
from htas.model.nodes import Node
from htas.model.policy import Cycles, Timeouts


class Then(StrEnum):
    """What must be done beside writing the new state."""

    NOTHING = "nothing"
    ASK_AGAIN = "ask again"
    """The cloud never answered: the same claim is asked for once more, and finds the first machine if there is one."""
    CLEAN_UP = "clean up"
    """Delete what is left: the machine by its id, the Node object by its name."""


class ClaimStep(msgspec.Struct, frozen=True):
    """What a claim comes to. A Struct, since each claim is given one in each cycle: twenty times quicker made."""

    state: ClaimState
    then: Then = Then.NOTHING
    message: str = ""


_BOOTING = COMING - {ClaimState.WANTED}
NOT_INITIALIZED = "not initialized"
"""How the message of a machine begins that failed for what its node lacked."""


class Lacks(msgspec.Struct, frozen=True):
    """What a registered node lacks beside Ready. `may_fail`: its machine is of no use, and runs no work."""

    awaited: tuple[str, ...] = ()
    may_fail: bool = False


NOTHING = Lacks()


def next_step(
    claim: NodeClaim,
    instance: Instance | None,
    node: Node | None,
    now: float,
    timeouts: Timeouts,
    lacks: Lacks = NOTHING,
    held: str | None = None,
) -> ClaimStep:
    """Where a claim stands, given its machine and node (None: there is none) and what that node lacks.

    `held` is what runs on the Ready node of a failed claim, so that its machine is not deleted; None: nothing.
    """
    if instance is not None and instance.state is InstanceState.DELETING:
        return _leaving(claim, now, timeouts)
    match claim.state:
        case ClaimState.WANTED if instance is None:
            if now - claim.since < timeouts.launch_s:
                return ClaimStep(claim.state, Then.ASK_AGAIN)
            return ClaimStep(
                ClaimState.FAILED, Then.CLEAN_UP, f"the cloud gave no machine within {timeouts.launch_s:g} s"
            )
        case ClaimState.FAILED if held is not None and node is not None and node.is_ready:
            return ClaimStep(ClaimState.READY, message=f"in use again: {held}; it had failed: {claim.message}")
        case ClaimState.FAILED:
            if instance is None and node is None:
                return ClaimStep(ClaimState.RELEASED, message=claim.message)
            return ClaimStep(ClaimState.FAILED, Then.CLEAN_UP, claim.message)
        case ClaimState.RELEASED:
            return ClaimStep(claim.state)
    if instance is None:
        return _vanished(claim, node, now, timeouts)
    was_initialized = claim.ready_at is not None or claim.state not in _BOOTING
    # A machine in error works while its node is Ready. A node that was initialized may be silent for a moment only.
    if instance.state is InstanceState.ERROR and not (node is not None and (node.is_ready or was_initialized)):
        return ClaimStep(ClaimState.FAILED, Then.CLEAN_UP, instance.fault or "the machine is in error")
    if claim.state is ClaimState.DRAINING:
        return ClaimStep(claim.state)
    if node is not None and not was_initialized and (node.is_ready or claim.node_ready_at is not None):
        return _initializing(claim, node, now, timeouts, lacks)
    return _waiting(claim, _shown(instance, node), now, timeouts, instance.fault)


def _initializing(claim: NodeClaim, node: Node, now: float, timeouts: Timeouts, lacks: Lacks) -> ClaimStep:
    """A node that has been Ready once. A node that flaps meanwhile gets no more time.

    At the timeout a machine that is of no use fails; any other is taken as it is.
    """
    if node.is_ready and not lacks.awaited:
        return ClaimStep(ClaimState.READY)
    limit = timeouts.initialization_s
    if claim.node_ready_at is None or now - claim.node_ready_at < limit:
        return ClaimStep(ClaimState.REGISTERED)
    missing = ", ".join(lacks.awaited if node.is_ready else ("Ready", *lacks.awaited))
    if lacks.may_fail:
        return ClaimStep(ClaimState.FAILED, Then.CLEAN_UP, f"{NOT_INITIALIZED} within {limit:g} s, without {missing}")
    return ClaimStep(ClaimState.READY, message=f"taken as it is after {limit:g} s, without {missing}")


def _leaving(claim: NodeClaim, now: float, timeouts: Timeouts) -> ClaimStep:
    """The machine is on its way out. Clouds forget such a wish when a host or a message queue dies meanwhile."""
    if claim.leaving_since is None or now - claim.leaving_since < timeouts.release_s:
        return ClaimStep(claim.state)
    return ClaimStep(claim.state, Then.CLEAN_UP, f"not gone within {timeouts.release_s:g} s: deleted again")


def _vanished(claim: NodeClaim, node: Node | None, now: float, timeouts: Timeouts) -> ClaimStep:
    """The cloud does not list the machine.

    A drained one that was seen leaving, or whose node is not Ready, has been released. A node that is Ready runs on
    something, whatever the list says: it may be of another project, or of a part of the cloud only. Any other machine
    is given time, since lists lag behind.
    """
    is_heard_of = node is not None and node.is_ready
    if claim.state is ClaimState.DRAINING and (claim.leaving_since is not None or not is_heard_of):
        return ClaimStep(ClaimState.RELEASED, Then.CLEAN_UP, "released")
    if is_heard_of or claim.missing_since is None or now - claim.missing_since < timeouts.missing_s:
        return ClaimStep(claim.state)
    return ClaimStep(ClaimState.FAILED, Then.CLEAN_UP, "the machine vanished from the cloud")


def _shown(instance: Instance, node: Node | None) -> ClaimState:
    """The state that the machine and its node show."""
    if node is not None:
        return ClaimState.READY if node.is_ready else ClaimState.REGISTERED
    return ClaimState.REQUESTED if instance.state is InstanceState.BUILDING else ClaimState.ACTIVE


def _waiting(claim: NodeClaim, shown: ClaimState, now: float, timeouts: Timeouts, fault: str) -> ClaimStep:
    if claim.state is shown is ClaimState.READY:  # as nearly all are
        return ClaimStep(claim.state)
    if claim.state is ClaimState.READY and shown is not ClaimState.READY:
        shown = ClaimState.REGISTERED  # a node that was there is given as long as one that registers late
    if shown is not claim.state and shown in TRANSITIONS[claim.state]:
        return ClaimStep(shown)
    limit, what = {
        ClaimState.REQUESTED: (timeouts.launch_s, "the machine was not active"),
        ClaimState.ACTIVE: (timeouts.registration_s, "no node registered"),
        ClaimState.REGISTERED: (timeouts.ready_s, "the node was not Ready"),
    }.get(claim.state, (float("inf"), ""))
    if now - claim.since >= limit:
        told = f": {fault}" if fault else ""
        return ClaimStep(ClaimState.FAILED, Then.CLEAN_UP, f"{what} within {limit:g} s{told}")
    return ClaimStep(claim.state)


UNSEEN_S = 60.0
"""After so long without a look, and more than two cycles, nobody knows when a machine came or went."""


def was_away(looked_at: float | None, now: float, cycles: Cycles) -> bool:
    """Whether nobody looked for too long to tell when what is seen now has come about; None: never before."""
    often_s = min(cycles.scheduling_s, cycles.autoscaling_s, cycles.cleaning_s)
    return looked_at is None or now - looked_at > max(UNSEEN_S, 2 * often_s)


def timed(times: MachineTimes, claim: NodeClaim, step: ClaimStep, now: float) -> MachineTimes:
    """What a claim's step teaches of how long machines take to come and to go."""
    state = step.state
    if (
        state is ClaimState.READY
        and claim.is_coming
        and claim.ready_at is None
        and not claim.is_adopted
        and not step.message
    ):
        return times.started(now - claim.created_at)
    if state is ClaimState.RELEASED and claim.state is ClaimState.DRAINING and claim.leaving_since is not None:
        return times.released(now - claim.leaving_since)
    return times


def in_state(claim: NodeClaim, step: ClaimStep, now: float) -> NodeClaim:
    """The claim with a step taken. An edge the transition table lacks is a defect of ours."""
    if step.state is claim.state:
        return claim
    assert step.state in TRANSITIONS[claim.state], f"{claim.id}: {claim.state} -> {step.state}"
    return msgspec.structs.replace(claim, state=step.state, since=now, message=step.message or claim.message)


def stepped(claim: NodeClaim, step: ClaimStep, node: Node | None, now: float) -> NodeClaim:
    """The claim with a step taken, and with what its node shows: its name, and since when it has been Ready."""
    ready_at, node_ready_at = claim.ready_at, claim.node_ready_at
    if ready_at is None and step.state is ClaimState.READY:
        ready_at = now
    elif ready_at is None and claim.state is ClaimState.READY:  # of a journal that did not note it
        ready_at = claim.since
    if node_ready_at is None and node is not None and node.is_ready:
        node_ready_at = min(now, node.ready_since or now) if claim.is_adopted else now
    name = node.name if node is not None else None
    return msgspec.structs.replace(
        in_state(claim, step, now), node=name, ready_at=ready_at, node_ready_at=node_ready_at
    )


def is_news(claim: NodeClaim, step: ClaimStep, node: Node | None) -> bool:
    """Whether a claim is in another state, or its node is Ready for the first time."""
    is_first = claim.is_coming and claim.node_ready_at is None and node is not None and node.is_ready
    return step.state is not claim.state or (is_first and step.state is ClaimState.REGISTERED)


_INSTANTS = ("since", "missing_since", "leaving_since", "ready_at", "node_ready_at")
"""What is counted from. When a claim was made and its machine rented is what its bill says."""


def not_ahead(claim: NodeClaim, now: float) -> NodeClaim:
    """The claim with no instant later than now.

    A clock that was three days ahead and is put right would have every machine wait three days for its next step.
    """
    noted = {name: getattr(claim, name) for name in _INSTANTS}
    ahead = {name: now for name, at in noted.items() if at is not None and at > now}
    return msgspec.structs.replace(claim, **ahead) if ahead else claim
