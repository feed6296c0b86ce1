"""The status document: what HTAS does at this moment, for people with kubectl and nothing else.

Cluster Autoscaler's users know it as the ConfigMap cluster-autoscaler-status; ours is htas-<cluster>-status.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import yaml

from htas.daemon.loops.cycle import CycleResult
from htas.daemon.recommend.watching import WatchingAnnouncer
from htas.documents.recommendation import told_in_status
from htas.model.claims import COMING
from htas.model.money import price_text
from htas.model.outcomes import Action, OutcomeStatus
from htas.model.plan_document import instant_text
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.model.stages import Stage
from htas.planning.cluster.initialization import registered_nodes
from htas.planning.cluster.machines import learned_allocatable
from htas.planning.cluster.offered import shortfall
from htas.planning.place.edge_present import empty_groups

SOONEST_S = 10.0
"""Between two writes while things change."""
LATEST_S = 60.0
"""Between two writes while nothing does, so that a dead daemon's status looks old."""
MOST = 10
"""Of anything that is listed by name."""


_NOTED = frozenset({Action.LAUNCH, Action.DELETE, Action.DRAIN, Action.UNDO_DRAIN, Action.INITIALIZE, Action.MEASURE})


class StatusBoard:
    """Writes the status after cycles: at once when it changed, but not too often.

    `upcoming` tells when each stage runs next, which alone is no change: it is another instant after each cycle.
    """

    upcoming: Callable[[], Mapping[Stage, float]] = dict

    def __init__(self, announcer: WatchingAnnouncer, leader: str, policy: Callable[[], Policy]) -> None:
        self._announcer = announcer
        self._leader = leader
        self._policy = policy
        self._written: dict[str, Any] = {}
        self._written_at: float | None = None
        self._last: dict[str, str] = {}

    def observe(self, result: CycleResult) -> None:
        now = result.snapshot.taken_at
        self._note(result)
        status = status_of(result, self._policy()) | {"last": dict(self._last)}
        age_s = now - self._written_at if self._written_at is not None else LATEST_S
        if age_s < (SOONEST_S if status != self._written else LATEST_S):
            return
        self._written, self._written_at = status, now
        coming = {stage.value: instant_text(at) for stage, at in self.upcoming().items()}
        head = {"time": instant_text(now), "leader": self._leader, "next": coming}
        self._announcer.publish(yaml.safe_dump(head | status, sort_keys=False, allow_unicode=True))

    def _note(self, result: CycleResult) -> None:
        """The last time that something of each kind was done."""
        for outcome in result.outcomes:
            if outcome.action in _NOTED:
                is_done = outcome.status is OutcomeStatus.DONE
                what = outcome.message if is_done else f"{outcome.status}: {outcome.message}"
                self._last[outcome.action.value] = f"{instant_text(result.snapshot.taken_at)} {outcome.subject}: {what}"


def status_of(result: CycleResult, policy: Policy) -> dict[str, Any]:
    """The state after a cycle, as plain data."""
    snapshot, plan = result.snapshot, result.plan
    problems = [*result.remarks, *empty_groups(snapshot.cluster.nodes, policy)]
    problems += [f"{each.where}: {each.what}" for each in snapshot.cluster.problems]
    waiting = Counter(item.reason.value for item in plan.unplaced)
    recommended = told_in_status(result.savings, plan.cost.currency) if result.savings is not None else None
    return {
        **({"recommended": recommended} if recommended is not None else {}),
        "nodes": _nodes(result),
        "pods": {
            "running": sum(pod.node is not None for pod in snapshot.cluster.pods),
            "pending": sum(pod.node is None for pod in snapshot.cluster.pods),
            "unschedulable": dict(sorted(waiting.items())),
            "reservations": dict(sorted(Counter(item.reason.value for item in plan.nominate).items())),
        },
        "cost": {
            "currency": plan.cost.currency,
            "perHour": price_text(plan.cost.before_nanos),
        },
        "draining": {drain.node: drain.reason for drain in snapshot.drains[:MOST]},
        "kept": dict(sorted(Counter(item.reason.value for item in plan.kept).items())),
        "notInitialized": dict(list(registered_nodes(snapshot, policy).items())[:MOST]),
        "offersLess": dict(list(_offered(snapshot, policy).items())[:MOST]),
        "leaving": {
            claim.id: f"deletion requested {instant_text(claim.leaving_since)}: machine {claim.instance}"
            for claim in snapshot.claims
            if claim.leaving_since is not None
        },
        "cloud": snapshot.cloud_problem or "answers",
        "store": f"cannot be written: {snapshot.store_problem}" if snapshot.store_problem else "works",
        "backingOff": {
            "/".join(
                filter(None, (each.flavour or "every flavour", each.zone))
            ): f"until {instant_text(each.until)}: {each.reason}"
            for each in snapshot.backoffs[:MOST]
        },
        "problems": problems[:MOST],
        **_orphans(result),
    }


def _offered(snapshot: ClusterSnapshot, policy: Policy) -> dict[str, str]:
    """Flavours whose machines offer less than the price file says: what they offer."""
    learned = learned_allocatable(snapshot, policy.catalogue)
    flavours = ((each, learned.get(each.name)) for each in policy.catalogue.flavours)
    found = {each.name: shortfall(offered, each.allocatable) for each, offered in flavours if offered is not None}
    return {name: text for name, text in found.items() if text}


def _orphans(result: CycleResult) -> dict[str, Any]:
    """Machines that the configuration has no place for; nothing where there are none."""
    found = result.snapshot.orphans
    if not found:
        return {}
    counts = Counter(each.reason.value for each in found)
    return {"orphans": {"machines": dict(sorted(counts.items())), "first": [each.says for each in found[:MOST]]}}


def _nodes(result: CycleResult) -> dict[str, dict[str, int]]:
    """Nodes by group; machines that have no Ready node yet are `coming`."""
    groups: dict[str, dict[str, int]] = {}

    def add(group: str, state: str) -> None:
        counts = groups.setdefault(group, {"ready": 0, "notReady": 0, "draining": 0, "coming": 0})
        counts[state] += 1

    for node in result.snapshot.cluster.nodes:
        add(node.group or "none", "draining" if node.is_draining else "ready" if node.is_ready else "notReady")
    for claim in result.snapshot.claims:
        if claim.state in COMING:
            add(claim.group, "coming")
    return dict(sorted(groups.items()))
