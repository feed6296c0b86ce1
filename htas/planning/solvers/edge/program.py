"""The document's model (KubeDSM, equations 1 to 9) as an integer program over some pods and some nodes of a state.

u(i, j, k) says of each pod whether it is on each node. Pods of one kind may change places, so here x(c, k) is how many
pods of kind c are on edge node k, which is the same model without its symmetries. With n pods of a service on the
edge, p pods in all, the target Q and t = ⌈Q·p⌉:

    n = low + over,  low ≤ t,  low ≥ t·met,  over ≤ (p - t)·met                                (2), (3)
    QoS = α·(low/p - Q) + β·over/p + (γ + (β - α)·(t/p - Q))·met                               (4)
    Σ_k x(c, k) ≤ |c|                                                                          (7)
    Σ_c size(c)·x(c, k) ≤ room(k), for cpu, memory and the rest                                (8)
    pods that come from the cloud ≤ M_C2E, pods that change their edge node ≤ M_ER, pods that leave the edge ≤ M_E2C
    maximise Σ QoS, then minimise the moves Σ θ                                                (6), (9)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, floor, lcm

from ortools.sat.python import cp_model

from htas.model.edge import EdgePolicy
from htas.planning.solvers.edge.search import TOLERANCE, Qualities
from htas.planning.solvers.edge.state import (
    CLOUD,
    EdgeNode,
    EdgePod,
    EdgeState,
    Layout,
    Size,
    joinable,
    kinds_of,
    plus,
    summed,
)

Expression = cp_model.LinearExpr
FINEST = 1_000_000_000
"""Qualities are whole numbers in the program, of a millionth of the policy's unit or finer, down to one of these."""


def scale_of(counts: Iterable[int]) -> int:
    """How many of the program's units of quality are one of the policy's, for services with so many pods.

    A multiple of 100 and of every count, where that is not too fine: so one pod of 3, 7 or 11 is worth a whole number,
    and what is equally good is equal. With 3, 7 and 11 pods 1,016,400.
    """
    exact = 100 * lcm(*counts)
    return exact * -(-1_000_000 // exact) if exact <= FINEST else 1_000_000


def changeable(state: EdgeState, *, may_migrate: bool) -> list[int]:
    """The pods that a decision is about: those that run and may be moved, or those that are new."""
    if may_migrate:
        return [number for number, pod in enumerate(state.pods) if not pod.is_new and pod.may_move]
    return [number for number, pod in enumerate(state.pods) if pod.is_new]


@dataclass(slots=True)
class EdgeLayout:
    """The best layout found, if any; `bound` is what no layout's quality can exceed, in the policy's units.

    `is_best` where its quality is proven to be the best, `is_least` where so few moves are proven to be the fewest.
    """

    layout: Layout | None
    bound: float
    is_best: bool = False
    is_least: bool = False


@dataclass(slots=True)
class _Kind:
    members: list[int]
    home: int
    on: dict[int, cp_model.IntVar] = field(default_factory=dict)


class EdgeProgram:
    """Decides on `pods` alone, on `nodes` alone (None: all): all else stays as it is in the state."""

    def __init__(
        self, state: EdgeState, policy: EdgePolicy, pods: Iterable[int], nodes: frozenset[int] | None = None
    ) -> None:
        state = joinable(state)
        self._state, self._policy = state, policy
        self._start = Layout(state)
        self._qualities = Qualities(state, policy)
        self._scale = scale_of(count for count in self._qualities.count if count)
        self._nodes = frozenset(range(len(state.nodes))) if nodes is None else nodes
        self._model = cp_model.CpModel()
        self._kinds = [
            _Kind(members, state.pods[members[0]].where)
            for members in kinds_of(state, pods)
            if state.pods[members[0]].where in self._nodes or state.pods[members[0]].allowed & self._nodes
        ]
        self._room = self._rooms()
        for kind in self._kinds:
            self._add_counts(kind)
        self._keep_room()
        lifts, reorderings, offloads = self._moves()
        self._model.add(_sum(lifts) <= policy.cloud_to_edge_moves)
        self._model.add(_sum(reorderings) <= policy.reorder_moves)
        self._model.add(_sum(offloads) <= policy.edge_to_cloud_moves)
        self._moved = _sum([*lifts, *reorderings, *offloads])
        self._quality, self._fixed = self._qualities_of_services()

    def _rooms(self) -> list[Size]:
        """What each node has left when all of the program's pods are away."""
        room = list(self._start.free)
        for kind in self._kinds:
            for pod in kind.members if kind.home != CLOUD else ():
                room[kind.home] = plus(room[kind.home], self._state.pods[pod].size)
        return room

    def _add_counts(self, kind: _Kind) -> None:
        """x(c, k) and (7). Nothing joins a node that is too small for it."""
        pod, many = self._state.pods[kind.members[0]], len(kind.members)
        for node in sorted((pod.allowed | {kind.home}) & self._nodes):
            room = self._room[node]
            most = min((there // asked for asked, there in zip(pod.size, room, strict=True) if asked), default=many)
            if node == kind.home:
                kind.on[node] = self._model.new_int_var(0, many, "")
            elif most > 0:
                kind.on[node] = self._model.new_int_var(0, min(many, most), "")
        if len(kind.on) > 1:
            self._model.add(_sum(list(kind.on.values())) <= many)

    def _keep_room(self) -> None:
        """(8). Where all that might be there fits nothing need be kept, nor where an over-full node's own pods are all
        that might: they may stay."""
        on_node: dict[int, list[tuple[int, cp_model.IntVar]]] = defaultdict(list)
        for number, kind in enumerate(self._kinds):
            for node, count in kind.on.items():
                on_node[node].append((number, count))
        for node, counts in on_node.items():
            for resource, most in enumerate(self._room[node]):
                uses = [
                    (self._size(n)[resource], self._kinds[n], count) for n, count in counts if self._size(n)[resource]
                ]
                at_most = sum(use * len(kind.members) for use, kind, _ in uses)
                now = sum(use * len(kind.members) for use, kind, _ in uses if kind.home == node)
                if at_most > max(most, now):
                    self._model.add(_sum([use * count for use, _, count in uses]) <= most)

    @property
    def counts(self) -> int:
        """How many x(c, k) there are."""
        return sum(len(kind.on) for kind in self._kinds)

    def _size(self, kind: int) -> Size:
        return self._state.pods[self._kinds[kind].members[0]].size

    def _moves(self) -> tuple[list[Expression], list[Expression], list[Expression]]:
        """θ (6): from the cloud, within the edge, to the cloud. A new pod's seat is none."""
        lifts: list[Expression] = []
        reorderings: list[Expression] = []
        offloads: list[Expression] = []
        for kind in self._kinds:
            if kind.home != CLOUD:
                reorderings += [count for node, count in kind.on.items() if node != kind.home]
                offloads.append(len(kind.members) - _sum(list(kind.on.values())))
            elif not self._state.pods[kind.members[0]].is_new:
                lifts += list(kind.on.values())
        return lifts, reorderings, offloads

    def _qualities_of_services(self) -> tuple[Expression, float]:
        """(2) to (4): the services the program decides on, in the program's units, and the sum of the others."""
        counts: dict[int, list[Expression]] = defaultdict(list)
        at_home = [0] * len(self._start.near)
        for kind in self._kinds:
            service = self._state.pods[kind.members[0]].service
            counts[service] += kind.on.values()
            at_home[service] += len(kind.members) if kind.home != CLOUD else 0
        qualities, fixed = [], 0.0
        for number, near in enumerate(self._start.near):
            if number in counts:
                qualities.append(self._quality_of(number, _sum(counts[number]) + (near - at_home[number])))
            else:
                fixed += self._qualities.of[number][near]
        return _sum(qualities), fixed

    def _quality_of(self, number: int, near: Expression) -> Expression:
        pods, target = self._qualities.count[number], self._state.services[number].target
        alpha, beta, gamma = self._policy.alpha, self._policy.beta, self._policy.gamma
        needed = min(pods, ceil(target * pods - TOLERANCE))
        met = self._model.new_bool_var("")
        low = self._model.new_int_var(0, needed, "")
        over = self._model.new_int_var(0, pods - needed, "")
        self._model.add(near == low + over)
        self._model.add(low >= needed * met)
        self._model.add(over <= (pods - needed) * met)
        jump = gamma + (beta - alpha) * (needed / pods - target)
        per_pod, per_over = round(alpha * self._scale / pods), round(beta * self._scale / pods)
        return per_pod * low + per_over * over + round(jump * self._scale) * met - round(alpha * self._scale * target)

    def hint(self, layout: Layout) -> None:
        """Begin with a layout of the same state."""
        self._model.clear_hints()  # type: ignore[no-untyped-call] # ortools gives no type for it
        for kind in self._kinds:
            for node, count in kind.on.items():
                self._model.add_hint(count, sum(layout.where[pod] == node for pod in kind.members))

    def between(self, least: float, most: float) -> None:
        """Look for layouts of such total qualities only, in the policy's units."""
        slack = len(self._state.pods) + 2 * len(self._state.services)  # what rounding may come to
        self._model.add(self._quality >= floor((least - self._fixed) * self._scale) - slack)
        self._model.add(self._quality <= ceil((most - self._fixed) * self._scale) + slack)

    def with_fewer_moves(self, than: int, search_s: float) -> Layout | None:
        """A layout with fewer moves, of those the fewest that was found; None where none was."""
        self._model.add(self._moved <= than - 1)
        self._model.minimize(self._moved)
        solver, status = self._search(search_s)
        return self._layout(solver) if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else None

    def solve(self, search_s: float, *, is_exact: bool) -> EdgeLayout:
        """The most quality of service, then the fewest moves: one after the other where `is_exact`, else at once.

        At once is quicker: the least quality outweighs all moves, but the bound is then looser in a search cut
        short. `search_s` is in CP-SAT's measure of work.
        """
        most_moves = sum(len(kind.members) for kind in self._kinds) + 1
        if not is_exact:
            self._model.maximize(self._quality * most_moves - self._moved)
            solver, status = self._search(search_s)
            found = self._answer(solver, status, most_moves)
            found.is_least = found.is_best
            return found
        self._model.maximize(self._quality)
        solver, status = self._search(search_s)
        best = self._answer(solver, status, 1)
        if best.layout is None:
            return best
        self.hint(best.layout)
        self._model.add(self._quality >= round(solver.objective_value))
        self._model.minimize(self._moved)
        solver, status = self._search(search_s)
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            best.layout, best.is_least = self._layout(solver), best.is_best and status == cp_model.OPTIMAL
        return best

    def _search(self, search_s: float) -> tuple[cp_model.CpSolver, cp_model.CpSolverStatus]:
        """One worker, a fixed seed and CP-SAT's own measure of work: the same question has the same answer.

        Without probing 22 of 31 suggestions on 3 nodes were proven in 0.02 units of work, with it 16.
        """
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 1
        solver.parameters.cp_model_probing_level = 0
        solver.parameters.max_deterministic_time = search_s
        return solver, solver.solve(self._model)

    def _answer(self, solver: cp_model.CpSolver, status: cp_model.CpSolverStatus, unit: int) -> EdgeLayout:
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return EdgeLayout(None, float("inf"))
        layout = self._layout(solver)
        quality = self._qualities.total(layout.near)
        if status == cp_model.OPTIMAL:
            return EdgeLayout(layout, quality, is_best=True)
        bound = ceil(solver.best_objective_bound / unit) / self._scale + self._fixed
        return EdgeLayout(layout, max(quality, bound))

    def _layout(self, solver: cp_model.CpSolver) -> Layout:
        """Which pod of each kind is where: those that may stay at home do."""
        layout = self._start.copy()
        for kind in self._kinds:
            counts = {node: solver.value(count) for node, count in kind.on.items()}
            members = kind.members[counts.pop(kind.home, 0) :]
            targets = [node for node, count in counts.items() for _ in range(count)]
            targets += [CLOUD] * (len(members) - len(targets))
            for pod, target in zip(members, targets, strict=True):
                if target != layout.where[pod]:
                    layout.put(pod, target)
        return layout


def _sum(terms: Sequence[Expression]) -> Expression:
    return cp_model.LinearExpr.sum(list(terms))


# What no decision can exceed: the same model with all edge nodes as one (KubeDSM, equation 8 summed over the nodes).
#
# As one node has no pieces that pods do not fit into, and no moves within itself, it can do whatever the nodes can.

_HERE = frozenset({0})


def as_one_node(
    state: EdgeState, policy: EdgePolicy, *, may_migrate: bool, search_s: float, part: float = 1.0
) -> EdgeLayout:
    """The best layout of a state whose edge nodes are one, with only a `part` of what is free there."""
    one = merged(state, part)
    return EdgeProgram(one, policy, changeable(one, may_migrate=may_migrate)).solve(search_s, is_exact=False)


def merged(state: EdgeState, part: float) -> EdgeState:
    """The same pods with one edge node; what over-full nodes lack is not taken from the others, and room that nobody
    may use is not offered to all."""
    state = joinable(state)
    width = len(state.nodes[0].total)
    total = summed((node.total for node in state.nodes), width)
    free = summed((tuple(int(max(0, left) * part) for left in node.free) for node in state.nodes), width)
    return EdgeState((EdgeNode("edge", total, free),), state.services, tuple(_merged(pod) for pod in state.pods))


def _merged(pod: EdgePod) -> EdgePod:
    return replace(pod, where=CLOUD if pod.where == CLOUD else 0, allowed=_HERE if pod.allowed else frozenset())
