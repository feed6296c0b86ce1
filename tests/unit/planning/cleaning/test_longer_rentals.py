"""Moves are charged what they add to other nodes' rentals, and what is left on a node goes to a smaller machine."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.billing import Billing
from htas.model.constraints import Constraints
from htas.model.flavours import Catalogue
from htas.model.moves import MigrationMethod
from htas.model.nodes import SCALE_DOWN_DISABLED, Node
from htas.model.pods import MAY_MIGRATE, Pod
from htas.model.policy import CleaningRules, Consolidation, Limits, Policy
from htas.model.reasons import Kept
from htas.model.snapshot import Memory
from tests.builders import NOW, make_flavour, make_node, make_pod, owned_node, ready_claim, running
from tests.unit.planning.cleaning.world import (
    LARGE,
    MEDIUM,
    cleaned,
    job_on,
    kept,
    message,
    moves,
    policy_with,
    quiet_snapshot,
)

EARLY = CleaningRules.early(MigrationMethod.CHECKPOINT)


def early(**changes: Any) -> Policy:
    rules = msgspec.structs.replace(EARLY, **changes)
    return policy_with({name: getattr(rules, name) for name in rules.__struct_fields__})


STAYING = early(consolidation=Consolidation())
SHRINKING = early()


@pytest.mark.parametrize(
    ("flavour", "there_s", "is_moved"),
    [
        pytest.param("large", 9000, True, id="its other work ends later"),
        pytest.param("large", 5000, True, id="longer by 3000 s at twice the price, 8000 s saved"),
        pytest.param("large", 3000, False, id="longer by 5000 s at twice the price, 8000 s saved"),
        pytest.param("medium", 3000, True, id="longer by 5000 s at its own price, 8000 s saved"),
    ],
)
def test_a_node_is_emptied_where_others_are_not_rented_longer_for_more(
    flavour: str, there_s: float, is_moved: bool
) -> None:
    cpu = {"large": "8", "medium": "4"}[flavour]
    nodes = [owned_node("n1"), owned_node("busy", flavour=flavour, cpu=cpu, memory="16Gi")]
    pods = [job_on("n1", "a", left_s=8000.0), job_on("busy", "b", cpu=str(int(cpu) - 1), left_s=float(there_s))]
    found = cleaned(quiet_snapshot(nodes, pods), STAYING)
    assert moves(found) == ([("a", "n1", "busy")] if is_moved else [])
    if not is_moved:
        assert kept(found)["n1"] is Kept.EMPTY_BEFORE_MIGRATION_PAYS
        assert "have others rented longer for as much as" in message(found, "n1")


def test_pods_go_where_they_lengthen_nothing() -> None:
    """By time bins the job would go to the node whose work ends soonest after its own, or to the fuller one."""
    nodes = [owned_node("n1"), owned_node("short"), owned_node("long")]
    pods = [
        job_on("n1", "a", left_s=5000.0),
        job_on("short", "b", cpu="3", left_s=4990.0),
        job_on("long", "c", cpu="3", left_s=90_000.0),
    ]
    assert moves(cleaned(quiet_snapshot(nodes, pods), STAYING)) == [("a", "n1", "long")]


def test_a_node_that_is_not_given_back_is_not_lengthened() -> None:
    nodes = [owned_node("n1"), owned_node("stays", flavour="large", annotations={SCALE_DOWN_DISABLED: "true"})]
    assert moves(cleaned(quiet_snapshot(nodes, [job_on("n1", "a", left_s=8000.0)]), STAYING)) == [("a", "n1", "stays")]


def lonely(left_s: float = 8000.0, cpu: str = "1", node: str = "large") -> Any:
    """A job that has a large machine to itself; a medium one at half the price would hold it."""
    machine = owned_node("n1", flavour=node, cpu="8" if node == "large" else "4", memory="16Gi")
    return quiet_snapshot([machine], [job_on("n1", "a", cpu, left_s)])


@pytest.mark.parametrize(
    ("snapshot", "low_s", "machines"),
    [
        pytest.param(lonely(), 3600, ["medium"], id="half the price"),
        pytest.param(
            lonely(),
            119,
            [],
            id="not wasted enough yet: both are paid for 120 s, at a price as great as the difference",
        ),
        pytest.param(lonely(), 120, ["medium"], id="wasted as much as the change costs"),
        pytest.param(lonely(left_s=500.0), 3600, ["medium"], id="ends after the change has paid"),
        pytest.param(lonely(left_s=300.0), 3600, [], id="ends before it has"),
        pytest.param(lonely(cpu="5"), 3600, [], id="holds it no smaller one"),
        pytest.param(lonely(node="medium"), 3600, [], id="is the smallest"),
    ],
)
def test_what_is_left_goes_to_a_smaller_machine_once_that_pays(
    snapshot: Any, low_s: float, machines: list[str]
) -> None:
    since = {"n1": NOW - low_s}
    memory = Memory(since, {}, NOW - 3600.0)
    snapshot = msgspec.structs.replace(snapshot, memory=memory)
    found = cleaned(snapshot, SHRINKING, may_replace=True)
    assert [launch.flavour for launch in found.launches] == machines
    assert all(launch.replaces == ("n1",) for launch in found.launches)


def test_nothing_shrinks_beside_other_changes_or_where_it_is_off_or_for_a_service() -> None:
    assert not cleaned(lonely(), SHRINKING).launches
    assert not cleaned(lonely(), STAYING, may_replace=True).launches
    served = running(make_pod("web"), "n1")
    with_service = quiet_snapshot([owned_node("n1", flavour="large", cpu="8", memory="16Gi")], [served])
    assert not cleaned(with_service, SHRINKING, may_replace=True).launches


def test_nodes_shrink_together() -> None:
    """Each holds what the other has no room for."""
    nodes = [owned_node(name, flavour="large", cpu="7", memory="16Gi") for name in ("n1", "n2")]
    pods = [job_on(node.name, f"on-{node.name}", "4", 8000.0, memory="7Gi") for node in nodes]
    found = cleaned(quiet_snapshot(nodes, pods), SHRINKING, may_replace=True)
    assert sorted(launch.replaces for launch in found.launches) == [("n1",), ("n2",)]


CARDS = make_flavour("cards", "24", "48Gi", "3.91", extended={"nvidia.com__gpu": 4})


def beside_cards(jobs: int, low_s: float = 3600.0, **fields: Any) -> Any:
    """Jobs of 3 cores that a training left on a machine with four GPUs; a large machine holds two of them."""
    machine = owned_node("n1", flavour="cards", cpu="24", memory="48Gi")
    pods = [job_on("n1", f"a{i}", "3", 8000.0, **fields) for i in range(jobs)]
    memory = Memory({"n1": NOW - low_s}, {}, NOW - 3600.0)
    return msgspec.structs.replace(quiet_snapshot([machine], pods), memory=memory)


@pytest.mark.parametrize(
    ("snapshot", "machines"),
    [
        pytest.param(
            beside_cards(3),
            ["medium", "medium", "medium"],
            id="three machines hold them at 0.60 an hour instead of 3.91",
        ),
        pytest.param(beside_cards(2), ["large"], id="one does: no other is tried"),
        pytest.param(beside_cards(3, low_s=30), [], id="not wasted enough yet"),
        pytest.param(beside_cards(3, disruption={MAY_MIGRATE: "false"}), [], id="they may not be moved"),
    ],
)
def test_what_no_one_smaller_machine_holds_goes_to_several(snapshot: Any, machines: list[str]) -> None:
    """A machine is held for its GPUs by none of the work on it: what that needs is far cheaper."""
    policy = msgspec.structs.replace(SHRINKING, catalogue=Catalogue((MEDIUM, LARGE, CARDS)))
    found = cleaned(snapshot, policy, may_replace=True)
    assert sorted(launch.flavour for launch in found.launches) == machines
    assert all(launch.replaces == ("n1",) for launch in found.launches)


def test_several_machines_are_launched_only_within_the_limits() -> None:
    policy = msgspec.structs.replace(SHRINKING, catalogue=Catalogue((MEDIUM, LARGE, CARDS)), limits=Limits(max_nodes=2))
    assert not cleaned(beside_cards(3), policy, may_replace=True).launches


HOURLY = Catalogue((MEDIUM, LARGE), "USD", Billing(3600, 3600))


@pytest.mark.parametrize(
    ("held_s", "room", "machines"),
    [
        pytest.param(1800.0, "0", [], id="paid for half an hour more"),
        pytest.param(3600.0 - 230.0, "0", ["medium"], id="its hour is over when the new one is there and has the job"),
        pytest.param(3600.0 - 230.0, "1", [], id="another node will take the job: nothing is bought for it"),
    ],
)
def test_by_the_hour_a_machine_shrinks_when_its_hour_is_nearly_full(
    held_s: float, room: str, machines: list[str]
) -> None:
    """To empty it and to give it back takes 210 s, and the new one starts in 60 s; it is hardly used for an hour."""
    node = owned_node("n1", flavour="large", cpu="8", memory="16Gi")
    nodes = [node, make_node("other", room)]
    snapshot = quiet_snapshot(nodes, [job_on("n1", "a", left_s=36000.0)], claims=(ready_claim(node, held_s),))
    policy = msgspec.structs.replace(SHRINKING, catalogue=HOURLY)
    found = cleaned(snapshot, policy, may_replace=True)
    assert not found.remove
    assert [launch.flavour for launch in found.launches] == machines


def test_nodes_that_wait_for_their_paid_hour_take_pods() -> None:
    """Three with a small service each: were none a target, none could ever be emptied."""
    nodes = [owned_node(f"n{i}") for i in range(3)]
    pods = [running(make_pod(f"web-{i}", "300m", disruption={MAY_MIGRATE: "true"}), f"n{i}") for i in range(3)]
    claims = tuple(ready_claim(node, held_s) for node, held_s in zip(nodes, (3500.0, 1800.0, 1800.0), strict=True))
    found = cleaned(quiet_snapshot(nodes, pods, claims=claims), policy_with({}, catalogue=HOURLY))
    assert [removing.node for removing in found.remove] == ["n0"]
    assert kept(found)["n2"] is Kept.DRAINS_BEFORE_PERIOD_ENDS
    assert [(pod, source) for pod, source, _ in moves(found)] == [("web-0", "n0")]


def web(node: str, cpu: str = "100m", name: str = "web", **fields: Any) -> Pod:
    return running(make_pod(name, cpu, disruption={MAY_MIGRATE: "true"}, **fields), node)


def machine_of(flavour: str, name: str, **fields: Any) -> Node:
    return owned_node(name, flavour=flavour, cpu="8" if flavour == "large" else "4", memory="16Gi", **fields)


KEPT: dict[str, Any] = {"annotations": {SCALE_DOWN_DISABLED: "true"}}
ALSO_SERVES = (web("there", name="shop"),)


@pytest.mark.parametrize(
    ("source", "target", "there_s", "beside", "fields", "is_moved"),
    [
        pytest.param("medium", "large", 100, (), {}, False, id="dearer, and free in a moment"),
        pytest.param(
            "medium", "large", 864_000, (), {}, False, id="dearer, and free in ten days: a service has no end"
        ),
        pytest.param("medium", "large", 100, ALSO_SERVES, {}, True, id="dearer, and a service holds it anyway"),
        pytest.param("medium", "large", 100, (), KEPT, True, id="dearer, and never given back"),
        pytest.param(
            "medium", "medium", 1800, (), {}, True, id="as dear, and one of them is paid for half an hour less"
        ),
        pytest.param("medium", "medium", 59, (), {}, False, id="as dear, and free before the service is there"),
        pytest.param("large", "medium", 59, (), {}, True, id="cheaper, though free before the service is there"),
    ],
)
def test_a_service_goes_where_what_it_holds_for_ever_is_no_dearer(
    source: str, target: str, there_s: float, beside: tuple[Pod, ...], fields: dict[str, Any], is_moved: bool
) -> None:
    """From 0.20 an hour one was moved to 0.80, whose job ended in ten minutes: 6.39 in eight hours instead of 1.79."""
    nodes = [machine_of(source, "n1"), machine_of(target, "there", **fields)]
    busy = job_on("there", "busy", cpu="5" if target == "large" else "3", left_s=float(there_s))
    found = cleaned(quiet_snapshot(nodes, [web("n1"), busy, *beside]), policy_with())
    assert moves(found) == ([("web", "n1", "there")] if is_moved else [])
    if not is_moved:
        assert kept(found)["n1"] is Kept.EMPTY_BEFORE_MIGRATION_PAYS
        told = "would use machines of 0.40 an hour" if source != target else "have others rented longer"
        assert told in message(found, "n1")


def test_a_service_goes_to_a_node_that_others_hold_before_one_that_it_would_hold() -> None:
    """By best fit it would go to the fuller one, whose job ends."""
    nodes = [machine_of("medium", "n1"), machine_of("medium", "fuller"), machine_of("medium", "serves")]
    pods = [web("n1"), job_on("fuller", "busy", cpu="3500m", left_s=9000.0), web("serves", "2500m", name="shop")]
    assert moves(cleaned(quiet_snapshot(nodes, pods))) == [("web", "n1", "serves")]


TO_ROOM = Constraints(node_selector=(("role", "room"),))


@pytest.mark.parametrize(
    ("flavours", "is_moved"),
    [
        pytest.param(("medium", "medium"), False, id="the first stays where it is, and so does the second"),
        pytest.param(("large", "medium"), True, id="the first holds it henceforth, and the second adds nothing"),
    ],
)
def test_what_the_first_service_holds_adds_nothing_for_the_next(flavours: tuple[str, str], is_moved: bool) -> None:
    room = machine_of("large", "room", labels={"role": "room"})
    nodes = [*(machine_of(flavour, f"n{i}") for i, flavour in enumerate(flavours)), room]
    pods = [web(f"n{i}", "500m", name=f"web-{i}", constraints=TO_ROOM) for i in range(2)]
    found = cleaned(quiet_snapshot(nodes, [*pods, job_on("room", "busy", cpu="5", left_s=9000.0)]))
    assert moves(found) == ([("web-0", "n0", "room"), ("web-1", "n1", "room")] if is_moved else [])


@pytest.mark.parametrize("beside", [pytest.param((), id="alone"), pytest.param((web("n1"),), id="beside a service")])
@pytest.mark.parametrize(
    ("ran_s", "left_s", "is_moved"),
    [
        pytest.param(36_000, 1800, False, id="ten hours of ten and a half"),
        pytest.param(2400, 300, False, id="forty minutes of forty-five"),
        pytest.param(300, 2400, True, id="five minutes of forty-five"),
    ],
)
def test_a_job_begins_again_for_as_much_beside_a_service_as_alone(
    beside: tuple[Pod, ...], ran_s: float, left_s: float, is_moved: bool
) -> None:
    """Once the job has ended, the service can still go."""
    nodes = [machine_of("medium", "n1"), machine_of("medium", "room", **KEPT)]
    job = job_on("n1", "train", "500m", left_s=float(left_s), ran_s=float(ran_s))
    found = cleaned(quiet_snapshot(nodes, [job, *beside]))
    assert [pod for pod, _, _ in moves(found) if pod == "train"] == (["train"] if is_moved else [])
    if not is_moved:
        assert kept(found)["n1"] is Kept.EMPTY_BEFORE_MIGRATION_PAYS
