"""The edge's algorithms against the optimum of the document's own model (KubeDSM, equations 1 to 9) on random states.

Small edges: the gap to the optimum that CP-SAT proves on the same state with the same limits on moves, and how long
both take. Large ones: the gap to a bound that holds whatever is decided, with all edge nodes as one. "Counting" is the
search over subsets alone; "decided" is what the planner gets, with the program's bounded work where subsets do not
prove the decision best. Times are one core's work, which other processes disturb less than the clock's.

    python -m tools.bench.edge                 # 50 seeds of each small edge, 5 of each large one
    python -m tools.bench.edge --seeds 5 --large 1
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import msgspec
from rich.console import Console
from rich.table import Table

from htas.model.edge import EdgePolicy
from htas.planning.solvers.edge.new_pods import place_new
from htas.planning.solvers.edge.search import Qualities
from htas.planning.solvers.edge.state import (
    CLOUD,
    EdgeDecision,
    EdgeNode,
    EdgePod,
    EdgeService,
    EdgeState,
    Layout,
    Size,
    fits,
    minus,
)
from htas.planning.solvers.edge.suggesting import suggest
from tools.bench.edge_reference import carried_out, optimum, quality_bound

MIB = 2**20
POLICY = EdgePolicy(tidy_gain=math.inf)
COUNTING = msgspec.structs.replace(POLICY, search_s=0.0)
PROOF_S = 20.0
TABLE_4 = ((5000, 5000 * MIB), (4000, 4000 * MIB), (7000, 5000 * MIB))
TABLE_5 = ((1000, 950 * MIB), (1000, 1900 * MIB), (1000, 950 * MIB), (2000, 1900 * MIB))
SIZES = (*TABLE_5, (500, 512 * MIB), (1500, 1024 * MIB), (4000, 2048 * MIB))
TARGETS = (1.0, 1.0, 0.75, 0.5, 0.1)


@dataclass(frozen=True)
class Family:
    """States of one shape. `new` is the share of the pods that wait; the others run, four in five of them on the edge
    as far as it has room. The edge's cpu is asked for 1.1 to 1.6 times over, as in the document's first sweep.

    Where `is_full`, every node holds 16 pods of a quarter of a core of services that need none near and has half a core
    left: in sum much, but nowhere enough for the 40 pods of two cores that eight services have in the cloud.
    """

    name: str
    nodes: int
    pods: int
    services: int
    new: float
    is_full: bool = False

    @property
    def may_migrate(self) -> bool:
        return self.new == 0

    @property
    def decide(self) -> Callable[[EdgeState, EdgePolicy], EdgeDecision]:
        return suggest if self.may_migrate else place_new


SMALL = (
    Family("the document's nodes, suggestion", 0, 0, 4, 0.0),
    Family("the document's nodes, new pods", 0, 0, 4, 0.4),
    Family("3 nodes, 40 pods, suggestion", 3, 40, 5, 0.0),
    Family("3 nodes, 40 pods, new pods", 3, 40, 5, 0.5),
    Family("3 nodes, 40 pods of 10 services, suggestion", 3, 40, 10, 0.0),
    Family("3 nodes, 40 pods of 10 services, new pods", 3, 40, 10, 0.5),
)
LARGE = (
    Family("100 nodes, 2,000 pods, suggestion", 100, 2000, 50, 0.0),
    Family("100 nodes, 2,000 new pods", 100, 2000, 50, 1.0),
    Family("100 nodes, 2,000 pods, one in ten new", 100, 2000, 50, 0.1),
    Family("100 full nodes, 1,640 pods of 158 services, suggestion", 100, 1640, 158, 0.0, is_full=True),
    Family("300 full nodes, 4,840 pods of 500 services, suggestion", 300, 4840, 500, 0.0, is_full=True),
)


def random_state(family: Family, seed: int) -> EdgeState:
    rng = Random(seed)
    if family.is_full:
        return full_state(rng, family)
    if family.nodes:
        services = [(rng.choice(SIZES), rng.choice(TARGETS)) for _ in range(family.services)]
        members = [rng.randrange(family.services) for _ in range(family.pods)]
        asked = sum(services[service][0][0] for service in members)
        totals = _totals(rng, family.nodes, asked / rng.uniform(1.1, 1.6))
    else:
        services, totals = [(size, 1.0) for size in TABLE_5], list(TABLE_4)
        cpu = sum(total[0] for total in totals) * rng.uniform(1.1, 1.6)
        members = [s for s, (size, _) in enumerate(services) for _ in range(round(cpu / len(services) / size[0]))]
    rng.shuffle(members)
    free = list(totals)
    pods = [_pod(rng, family, free, number, service, services[service][0]) for number, service in enumerate(members)]
    nodes = (EdgeNode(f"edge-{i}", total, left) for i, (total, left) in enumerate(zip(totals, free, strict=True)))
    named = (EdgeService(f"bench/s{i}", target) for i, (_, target) in enumerate(services))
    return EdgeState(tuple(nodes), tuple(named), tuple(pods))


def full_state(rng: Random, family: Family) -> EdgeState:
    small, left, total = (250, 1000 * MIB), (500, 2000 * MIB), (4500, 18000 * MIB)
    nodes, few = range(family.nodes), family.services - 8
    anywhere = frozenset(nodes)
    near = [(rng.randrange(few), small, node) for node in nodes for _ in range(16)]
    far = [(few + n % 8, (2000 + 10 * (n % 8), 8000 * MIB), CLOUD) for n in range(family.pods - len(near))]
    return EdgeState(
        tuple(EdgeNode(f"edge-{i}", total, left) for i in nodes),
        tuple(EdgeService(f"bench/s{i}", float(i >= few)) for i in range(family.services)),
        tuple(
            EdgePod(f"bench/p{i}", service, size, where, False, True, anywhere)
            for i, (service, size, where) in enumerate([*near, *far])
        ),
    )


def _totals(rng: Random, nodes: int, cpu: float) -> list[Size]:
    """Uneven nodes, some with more memory for a core than the pods ask for, some with less."""
    totals = []
    for _ in range(nodes):
        cores = cpu / nodes * rng.uniform(0.7, 1.3)
        totals.append((int(cores // 500 * 500), int(cores * rng.uniform(0.9, 1.5)) * MIB))
    return totals


def _pod(rng: Random, family: Family, free: list[Size], number: int, service: int, size: Size) -> EdgePod:
    is_new, where = rng.random() < family.new, CLOUD
    taking = [node for node, left in enumerate(free) if fits(size, left)]
    if not is_new and taking and rng.random() < 0.8:
        where = rng.choice(taking)
        free[where] = minus(free[where], size)
    return EdgePod(f"bench/p{number}", service, size, where, is_new, True, frozenset(range(len(free))))


@dataclass
class Tally:
    """Sums over the seeds of a family."""

    reached: float = 0.0
    best: float = 0.0
    worst: float = 0.0
    counted: float = 0.0
    more_moves: int = 0
    unproven: int = 0

    def __post_init__(self) -> None:
        self.decided_ms: list[float] = []
        self.counted_ms: list[float] = []
        self.best_ms: list[float] = []


def measure(family: Family, seeds: int, *, is_small: bool) -> Tally:
    tally = Tally()
    for seed in range(seeds):
        state = random_state(family, seed)
        made, took = timed(lambda state=state: family.decide(state, POLICY))  # type: ignore[misc] # bound for mypy
        counted, counted_took = timed(lambda state=state: family.decide(state, COUNTING))  # type: ignore[misc] # likewise
        reached, best = quality(state, made), 0.0
        started = time.process_time()
        if is_small:
            proof = optimum(state, POLICY, may_migrate=family.may_migrate, search_s=PROOF_S)
            best = proof.quality
            tally.unproven += not proof.is_proven
            if abs(reached - best) < 1e-6:
                tally.more_moves += len(made.moves) - len(proof.decision.moves)
        else:
            best = quality_bound(state, POLICY, may_migrate=family.may_migrate, search_s=1.0)
        tally.best_ms.append((time.process_time() - started) * 1000)
        tally.reached, tally.best = tally.reached + reached, tally.best + best
        tally.counted += quality(state, counted)
        tally.worst = max(tally.worst, (best - reached) / abs(best))
        tally.decided_ms.append(took)
        tally.counted_ms.append(counted_took)
    return tally


def timed(decide: Callable[[], EdgeDecision]) -> tuple[EdgeDecision, float]:
    """(what was decided, milliseconds of one core: nothing here uses a second one)."""
    started = time.process_time()
    made = decide()
    return made, (time.process_time() - started) * 1000


def quality(state: EdgeState, made: EdgeDecision) -> float:
    layout = carried_out(state, made)
    start = Layout(state)
    assert all(
        left >= min(0, before)
        for a, b in zip(layout.free, start.free, strict=True)
        for left, before in zip(a, b, strict=True)
    )
    return Qualities(state, POLICY).total(layout.near)


def report(console: Console, title: str, families: tuple[Family, ...], seeds: int, *, is_small: bool) -> None:
    table = Table(title=f"{title}, seeds 0 to {seeds - 1}", title_justify="left")
    table.add_column("states")
    against = "optimum" if is_small else "bound"
    columns = [
        "quality",
        against,
        "gap %",
        "worst %",
        "counting: gap %",
        "ms median",
        "ms most",
        "counting: ms",
        f"{against}: ms",
    ]
    for column in [*columns, *(["moves more", "unproven"] if is_small else [])]:
        table.add_column(column, justify="right")
    for family in families:
        tally = measure(family, seeds, is_small=is_small)
        cells = [
            f"{tally.reached / seeds:.3f}",
            f"{tally.best / seeds:.3f}",
            f"{100 * (1 - tally.reached / tally.best):.3f}",
            f"{100 * tally.worst:.2f}",
            f"{100 * (1 - tally.counted / tally.best):.3f}",
            f"{statistics.median(tally.decided_ms):.0f}",
            f"{max(tally.decided_ms):.0f}",
            f"{statistics.median(tally.counted_ms):.0f}",
            f"{statistics.median(tally.best_ms):.0f}",
        ]
        extra = [str(tally.more_moves), str(tally.unproven)] if is_small else []
        table.add_row(family.name, *cells, *extra)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=50, help="of each small edge")
    parser.add_argument("--large", type=int, default=5, help="seeds of each large edge")
    arguments = parser.parse_args()
    console = Console(width=170)
    report(console, "Against the optimum", SMALL, arguments.seeds, is_small=True)
    if arguments.large:
        report(console, "Against the bound", LARGE, arguments.large, is_small=False)


if __name__ == "__main__":
    main()
