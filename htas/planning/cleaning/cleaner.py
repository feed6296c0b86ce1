"""The cleaner: every node is a candidate or kept with a reason; candidates are tried from the least used upwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from htas.model.nodes import Node
from htas.model.plan import KeptNode, Migration, Removing
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.reasons import Kept, Removal
from htas.model.snapshot import ClusterSnapshot, Memory
from htas.planning.classes import ClassBook
from htas.planning.cleaning.candidates import Candidate, Question, judge
from htas.planning.cleaning.ledger import BudgetLedger
from htas.planning.cleaning.rescheduling import Rescheduler
from htas.planning.cleaning.utilization import is_empty, utilization
from htas.planning.packing.placing import Placer, Pool
from htas.planning.simulation import Simulation


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What the cleaning stage decided, and what the next plan must remember."""

    migrate: tuple[Migration, ...]
    remove: tuple[Removing, ...]
    kept: tuple[KeptNode, ...]
    memory: Memory


def clean(
    sim: Simulation,
    book: ClassBook,
    placer: Placer,
    snapshot: ClusterSnapshot,
    policy: Policy,
    now: float,
    *,
    is_due: bool,
    work_is_waiting: bool,
    needed: frozenset[str],
) -> Cleaning:
    """Decide which nodes to empty. `needed` are nodes this plan places work on.

    Not due: only the memory is brought up to date, and nodes that would be judged are kept for the next cycle.
    """
    pods_on: dict[str, list[Pod]] = {}
    for pod in snapshot.cluster.pods:
        where = pod.node or snapshot.expected_binds.get(pod.key)
        if where is not None:
            pods_on.setdefault(where, []).append(pod)
    memory = _remember(snapshot, policy, now, work_is_waiting, pods_on)
    question = Question(snapshot, policy, now, is_due, memory.queue_empty_since, memory, needed)
    claims = {claim.id: claim for claim in snapshot.claims}
    candidates: list[Candidate] = []
    kept: list[KeptNode] = []
    for node in snapshot.cluster.nodes:
        judged = judge(node, pods_on.get(node.name, ()), claims.get(node.claim or ""), question)
        if isinstance(judged, Candidate):
            candidates.append(judged)
        else:
            kept.append(judged)
    migrate, remove = _try_all(sim, book, placer, snapshot, policy, now, candidates, kept)
    return Cleaning(
        tuple(migrate),
        tuple(sorted(remove, key=lambda removing: removing.node)),
        tuple(sorted(kept, key=lambda keeping: keeping.node)),
        memory,
    )


def _remember(
    snapshot: ClusterSnapshot, policy: Policy, now: float, work_is_waiting: bool, pods_on: dict[str, list[Pod]]
) -> Memory:
    """Since when nodes are under-used or empty, and the queue too; nodes that are gone are forgotten."""
    before = snapshot.memory
    low: dict[str, float] = {}
    empty: dict[str, float] = {}
    for node in sorted(snapshot.cluster.nodes, key=lambda node: node.name):
        group = policy.group(node.group)
        if group is None:
            continue
        pods = pods_on.get(node.name, [])
        if utilization(node, pods, group.cleaning) <= group.cleaning.utilization_threshold:
            low[node.name] = before.underutilized_since.get(node.name, now)
        if is_empty(pods):
            empty[node.name] = before.empty_since.get(node.name, now)
    queue = None
    if not work_is_waiting:
        queue = before.queue_empty_since if before.queue_empty_since is not None else now
    return Memory(low, empty, queue)


def _try_all(
    sim: Simulation,
    book: ClassBook,
    placer: Placer,
    snapshot: ClusterSnapshot,
    policy: Policy,
    now: float,
    candidates: Sequence[Candidate],
    kept: list[KeptNode],
) -> tuple[list[Migration], list[Removing]]:
    """Candidates in ascending utilisation, the dearer first among equals. Adds to `kept` what stays."""
    moving = {move.pod for move in snapshot.moves} | {m.pod for drain in snapshot.drains for m in drain.moves}
    ledger = BudgetLedger(snapshot.cluster.budgets, [pod for pod in snapshot.cluster.pods if pod.key in moving])
    rescheduler = Rescheduler(sim, book, _present_only(placer, sim, snapshot), policy, ledger, now)
    sizes = _sizes(snapshot.cluster.nodes, policy)
    under_way = Counter(_group_of(snapshot, drain.node) for drain in snapshot.drains)
    migrate: list[Migration] = []
    remove: list[Removing] = []
    targets: set[str] = set()
    for candidate in sorted(candidates, key=lambda c: (c.utilization, -c.nanos_per_hour, c.node.name)):
        name, group = candidate.node.name, candidate.group
        if name in targets:
            kept.append(KeptNode(name, Kept.NEEDED, "pods of a node being emptied go there"))
        elif sizes[group.name] <= group.min_nodes:
            kept.append(KeptNode(name, Kept.MIN_SIZE_REACHED, f"group {group.name} keeps {group.min_nodes} nodes"))
        elif under_way[group.name] >= group.cleaning.max_nodes_at_once:
            message = f"{under_way[group.name]} nodes of group {group.name} are being emptied already"
            kept.append(KeptNode(name, Kept.TOO_MANY_AT_ONCE, message))
        else:
            moves = rescheduler.empty(candidate)
            if isinstance(moves, KeptNode):
                kept.append(moves)
                continue
            migrate += moves
            targets |= {move.target for move in moves}
            remove.append(_removing(candidate, len(moves)))
            sizes[group.name] -= 1
            under_way[group.name] += 1
    return migrate, remove


def _present_only(placer: Placer, sim: Simulation, snapshot: ClusterSnapshot) -> Placer:
    """Pods move only onto nodes that are there: machines on their way and cordoned ones are no targets."""
    there = {node.name for node in snapshot.cluster.nodes if node.is_ready}
    pools = []
    for pool in placer.pools:
        start = pool.rows.start
        for row in range(pool.rows.start, pool.rows.stop + 1):
            if row == pool.rows.stop or sim.table.nodes[row].name not in there:
                if row > start:
                    pools.append(Pool(pool.group, slice(start, row)))
                start = row + 1
    return placer.over(pools)


def _sizes(nodes: Sequence[Node], policy: Policy) -> Counter[str]:
    """Nodes of each group that are there and staying."""
    return Counter(
        node.group or "" for node in nodes if node.cluster == policy.cluster and node.is_ready and not node.is_draining
    )


def _group_of(snapshot: ClusterSnapshot, node_name: str) -> str:
    return next((node.group or "" for node in snapshot.cluster.nodes if node.name == node_name), "")


def _removing(candidate: Candidate, moves: int) -> Removing:
    reason = Removal.EMPTY if candidate.is_empty else Removal.UNDERUTILIZED
    message = "empty" if candidate.is_empty else f"utilisation {candidate.utilization:.0%}, {moves} pods move"
    return Removing(candidate.node.name, candidate.claim.id, reason, candidate.nanos_per_hour, message)
