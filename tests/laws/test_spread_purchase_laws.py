"""Laws of buying for work that spreads: as few machines as any plan that kube-scheduler would carry out.

The least number is found by trying all numbers of machines in all zones, with arithmetic of its own: a constraint holds
where some number m exists that every domain reaches and no domain with new pods exceeds by more than maxSkew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.constraints import Constraints, SpreadConstraint
from htas.model.nodes import HOSTNAME_LABEL, ZONE_LABEL
from htas.model.plan import Plan
from htas.model.snapshot import ClusterSnapshot
from htas.planning.planner import plan
from tests.builders import NOW, labels_are, make_flavour, make_node, make_pod, make_policy, make_snapshot, running

Law = settings(max_examples=150, deadline=None, derandomize=True)
BEYOND = 10**9


@dataclass(frozen=True)
class Row:
    """A machine: its zone, how many pods more it holds, how many it has."""

    zone: str
    room: int
    has: int = 0


@dataclass(frozen=True)
class Case:
    """Full nodes, and pods that spread over zones (with a node each), nodes or both.

    `by_zone` and `by_node` are (maxSkew, minDomains).
    """

    zones: tuple[str, ...]
    per_machine: int
    waiting: int
    by_zone: tuple[int, int] | None
    by_node: tuple[int, int] | None
    there: tuple[Row, ...]

    @property
    def constraints(self) -> Constraints:
        kinds = (ZONE_LABEL, self.by_zone), (HOSTNAME_LABEL, self.by_node)
        return Constraints(
            spread=tuple(
                SpreadConstraint(key, kind[0], labels_are(app="web"), min_domains=kind[1])
                for key, kind in kinds
                if kind
            )
        )

    def snapshot(self) -> ClusterSnapshot:
        web = {"labels": {"app": "web"}, "constraints": self.constraints}
        pods = [make_pod(f"p{i:02}", "1", "1Mi", **web) for i in range(self.waiting)]
        nodes = []
        for i, row in enumerate(self.there):
            nodes.append(make_node(f"n{i}", str(row.has), labels={ZONE_LABEL: row.zone}))
            pods += [running(make_pod(f"r{i}-{j}", "1", "1Mi", **web), f"n{i}") for j in range(row.has)]
        return make_snapshot(nodes, pods)


@st.composite
def cases(draw: Any) -> Case:
    zones = ("a", "b", "c")[: draw(st.integers(1, 3))]
    kinds = st.tuples(st.integers(1, 2), st.sampled_from([1, 1, 2, 3]))
    by_zone, by_node = draw(st.sampled_from([(True, False), (True, False), (False, True), (True, True)]))
    per_machine = draw(st.sampled_from([2, 3, 5, 8, 13, 20]))
    there = [*zones, *draw(st.lists(st.sampled_from(zones), max_size=2))] if by_zone or draw(st.booleans()) else []
    counts = st.sampled_from([0, 0, 1, 2, per_machine // 2, per_machine])
    return Case(
        zones,
        per_machine,
        draw(st.integers(1, 4 * per_machine)),
        draw(kinds) if by_zone else None,
        draw(kinds) if by_node else None,
        tuple(Row(zone, 0, draw(counts)) for zone in there),
    )


def guesses(kind: tuple[int, int] | None, domains: int, most: int) -> Iterable[int | None]:
    """What the emptiest domain could come to; None: nothing depends on it."""
    if kind is None:
        return [None]
    return [0] if domains < kind[1] else range(most + 1)


def span(has: int, room: int, least: int | None, kind: tuple[int, int] | None) -> tuple[int, int]:
    """How many pods a domain may be given (at least, at most)."""
    if least is None or kind is None:
        return 0, room
    return max(0, least - has), min(room, max(0, least + kind[0] - has))


def holds(case: Case, rows: Sequence[Row]) -> bool:
    """Whether all that wait could be on these machines."""
    most = case.waiting + sum(row.has for row in rows)
    zones = {row.zone for row in rows}
    for on_node in guesses(case.by_node, len(rows), most):
        spans = [(row, *span(row.has, row.room, on_node, case.by_node)) for row in rows]
        for in_zone in guesses(case.by_zone, len(zones), most):
            of_zones = []
            for zone in zones:
                here = [each for each in spans if each[0].zone == zone]
                least, largest = span(sum(row.has for row, _, _ in here), BEYOND, in_zone, case.by_zone)
                of_zones.append((max(least, sum(low for _, low, _ in here)), min(largest, sum(h for *_, h in here))))
            low, high = sum(low for low, _ in of_zones), sum(high for _, high in of_zones)
            if all(a <= b for _, a, b in spans) and all(a <= b for a, b in of_zones) and low <= case.waiting <= high:
                return True
    return False


def least_machines(case: Case, at_most: int) -> int | None:
    """The least number of machines, in whatever zones, that hold all; None: more than that."""
    for total in range(at_most + 1):
        for each in product(range(total + 1), repeat=len(case.zones)):
            more = [Row(zone, case.per_machine) for zone, n in zip(case.zones, each, strict=True) for _ in range(n)]
            if len(more) == total and holds(case, [*case.there, *more]):
                return total
    return None


def skews(case: Case, made: Plan) -> bool:
    """Whether somebody new is where kube-scheduler would not have put them."""
    rows = [(f"n{i}", row.zone, row.has, 0) for i, row in enumerate(case.there)]
    rows += [(item.claim, item.zone or "", 0, len(item.pods)) for item in made.launch]
    for kind, domain_of in ((case.by_zone, 1), (case.by_node, 0)):
        counts: Counter[str] = Counter()
        for row in rows:
            counts[row[domain_of]] += row[2] + row[3]
        least = min(counts.values()) if kind is not None and len(counts) >= kind[1] else 0
        if kind is not None and any(row[3] and counts[row[domain_of]] - least > kind[0] for row in rows):
            return True
    return False


@Law
@given(cases())
def test_no_machine_more_than_spread_asks_for(case: Case) -> None:
    flavour = make_flavour("only", str(case.per_machine), "1Gi", "0.1", zones=case.zones)
    made = plan(case.snapshot(), make_policy(flavours=[flavour]), NOW)
    assert not skews(case, made)
    if made.unplaced:
        assert least_machines(case, 5) is None
    elif len(made.launch) <= 8:  # more are too many to try them all
        assert len(made.launch) == least_machines(case, len(made.launch))
