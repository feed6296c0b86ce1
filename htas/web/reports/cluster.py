"""`/cluster`: the whole at a glance. Nodes stand in columns: 5,000 of them as objects are three times as large."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec

from htas.documents.nodes import pods_by_node
from htas.documents.remedies import Meaning, meaning
from htas.model.approvals import ApprovalState
from htas.model.claims import NodeClaim
from htas.model.money import price_text
from htas.model.nodes import Node
from htas.model.pods import Pod
from htas.model.policy import NodeGroup
from htas.web.seat import Picture, Seat

NO_GROUP = "(none)"


class Columns(msgspec.Struct, frozen=True):
    """Of each node, in order of the groups and then of what is asked of it, the fullest first: `group`, `flavour` and
    `why` are places in the lists of that name; shares are of a thousand.
    """

    name: Sequence[str]
    group: Sequence[int]
    flavour: Sequence[int]
    why: Sequence[int]
    cpu: Sequence[int]
    memory: Sequence[int]
    pods: Sequence[int]


class Group(msgspec.Struct, frozen=True):
    """A node group, or what belongs to none; shares are of what its nodes offer."""

    name: str
    nodes: int
    pods: int
    price_per_hour: str
    cpu: float
    memory: float
    most_nodes: int | None = None
    most_price_per_hour: str | None = None


class Why(msgspec.Struct, frozen=True):
    """A reason for which nodes stay or go, how many, and what they cost an hour."""

    reason: str
    nodes: int
    price_per_hour: str
    meaning: Meaning


class Coming(msgspec.Struct, frozen=True):
    """A machine on its way, for how many pods."""

    claim: str
    group: str
    flavour: str
    state: str
    since: float
    price_per_hour: str
    pods: int


class Waiting(msgspec.Struct, frozen=True):
    """Pods that wait for one and the same reason."""

    reason: str
    message: str
    pods: int
    such_as: str
    meaning: Meaning


class OnTheMove(msgspec.Struct, frozen=True):
    """A pod that is being moved."""

    pod: str
    source: str
    target: str
    method: str


class Leaving(msgspec.Struct, frozen=True):
    """A node that is being emptied."""

    node: str
    reason: str
    since: float
    pods: int


class Totals(msgspec.Struct, frozen=True):
    """`gap`: how far above the least possible the price is, as a share of that. `unpriced` nodes are in no price."""

    price_per_hour: str
    least_per_hour: str
    gap: float
    nodes: int
    pods: int
    waiting: int
    cpu: float
    memory: float
    idle_per_hour: str
    unpriced: int = 0


class ClusterReport(msgspec.Struct, frozen=True):
    """The cluster now. `awaits` is how much waits for a word; null: nothing does in this mode."""

    version: int
    mode: str
    awaits: int | None
    at: float
    cluster: str
    currency: str
    totals: Totals
    groups: Sequence[Group]
    flavours: Sequence[str]
    reasons: Sequence[Why]
    nodes: Columns
    coming: Sequence[Coming]
    waiting: Sequence[Waiting]
    moves: Sequence[OnTheMove]
    leaving: Sequence[Leaving]
    problems: Sequence[str]


class Judged(msgspec.Struct, frozen=True):
    """A node with its pods, and why it stays or goes."""

    node: Node
    pods: Sequence[Pod]
    group: str
    flavour: str
    why: str
    message: str
    cpu: float
    memory: float
    nanos: int
    asked_cpu_m: int
    asked_bytes: int


@lru_cache(maxsize=1)
def judged(picture: Picture) -> tuple[Judged, ...]:
    """Every node, by group, the fullest first. Worked out once for each picture: a tenth of a second for 5,000."""
    on, policy = pods_by_node(picture.snapshot.cluster), picture.policy
    kept = {item.node: (item.reason.value, item.message) for item in picture.plan.kept}
    going = {item.node: ("Leaving", item.message or item.reason.value) for item in picture.plan.remove}
    drains = {drain.node: ("Leaving", drain.reason) for drain in picture.snapshot.drains}
    why = {**kept, **going, **drains}
    found = []
    for node in picture.snapshot.cluster.nodes:
        pods = on.get(node.name, ())
        group = policy.group(node.group)
        known = picture.figures.of(node, pods, (group or policy.groups[0]).cleaning, picture.at)
        reason, message = why.get(node.name, ("Unjudged", ""))
        found.append(
            Judged(
                node,
                pods,
                node.group or NO_GROUP,
                node.flavour or "",
                reason,
                message,
                known.cpu,
                known.memory,
                policy.price_of(node) or 0,
                known.asked_cpu_m,
                known.asked_bytes,
            )
        )
    picture.figures.keep({node.name for node in picture.snapshot.cluster.nodes})
    return tuple(sorted(found, key=_fullest_first))


def _fullest_first(each: Judged) -> tuple[bool, str, float, str]:
    return each.group == NO_GROUP, each.group, -max(each.cpu, each.memory), each.node.name


def _awaits(seat: Seat, picture: Picture) -> int | None:
    """How much waits for a word; None: nothing ever does."""
    if picture.policy.approval is None or seat.approvals is None:
        return None
    return sum(each.state is ApprovalState.WAITING for each in seat.approvals.asked())


def cluster_report(seat: Seat, picture: Picture) -> ClusterReport:
    nodes = judged(picture)
    groups = _groups(nodes, picture)
    reasons = _reasons(nodes)
    flavours = sorted({each.flavour for each in nodes})
    snapshot, cost = picture.snapshot, picture.plan.cost
    return ClusterReport(
        version=picture.version,
        mode=seat.mode,
        awaits=_awaits(seat, picture),
        at=picture.at,
        cluster=picture.policy.cluster,
        currency=cost.currency,
        totals=_totals(nodes, picture),
        groups=groups,
        flavours=flavours,
        reasons=reasons,
        nodes=_columns(nodes, [each.name for each in groups], flavours, [each.reason for each in reasons]),
        coming=_coming(picture),
        waiting=_waiting(picture),
        moves=[OnTheMove(each.pod, each.source, each.target or "", each.method) for each in snapshot.moves],
        leaving=_leaving(picture),
        problems=_problems(picture),
    )


def _columns(nodes: Sequence[Judged], groups: list[str], flavours: list[str], reasons: list[str]) -> Columns:
    places = {name: i for i, name in enumerate(groups)}
    kinds = {name: i for i, name in enumerate(flavours)}
    whys = {name: i for i, name in enumerate(reasons)}
    return Columns(
        name=[each.node.name for each in nodes],
        group=[places[each.group] for each in nodes],
        flavour=[kinds[each.flavour] for each in nodes],
        why=[whys[each.why] for each in nodes],
        cpu=[round(each.cpu * 1000) for each in nodes],
        memory=[round(each.memory * 1000) for each in nodes],
        pods=[len(each.pods) for each in nodes],
    )


def _groups(nodes: Sequence[Judged], picture: Picture) -> list[Group]:
    of: dict[str, list[Judged]] = defaultdict(list)
    for each in nodes:
        of[each.group].append(each)
    names = list(dict.fromkeys([*(each.group for each in nodes), *(group.name for group in picture.policy.groups)]))
    return [_group(name, of.get(name, []), picture.policy.group(name)) for name in names]


def _group(name: str, nodes: Sequence[Judged], group: NodeGroup | None) -> Group:
    cpu, memory = _used(nodes)
    most = group.limits.max_nanos_per_hour if group is not None else None
    return Group(
        name,
        len(nodes),
        sum(len(each.pods) for each in nodes),
        price_text(sum(each.nanos for each in nodes)),
        cpu,
        memory,
        group.limits.max_nodes if group is not None else None,
        price_text(most) if most is not None else None,
    )


def _used(nodes: Iterable[Judged]) -> tuple[float, float]:
    """What is asked for of what the nodes offer, DaemonSet pods and all."""
    offered_cpu = offered_memory = asked_cpu = asked_memory = 0
    for each in nodes:
        offered_cpu += each.node.allocatable.cpu_m
        offered_memory += each.node.allocatable.memory_bytes
        asked_cpu += each.asked_cpu_m
        asked_memory += each.asked_bytes
    cpu = asked_cpu / offered_cpu if offered_cpu else 0.0
    return round(cpu, 4), round(asked_memory / offered_memory if offered_memory else 0.0, 4)


def _totals(nodes: Sequence[Judged], picture: Picture) -> Totals:
    cpu, memory = _used(nodes)
    cost = picture.plan.cost
    total = sum(each.nanos for each in nodes)
    idle = sum(round(each.nanos * max(0.0, 1 - (each.cpu + each.memory) / 2)) for each in nodes)
    gap = max(0, total - cost.bound_nanos) / cost.bound_nanos if cost.bound_nanos else 0.0
    pods = picture.snapshot.cluster.pods
    waiting = sum(pod.node is None for pod in pods)
    return Totals(
        price_text(total),
        price_text(cost.bound_nanos),
        round(gap, 4),
        len(nodes),
        len(pods) - waiting,
        waiting,
        cpu,
        memory,
        price_text(idle),
        sum(picture.policy.price_of(each.node) is None for each in nodes),
    )


def _reasons(nodes: Sequence[Judged]) -> list[Why]:
    counts = Counter(each.why for each in nodes)
    prices: Counter[str] = Counter()
    for each in nodes:
        prices[each.why] += each.nanos
    return [Why(name, count, price_text(prices[name]), meaning(name)) for name, count in counts.most_common()]


def _coming(picture: Picture) -> list[Coming]:
    plan, claims = picture.plan, {claim.id for claim in picture.snapshot.claims}
    meant = Counter(picture.plan.memory.meant_for.values()) + Counter(item.node for item in plan.nominate)
    there = {node.claim for node in picture.snapshot.cluster.nodes if node.is_ready}
    found = [
        _on_its_way(claim, meant[claim.id])
        for claim in picture.snapshot.claims
        if claim.is_coming and claim.id not in there
    ]
    found += [
        Coming(
            item.claim, item.group, item.flavour, "Wanted", picture.at, price_text(item.nanos_per_hour), len(item.pods)
        )
        for item in plan.launches
        if item.claim not in claims
    ]
    return found


def _on_its_way(claim: NodeClaim, pods: int) -> Coming:
    price = price_text(claim.nanos_per_hour)
    return Coming(claim.id, claim.group, claim.flavour, claim.state.value, claim.since, price, pods)


def _waiting(picture: Picture) -> list[Waiting]:
    counts = Counter((item.reason.value, item.message) for item in picture.plan.unplaced)
    first = {(item.reason.value, item.message): item.pod for item in reversed(picture.plan.unplaced)}
    return [Waiting(*key, count, first[key], meaning(key[0])) for key, count in counts.most_common(50)]


def _leaving(picture: Picture) -> list[Leaving]:
    going = {drain.node for drain in picture.snapshot.drains}
    counts = Counter(pod.node for pod in picture.snapshot.cluster.pods if pod.node in going and not pod.is_daemon)
    return [Leaving(each.node, each.reason, each.started_at, counts[each.node]) for each in picture.snapshot.drains]


def _problems(picture: Picture) -> list[str]:
    snapshot = picture.snapshot
    found = [f"the cloud does not answer: {snapshot.cloud_problem}"] if snapshot.cloud_problem else []
    found += [f"the store cannot be written: {snapshot.store_problem}"] if snapshot.store_problem else []
    found += [f"{each.flavour or 'every flavour'} is not asked for: {each.reason}" for each in snapshot.backoffs[:5]]
    return found + [f"{each.where}: {each.what}" for each in snapshot.cluster.problems[:10]]
