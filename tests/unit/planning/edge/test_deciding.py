"""Decisions on small edges by hand: what new pods get, what suggestions move, and what leaves for it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import msgspec
import pytest

from htas.model.edge import EdgePolicy
from htas.planning.solvers.edge.making_room import Offloading, best_fit, reorder_edge
from htas.planning.solvers.edge.new_pods import place_new
from htas.planning.solvers.edge.search import EdgeSearch, SearchEffort, Start, edge_ratios
from htas.planning.solvers.edge.state import (
    CLOUD,
    EdgeDecision,
    EdgeNode,
    EdgeShift,
    EdgeState,
    Layout,
    decision,
    joinable,
)
from htas.planning.solvers.edge.suggesting import candidates, suggest
from tests.unit.planning.edge.states import size, state
from tools.bench.edge_reference import carried_out, optimum, quality_bound, total_quality

POLICY = EdgePolicy(tidy_gain=math.inf)


def after(it: EdgeState, made: EdgeDecision) -> EdgeState:
    layout = carried_out(it, made)
    pods = tuple(replace(pod, where=where) for pod, where in zip(it.pods, layout.where, strict=True))
    nodes = tuple(replace(node, free=free) for node, free in zip(it.nodes, layout.free, strict=True))
    return EdgeState(nodes, it.services, pods)


def ratios(it: EdgeState, made: EdgeDecision) -> list[float]:
    return edge_ratios(after(it, made))


class TestNewPods:
    def test_all_are_on_the_edge_while_it_has_room(self):
        it = state([(4, 4), (4, 4)], {"a": (1, 1, 1.0), "b": (2, 2, 1.0)}, new={"a": 4, "b": 2})
        made = place_new(it, POLICY)
        assert ratios(it, made) == [1.0, 1.0]
        assert made.to_cloud == made.moves == ()

    def test_what_the_edge_has_no_room_for_goes_to_the_cloud(self):
        it = state([(4, 4)], {"a": (1, 1, 1.0)}, new={"a": 6})
        made = place_new(it, POLICY)
        assert (len(made.seats), len(made.to_cloud)) == (4, 2)

    def test_a_service_that_can_meet_its_target_comes_before_one_that_cannot(self):
        # Four cores: all of b (four pods), or half of a (four of eight).
        it = state([(4, 4)], {"a": (1, 1, 1.0), "b": (1, 1, 1.0)}, new={"a": 8, "b": 4})
        assert ratios(it, place_new(it, POLICY)) == [0.0, 1.0]

    def test_both_targets_are_met_rather_than_one_exceeded(self):
        it = state([(4, 4)], {"a": (1, 1, 0.5), "b": (1, 1, 0.5)}, new={"a": 4, "b": 4})
        assert ratios(it, place_new(it, POLICY)) == [0.5, 0.5]

    def test_pods_that_only_fit_together_one_way_all_get_seats(self):
        # Largest first onto the fullest node would put 2 cores beside the 3 cores' last place.
        it = state([(3, 3), (4, 4)], {"a": (3, 3, 1.0), "b": (2, 2, 1.0)}, new={"a": 1, "b": 2})
        assert ratios(it, place_new(it, POLICY)) == [1.0, 1.0]

    @pytest.mark.parametrize("services", [("large", "small"), ("small", "large")], ids="".join)
    def test_of_what_is_as_good_the_least_fragmentation_is_chosen(self, services):
        # One of the two meets its target; beside the large one nothing is left unused.
        sizes = {"small": (1, 1, 1.0), "large": (2, 2, 1.0)}
        it = state([(2, 2)], {name: sizes[name] for name in services}, new=dict.fromkeys(services, 1))
        made = place_new(it, POLICY)
        assert [it.services[it.pods[seat.pod].service].name for seat in made.seats] == ["shop/large"]

    def test_no_pod_is_seated_on_a_node_that_its_filters_reject(self):
        it = state([(4, 4), (4, 4)], {"a": (1, 1, 1.0)}, new={"a": 6})
        it = EdgeState(it.nodes, it.services, tuple(replace(pod, allowed=frozenset({1})) for pod in it.pods))
        made = place_new(it, POLICY)
        assert Counter(seat.target for seat in made.seats) == {1: 4}

    def test_nothing_joins_a_node_that_holds_more_than_it_offers(self):
        it = state([(4, 4)], {"a": (1, 1, 1.0)}, new={"a": 1})
        shrunk = EdgeState((EdgeNode("edge-0", size(4, 4), (2000, -1)),), it.services, it.pods)
        assert place_new(shrunk, POLICY).seats == ()

    def test_without_edge_nodes_all_are_sent_to_the_cloud(self):
        it = state([], {"a": (1, 1, 1.0)}, new={"a": 2})
        assert place_new(it, POLICY) == EdgeDecision(to_cloud=(0, 1))

    def test_what_else_runs_out_is_kept_too(self):
        # Two pods fit by cpu and memory but the node offers one GPU.
        it = state([(4, 4)], {"a": (1, 1, 1.0)}, new={"a": 2})
        pods = tuple(replace(pod, size=(*pod.size, 1)) for pod in it.pods)
        node = EdgeNode("edge-0", (*size(4, 4), 1), (*size(4, 4), 1))
        assert len(place_new(EdgeState((node,), it.services, pods), POLICY).seats) == 1


class TestSuggestions:
    def test_pods_come_back_when_the_edge_frees_at_most_m_c2e_at_once(self):
        it = state([(8, 8)], {"a": (1, 1, 1.0)}, near={"a": [0]}, far={"a": 7})
        made = suggest(it, POLICY)
        assert made.lifts == 5
        assert ratios(it, made) == [0.75]

    def test_nothing_moves_where_nothing_is_better(self):
        it = state([(4, 4)], {"a": (1, 1, 1.0), "b": (1, 1, 1.0)}, near={"a": [0] * 4}, far={"b": 4})
        assert suggest(it, POLICY) == EdgeDecision()

    def test_an_exceeded_target_gives_way_to_one_that_is_missed(self):
        it = state([(4, 4)], {"a": (1, 1, 0.5), "b": (1, 1, 1.0)}, near={"a": [0] * 4}, far={"b": 2})
        made = suggest(it, POLICY)
        assert ratios(it, made) == [0.5, 1.0]
        assert len(made.moves) == 4

    def test_a_pod_changes_its_node_to_let_a_larger_one_in(self):
        # A core free on each node: once the small pod of one has joined the other, two are free.
        it = state([(2, 2), (2, 2)], {"a": (1, 1, 1.0), "b": (2, 2, 1.0)}, near={"a": [0, 1]}, far={"b": 1})
        made = suggest(it, POLICY)
        assert ratios(it, made) == [1.0, 1.0]
        assert (made.lifts, made.reorderings, len(made.moves)) == (1, 1, 2)
        assert made.moves[0].source != CLOUD  # room first

    def test_without_reorderings_the_larger_pod_stays_in_the_cloud(self):
        # One of the others would have to leave for it, and lose what it gains.
        services = {"a": (1, 1, 1.0), "b": (1, 1, 1.0), "c": (2, 2, 1.0)}
        it = state([(2, 2), (2, 2)], services, near={"a": [0], "b": [1]}, far={"c": 1})
        assert suggest(it, msgspec.structs.replace(POLICY, reorder_moves=0)) == EdgeDecision()
        assert len(suggest(it, POLICY).moves) == 2

    def test_without_cloud_to_edge_moves_none_is_lifted(self):
        it = state([(4, 4)], {"a": (1, 1, 1.0)}, far={"a": 2})
        assert suggest(it, msgspec.structs.replace(POLICY, cloud_to_edge_moves=0)) == EdgeDecision()

    def test_pods_that_may_not_be_moved_stay(self):
        it = state([(2, 2)], {"a": (1, 1, 0.0), "b": (1, 1, 1.0)}, near={"a": [0, 0]}, far={"b": 2}, pinned=["a"])
        assert suggest(it, POLICY) == EdgeDecision()
        far = state([(2, 2)], {"b": (1, 1, 1.0)}, far={"b": 2}, pinned=["b"])
        assert suggest(far, POLICY) == EdgeDecision()

    def test_new_pods_are_left_to_the_immediate_placing(self):
        it = state([(4, 4)], {"a": (1, 1, 1.0)}, far={"a": 1}, new={"a": 2})
        made = suggest(it, POLICY)
        assert [it.pods[move.pod].is_new for move in made.moves] == [False]
        assert made.seats == made.to_cloud == ()

    def test_the_third_pod_that_earns_gamma_is_seen_from_the_first(self):
        # Per pod b gains as much as a; only the three of a together meet a target.
        services = {"a": (1, 1, 1.0), "b": (1, 1, 1.0)}
        it = state([(3, 3)], services, far={"a": 3, "b": 5})
        assert ratios(it, suggest(it, POLICY)) == [1.0, 0.0]

    def test_at_most_m_e2c_leave_for_others(self):
        # Seven of b have to leave for one of a, or for each of two smaller ones three.
        services = {"a": (7, 7, 1.0), "b": (1, 1, 0.0), "c": (3, 3, 1.0)}
        it = state([(7, 7)], services, near={"b": [0] * 7}, far={"a": 1, "c": 2})
        policies = [msgspec.structs.replace(POLICY, edge_to_cloud_moves=most) for most in (7, 6, 5, 3, 2, 0)]
        made = [suggest(it, policy) for policy in policies]
        assert [(each.lifts, each.offloads) for each in made] == [(2, 6), (2, 6), (1, 3), (1, 3), (0, 0), (0, 0)]

    def test_room_that_nobody_may_use_is_not_counted(self):
        # In sum three cores are free, two of them on a node that takes none of these pods; b would leave for nothing.
        it = state([(2, 2), (2, 2)], {"a": (2, 2, 1.0), "b": (1, 1, 0.0)}, near={"b": [0]}, far={"a": 1})
        pods = tuple(replace(pod, allowed=frozenset({0})) for pod in it.pods)
        it = EdgeState(it.nodes, it.services, pods)
        start = Start(EdgeSearch(joinable(it), POLICY), Layout(joinable(it)))
        offloading = Offloading(start, start.layout.copy(), [1])
        assert offloading.make_room(size(2, 2), math.inf)
        assert offloading.freed == [0]
        full = EdgeState(it.nodes, it.services, (replace(pods[0], may_move=False), pods[1]))
        assert quality_bound(full, POLICY, may_migrate=True, search_s=1.0) == total_quality(Layout(full), POLICY)

    def test_a_pod_that_leaves_a_node_that_takes_none_helps_nobody(self):
        it = state([(2, 2), (2, 2)], {"a": (2, 2, 1.0), "b": (1, 1, 0.0)}, near={"b": [0, 1]}, far={"a": 1})
        it = EdgeState(it.nodes, it.services, tuple(replace(pod, allowed=frozenset({0})) for pod in it.pods))
        assert EdgeSearch(it, POLICY).on_edge == {1: [0]}

    def test_the_work_of_a_search_on_full_nodes_is_bounded(self):
        # Half a core is free on each, and the pods in the cloud need two: it took a minute to find that out.
        services = {f"s{n}": (0.25, 1, 0.0) for n in range(150)} | {f"c{n}": (2 + n / 100, 8, 1.0) for n in range(8)}
        near = {f"s{n}": [(n + 150 * i) // 16 for i in range(11) if n + 150 * i < 1600] for n in range(150)}
        it = state([(4.5, 18)] * 100, services, near, {f"c{n}": 5 for n in range(8)})
        work = SearchEffort(POLICY.work_limit)
        suggest(it, POLICY, work)
        assert POLICY.work_limit <= work.spent <= 1.05 * POLICY.work_limit

    def test_of_many_kinds_those_of_best_score_are_candidates(self):
        services = {f"s{n}": (1 + n % 3, 1, 1.0) for n in range(30)}
        it = state([(16, 16)], services, far=dict.fromkeys(services, 2))
        search = EdgeSearch(it, POLICY)
        kinds = candidates(search, Layout(it), 5)
        assert len(kinds) == 9  # with two pods each 1,278 subsets of five or fewer; with ten kinds 2,043
        assert {it.services[search.service(kind)].name for kind in kinds} <= {f"shop/s{n}" for n in range(0, 30, 3)}


class TestFreeing:
    def test_the_pods_that_lose_least_leave_first(self):
        services = {"met": (1, 1, 0.5), "missed": (1, 1, 1.0), "new": (1, 1, 1.0)}
        it = state([(4, 4)], services, {"met": [0, 0], "missed": [0, 0]}, {"met": 2, "missed": 2, "new": 1})
        start = Start(EdgeSearch(it, POLICY), Layout(it))
        offloading = Offloading(start, start.layout.copy(), [len(it.pods) - 1])
        assert offloading.make_room(size(1, 1), math.inf)
        assert [it.services[it.pods[pod].service].name for pod in offloading.freed] == ["shop/missed"]

    @pytest.mark.parametrize("names", [("a", "b"), ("b", "a")], ids="".join)
    def test_who_loses_less_for_its_size_leaves_first_whatever_its_name(self, names):
        # Of `less` each of ten pods loses a tenth of α for its core; `more` misses its target without any of its two.
        less, more = names
        services = dict.fromkeys(sorted([*names, "new"]), (1, 1, 1.0))
        it = state([(4, 4)], services, {more: [0, 0], less: [0, 0]}, {less: 8, "new": 2})
        start = Start(EdgeSearch(it, POLICY), Layout(it))
        offloading = Offloading(start, start.layout.copy(), [len(it.pods) - 1])
        assert [offloading.one_more() for _ in range(5)] == [True] * 4 + [False]
        assert [it.services[it.pods[pod].service].name[-1] for pod in offloading.freed] == [less, less, more, more]
        assert offloading.lost == pytest.approx(2 * 0.1 + 1 + 10)

    def test_nobody_leaves_for_a_pod_of_its_own_service(self):
        it = state([(1, 1), (2, 2)], {"a": (1, 1, 1.0), "b": (1, 1, 1.0)}, {"a": [0, 1], "b": [1]}, {"a": 1})
        start = Start(EdgeSearch(it, POLICY), Layout(it))
        offloading = Offloading(start, start.layout.copy(), [3])
        assert (offloading.one_more(), offloading.one_more(), offloading.freed) == (True, False, [2])

    def test_there_is_none_where_all_that_may_leave_is_not_enough(self):
        it = state([(2, 2)], {"a": (1, 1, 1.0), "b": (3, 3, 1.0)}, {"a": [0, 0]}, {"b": 1})
        start = Start(EdgeSearch(it, POLICY), Layout(it))
        assert not Offloading(start, start.layout.copy(), [2]).make_room(size(3, 3), math.inf)

    def test_what_left_for_nothing_comes_back(self):
        # In sum a core is missing, but the node that gives it has to give two.
        services = {"a": (1, 1, 0.0), "b": (2, 2, 1.0)}
        it = state([(2, 2), (2, 2)], services, {"a": [0, 0, 1]}, {"b": 1})
        found = best_fit(Start(EdgeSearch(it, POLICY), Layout(it)), [3], total_quality(Layout(it), POLICY))
        assert found is not None
        assert found.near == [2, 1]

    def test_who_left_the_wrong_node_stays_after_all(self):
        # One of `a` loses least and frees the core that is missing in sum, but `b` is too large for its node.
        services = {"a": (1, 1, 0.0), "b": (2, 2, 1.0), "c": (1, 1, 0.0)}
        it = state([(1, 1), (2, 2)], services, {"a": [0], "c": [1]}, {"a": 1, "b": 1})
        policy = msgspec.structs.replace(POLICY, reorder_moves=0)
        best = best_fit(Start(EdgeSearch(it, policy), Layout(it)), [3], total_quality(Layout(it), policy))
        assert best is not None
        assert [best.where[pod] for pod in range(4)] == [0, CLOUD, CLOUD, 1]


class TestReordering:
    def test_room_in_pieces_is_made_one(self):
        services = {"a": (1, 1, 1.0), "b": (2, 2, 1.0)}
        it = state([(4, 4), (4, 4)], services, {"a": [0, 0, 0, 1, 1, 1]}, {"b": 1})
        found = reorder_edge(Start(EdgeSearch(it, msgspec.structs.replace(POLICY, tidy_gain=0.01)), Layout(it)))
        assert found is not None
        assert sorted(free[0] for free in found.free) == [0, 2000]

    def test_nothing_moves_for_less_than_the_asked_for_gain(self):
        services = {"a": (1, 1, 1.0), "b": (2, 2, 1.0)}
        it = state([(4, 4), (4, 4)], services, {"a": [0, 0, 0, 1, 1, 1]}, {"b": 1})
        assert reorder_edge(Start(EdgeSearch(it, msgspec.structs.replace(POLICY, tidy_gain=0.5)), Layout(it))) is None

    def test_suggestions_prepare_room_that_is_not_enough_yet(self):
        # Two cores in one piece are of use to a pod of `c`, which may not be moved, and not yet to the one of `b`.
        services = {"a": (1, 1, 1.0), "b": (3, 3, 1.0), "c": (2, 2, 1.0)}
        near, far = {"a": [0, 0, 0, 1, 1, 1]}, {"b": 1, "c": 1}
        it = state([(4, 4), (4, 4)], services, near, far, pinned=["c"])
        waiting = EdgePolicy(tidy_gain=0.01, edge_to_cloud_moves=0)
        made = suggest(it, waiting)
        assert (made.lifts, made.reorderings, made.offloads) == (0, 1, 0)
        assert suggest(after(it, made), waiting) == EdgeDecision()
        assert suggest(state([(4, 4), (4, 4)], services, near, far, pinned=["b", "c"]), waiting) == EdgeDecision()

    @pytest.mark.parametrize(
        ("target", "policy"),
        [
            pytest.param(1.0, EdgePolicy(cloud_to_edge_moves=0, tidy_gain=0.01), id="none may ever be let in"),
            pytest.param(0.0, EdgePolicy(beta=0.0, tidy_gain=0.01), id="none gains by it"),
        ],
    )
    def test_nothing_moves_for_room_that_nobody_wants(self, target, policy):
        services = {"a": (1, 1, 1.0), "b": (2, 2, target)}
        it = state([(2, 2), (2, 2)], services, {"a": [0, 1]}, {"b": 1})
        assert suggest(it, policy) == EdgeDecision()


class TestSteps:
    def test_each_move_finds_room_once_those_before_it_are_done(self):
        it = state([(2, 2), (2, 2)], {"a": (1, 1, 1.0), "b": (2, 2, 1.0)}, near={"a": [0, 1]}, far={"b": 1})
        layout = Layout(it)
        layout.put(2, 1)  # first the large pod, though it has to wait for the small one
        layout.put(1, 0)
        assert decision(layout).moves == (EdgeShift(1, 1, 0), EdgeShift(2, CLOUD, 1))

    def test_pods_that_change_places_have_no_such_order_and_all_stay_named(self):
        it = state([(1, 1), (1, 1)], {"a": (1, 1, 1.0), "b": (1, 1, 1.0)}, near={"a": [0], "b": [1]})
        layout = Layout(it)
        layout.put(0, 1)
        layout.put(1, 0)
        assert set(decision(layout).moves) == {EdgeShift(0, 0, 1), EdgeShift(1, 1, 0)}


class TestBeyond:
    @pytest.mark.parametrize(("nodes", "pods"), [(20, 300), (6, 120)])
    def test_many_new_pods_come_within_two_hundredths_of_the_bound(self, nodes, pods):
        services = {f"s{n}": (1 + n % 3, 1 + n % 4, (1.0, 0.5, 0.25)[n % 3]) for n in range(12)}
        it = state([(8 + n % 5, 10 + n % 7) for n in range(nodes)], services, new=dict.fromkeys(services, pods // 12))
        reached = total_quality(carried_out(it, place_new(it, POLICY)), POLICY)
        bound = quality_bound(it, POLICY, may_migrate=False, search_s=1.0)
        assert 0.98 * bound <= reached <= bound + 1e-6

    def test_the_program_finds_what_counting_subsets_cannot(self):
        # Only few subsets may be looked at: the program does the rest.
        few = msgspec.structs.replace(POLICY, subset_limit=20, search_s=1.0)
        services = {f"s{n}": (1 + n % 2, 1, 1.0) for n in range(6)}
        it = state([(3, 4), (4, 4)], services, {"s0": [0, 1], "s1": [0, 1]}, {"s0": 3, "s2": 1, "s3": 1, "s4": 2})
        reached = total_quality(carried_out(it, suggest(it, few)), few)
        assert reached == pytest.approx(optimum(it, few, may_migrate=True, search_s=5.0).quality)

    def test_without_any_work_for_the_program_what_counting_found_stands(self):
        none = msgspec.structs.replace(POLICY, search_s=0.0)
        it = state([(8, 8)], {"a": (1, 1, 1.0)}, near={"a": [0]}, far={"a": 7}, new={"a": 2})
        assert suggest(it, none).lifts == 5
        many = state([(8, 8)] * 30, {f"s{n}": (1, 1, 1.0) for n in range(30)}, new={f"s{n}": 8 for n in range(30)})
        assert len(place_new(many, none).seats) == 240
