"""What the demo has seen so far, gathered from the daemon's cycles."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from htas.daemon.loops.cycle import CycleResult
from htas.documents.words import counted
from htas.model.money import price_text
from htas.model.nodes import Node
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.sandbox.world import World

EVENTS_KEPT = 12


@dataclass(frozen=True, slots=True)
class NodeLine:
    """A node as the view shows it."""

    name: str
    group: str
    flavour: str
    share: float
    pods: int
    state: str


@dataclass(slots=True)
class DemoState:
    """Grows with every cycle; the views only read it."""

    policy: Policy
    title: str
    world: World
    length_s: float
    start: float = 0.0
    result: CycleResult | None = None
    peak_nodes: int = 0
    cycles: int = 0
    planning_s: float = 0.0
    longest_plan_s: float = 0.0
    verbs: Counter[str] = field(default_factory=Counter)
    never_fits: dict[str, str] = field(default_factory=dict)
    events: deque[tuple[float, str, str]] = field(default_factory=lambda: deque(maxlen=EVENTS_KEPT))

    def __post_init__(self) -> None:
        self.start = self.world.clock.now()

    def saw(self, result: CycleResult) -> None:
        """Take in a cycle."""
        self.result = result
        self.cycles += 1
        self.planning_s += result.planning_s
        self.longest_plan_s = max(self.longest_plan_s, result.planning_s)
        self.peak_nodes = max(self.peak_nodes, len(result.snapshot.cluster.nodes))
        for outcome in result.outcomes:
            self.verbs[f"{outcome.action} {outcome.status.value}"] += 1
        for item in result.plan.unplaced:
            if item.reason == "NoFlavourFits":
                self.never_fits[item.pod] = item.message
        self._note(result)

    def _note(self, result: CycleResult) -> None:
        at, currency = result.snapshot.taken_at, result.plan.cost.currency
        launched: Counter[tuple[str, str, int]] = Counter()
        pods: Counter[tuple[str, str, int]] = Counter()
        for item in result.plan.launches:
            key = item.flavour, item.group, item.nanos_per_hour
            launched[key] += 1
            pods[key] += len(item.pods)
        for key, count in launched.items():
            price = price_text(key[2] * count)
            work = f" for {counted(pods[key], f'{key[1]} pod')}" if pods[key] else " as headroom"
            self.events.append((at, "launch", f"{count} × {key[0]}{work}, {price} {currency}/h"))
        for removal in result.plan.remove:
            saved = price_text(removal.savings_nanos_per_hour)
            self.events.append((at, "delete", f"{removal.node}: {removal.message}, saves {saved} {currency}/h"))

    @property
    def now(self) -> float:
        return self.world.clock.now()

    @property
    def progress(self) -> float:
        return min(1.0, (self.now - self.start) / self.length_s)

    @property
    def waiting(self) -> list[Pod]:
        view = self.result.snapshot.cluster if self.result is not None else None
        return [pod for pod in view.pods if pod.node is None] if view is not None else []

    def spent_nano_seconds(self) -> int:
        return self.world.ledger.nano_seconds(self.policy.catalogue.billing, self.now)

    def nodes(self) -> list[NodeLine]:
        """The nodes that are there and the starting machines, group by group, the fullest first."""
        if self.result is None:
            return []
        snapshot = self.result.snapshot
        pods: dict[str, list[Pod]] = {}
        for pod in snapshot.cluster.pods:
            if pod.node is not None:
                pods.setdefault(pod.node, []).append(pod)
        lines = [_line(node, pods.get(node.name, [])) for node in snapshot.cluster.nodes]
        there = {node.name for node in snapshot.cluster.nodes}
        lines += [
            NodeLine(claim.id, claim.group, claim.flavour, 0.0, 0, "coming")
            for claim in snapshot.claims
            if claim.is_coming and claim.id not in there
        ]
        return sorted(lines, key=lambda line: (line.group, -line.share, line.name))


def _line(node: Node, pods: list[Pod]) -> NodeLine:
    cpu = sum(pod.requests.cpu_m for pod in pods) / max(1, node.allocatable.cpu_m)
    memory = sum(pod.requests.memory_bytes for pod in pods) / max(1, node.allocatable.memory_bytes)
    work = sum(not pod.is_daemon for pod in pods)
    state = "draining" if node.is_draining else ("ready" if node.is_ready else "coming")
    return NodeLine(node.name, node.group or "-", node.flavour or "-", max(cpu, memory), work, state)
