"""Nodes that others replace: when the replacements have come, and whether any could cost less."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.flavours import Flavour
from htas.model.moves import MigrationMethod
from htas.model.pods import Pod, RunLength, RunLengthSource
from htas.model.policy import CleaningRules, Consolidation, NodeGroup, Policy, Workload
from htas.model.proposals import Proposal
from htas.model.reasons import Kept, ProposalReason
from htas.planning.planner import plan
from tests.builders import NOW, make_flavour, make_pod, make_policy, owned_node, ready_claim, running
from tests.unit.planning.cleaning.world import (
    LARGE,
    MEDIUM,
    cleaned,
    job_on,
    kept,
    message,
    policy_with,
    quiet_snapshot,
    removed,
)

USD = 10**9


def web(number: int, node: str, cpu: str = "500m") -> Pod:
    pod = make_pod(f"web-{number}", cpu, "512Mi", disruption={"htas.io/migrate": "true"})
    return running(pod, node, 3600.0)


def consolidating(*flavours: Flavour, **rules: Any) -> Policy:
    consolidation = Consolidation(enabled=True, after_s=60.0, cool_down_s=60.0)
    cleaning = CleaningRules(
        utilization_threshold=0.1, migration=MigrationMethod.CHECKPOINT, consolidation=consolidation, **rules
    )
    return make_policy([NodeGroup("any", Workload.ANY, cleaning=cleaning)], flavours)


@pytest.mark.parametrize(
    ("price", "is_emptied"),
    [
        pytest.param(0.39, True, id="what has come costs less"),
        pytest.param(0.40, False, id="as much: nothing would be saved"),
        pytest.param(0.41, False, id="more, since prices have changed meanwhile"),
    ],
)
def test_a_replaced_node_is_emptied_where_what_has_come_costs_less(price: float, is_emptied: bool) -> None:
    old = owned_node("old", flavour="large", cpu="8", memory="16Gi")
    new = owned_node("new", flavour="large", cpu="8", memory="16Gi")
    came = msgspec.structs.replace(ready_claim(new, 60.0), replaces=("old",), nanos_per_hour=int(price * USD))
    was = msgspec.structs.replace(ready_claim(old), nanos_per_hour=int(0.40 * USD))
    snapshot = quiet_snapshot([old, new], [web(i, "old") for i in range(8)], claims=(was, came))
    why = {each.node: each.reason for each in cleaned(snapshot, consolidating(LARGE, MEDIUM)).remove}
    assert (why.get("old") is ProposalReason.CONSOLIDATED) == is_emptied


def test_services_go_to_what_was_bought_for_them_and_not_to_what_costs_as_much() -> None:
    """They went past it to a machine that a job held for ten minutes more, held that for ever, and it was given back."""
    old = owned_node("old", flavour="large", cpu="8", memory="16Gi")
    new, other = (owned_node(name, flavour="medium", cpu="8", memory="16Gi") for name in ("new", "other"))
    came = msgspec.structs.replace(ready_claim(new, 60.0), replaces=("old",), nanos_per_hour=int(0.20 * USD))
    was = msgspec.structs.replace(ready_claim(old), nanos_per_hour=int(0.40 * USD))
    beside = msgspec.structs.replace(ready_claim(other), nanos_per_hour=int(0.15 * USD))
    pods = [*(web(i, "old") for i in range(3)), job_on("other", "job", "1", left_s=600.0)]
    snapshot = quiet_snapshot([old, new, other], pods, claims=(was, came, beside))
    made = cleaned(snapshot, consolidating(LARGE, MEDIUM))
    assert {move.target for move in made.migrate if move.source == "old"} == {"new"}


def test_jobs_of_two_nodes_go_to_the_one_machine_that_was_bought_for_both() -> None:
    """Its rental for their sake was paid for when it was bought: 0.50 instead of 2 · 0.40, for ten hours."""
    old = [owned_node(name, flavour="large", cpu="8", memory="16Gi") for name in ("a", "b")]
    new = owned_node("new", flavour="huge", cpu="16", memory="32Gi")
    came = msgspec.structs.replace(ready_claim(new, 60.0), replaces=("a", "b"), nanos_per_hour=int(0.50 * USD))
    claims = (*(msgspec.structs.replace(ready_claim(each), nanos_per_hour=int(0.40 * USD)) for each in old), came)
    jobs = [job_on(node.name, f"job-{node.name}", "5", left_s=36_000.0) for node in old]
    huge = make_flavour("huge", "16", "32Gi", "0.50")
    gone = cleaned(quiet_snapshot([*old, new], jobs, claims=claims), consolidating(LARGE, huge)).remove
    assert {each.node: each.reason for each in gone} == dict.fromkeys("ab", ProposalReason.CONSOLIDATED)


KNOWN, STATED, GUESSED = RunLengthSource.ANNOTATION, RunLength(36_000.0, RunLengthSource.ANNOTATION), None
ORDERED_S, STARTED_S = 140.0, 100.0
"""The replacement was ordered so long ago; who runs for less came to the node while it started."""


@pytest.mark.parametrize(
    ("run_length", "ran_s", "goes"),
    [
        pytest.param(STATED, 300.0, True, id="it was there, and states its run"),
        pytest.param(RunLength(200.0, KNOWN), 300.0, True, id="it was there, and has outrun what it states since"),
        pytest.param(RunLength(100.0, KNOWN), 300.0, False, id="it was there, and had outrun what it states already"),
        pytest.param(STATED, STARTED_S, True, id="it has come since, and states its run"),
        pytest.param(GUESSED, STARTED_S, False, id="it has come since, and nobody knows how long it runs"),
        pytest.param(RunLength(50.0, KNOWN), STARTED_S, False, id="it has come since, and has outrun what it states"),
        pytest.param(
            RunLength(9000.0, RunLengthSource.DEADLINE), STARTED_S, False, id="it has come since, its deadline is known"
        ),
    ],
)
def test_a_replacement_is_agreed_for_those_that_were_there_when_it_was_bought(
    run_length: RunLength | None, ran_s: float, goes: bool
) -> None:
    """A job that was placed on a node while its replacement started was evicted by the agreement about the others."""
    old = owned_node("old", flavour="large", cpu="8", memory="16Gi")
    new = owned_node("new", flavour="medium")
    ready = msgspec.structs.replace(ready_claim(new, 20.0), replaces=("old",), nanos_per_hour=int(0.20 * USD))
    came = msgspec.structs.replace(ready, created_at=NOW - ORDERED_S)
    was = msgspec.structs.replace(ready_claim(old), nanos_per_hour=int(0.40 * USD))
    jobs = [
        job_on("old", "long", left_s=36_000.0, ran_s=300.0),
        job_on("old", "other", ran_s=ran_s, run_length=run_length),
    ]
    policy = consolidating(LARGE, MEDIUM)
    [group] = policy.groups
    evicting = msgspec.structs.replace(group.cleaning, migration=MigrationMethod.EVICT)
    policy = msgspec.structs.replace(policy, groups=(msgspec.structs.replace(group, cleaning=evicting),))
    found = cleaned(quiet_snapshot([old, new], jobs, claims=(was, came)), policy)
    assert (removed(found) == ["old"]) is goes
    if not goes:
        assert kept(found)["old"] is Kept.RUN_LENGTH_UNKNOWN
        assert "default/other has run for" in message(found, "old")


def replaced(room_cpu: str | None, *flavours: Flavour) -> list[Proposal]:
    """What a plan proposes to buy for a large machine with 4 cores of pods, beside a node with so much room."""
    nodes = [owned_node("n", flavour="large", cpu="8", memory="16Gi")]
    pods = [web(i, "n") for i in range(8)]
    if room_cpu is not None:  # a node of ours that is not to be emptied
        nodes.append(owned_node("room", cpu="8", memory="16Gi", annotations={"htas.io/do-not-disrupt": "true"}))
        pods.append(web(99, "room", room_cpu))
    made = plan(quiet_snapshot(nodes, pods), consolidating(LARGE, *flavours), NOW)
    return [each for each in made.proposals if each.launches]


TINY = make_flavour("tiny", "1", "4Gi", "0.15")


@pytest.mark.parametrize(
    ("takes", "bought"),
    [
        pytest.param("5", [["tiny"]], id="three of its four cores find room: one tiny machine is cheaper"),
        pytest.param("6", [], id="two of them: two tiny machines save too little for eight moves"),
        pytest.param("7", [], id="one of them: three tiny machines would cost more"),
        pytest.param(None, [], id="no other node"),
    ],
)
def test_room_on_other_nodes_makes_a_cheaper_replacement_possible(takes: str | None, bought: list[list[str]]) -> None:
    """Room there counts before it is asked what a replacement costs at least."""
    assert [sorted(launch.flavour for launch in each.launches) for each in replaced(takes, TINY)] == bought


@pytest.mark.parametrize(
    ("left_s", "method", "told"),
    [
        pytest.param(
            3.0, MigrationMethod.EVICT, "its work ends in 3s; moving it would save 0s of rental and repeat 11m40s of work",
            id="it is over before it has moved, and would begin anew",
        ),
        pytest.param(
            3.0, MigrationMethod.CHECKPOINT, "its work ends in 3s; moving it would save 0s of rental", id="with its progress"
        ),
        pytest.param(
            100.0, MigrationMethod.EVICT, "its work ends in 1m40s; moving it would save 1m00s of rental and repeat 11m40s of work",
            id="a minute for twelve",
        ),
    ],
)  # fmt: skip
def test_why_a_node_whose_work_ends_soon_is_kept_is_told(left_s: float, method: MigrationMethod, told: str) -> None:
    work = [job_on("n0", "a", left_s=left_s, ran_s=700.0), job_on("n1", "b", cpu="2")]
    found = cleaned(quiet_snapshot([owned_node("n0"), owned_node("n1")], work), policy_with({"migration": method}))
    assert message(found, "n0") == told
    assert {each.reason for each in found.kept if each.node == "n0"} == {Kept.EMPTY_BEFORE_MIGRATION_PAYS}
