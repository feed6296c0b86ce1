import msgspec
import pytest

from htas.model.claims import ClaimState, InstanceState, NodeClaim, Usage
from htas.planning.cluster.machines import machine_node
from htas.ports import NotFoundError
from tests.builders import NECTAR, make_policy
from tests.contracts.conftest import Universe

POLICY = make_policy()
FLAVOUR = NECTAR[0]
LONG_S = 600.0
"""Longer than any implementation needs to bring a machine up or down."""


def claim(universe: Universe, name: str) -> NodeClaim:
    now = universe.clock.now()
    return NodeClaim(name, "any", FLAVOUR.name, ClaimState.WANTED, now, now)


def create(universe: Universe, name: str = "c1") -> str:
    node = machine_node(POLICY, POLICY.groups[0], FLAVOUR, None, name)
    return universe.provider.create(claim(universe, name), FLAVOUR, node).id


def test_a_machine_becomes_a_ready_node(universe: Universe) -> None:
    instance_id = create(universe)
    assert [i.state for i in universe.provider.instances()] == [InstanceState.BUILDING]
    universe.wait(LONG_S)
    found = universe.provider.instances()[0]
    assert (found.id, found.state, found.claim, found.cluster) == (instance_id, InstanceState.ACTIVE, "c1", "test")
    node = next(node for node in universe.cluster.observe().nodes if node.claim == "c1")
    assert node.is_ready
    assert node.name == "c1"
    assert node.provider_id.endswith(instance_id)
    assert node.flavour == FLAVOUR.name


def test_a_repeated_create_finds_the_first(universe: Universe) -> None:
    assert create(universe) == create(universe)
    assert len(universe.provider.instances()) == 1


def test_delete_is_by_id_and_ends_in_not_found(universe: Universe) -> None:
    first, second = create(universe, "c1"), create(universe, "c2")
    universe.wait(LONG_S)
    universe.provider.delete(first)
    universe.wait(LONG_S)
    assert [i.id for i in universe.provider.instances()] == [second]
    with pytest.raises(NotFoundError):
        universe.provider.delete(first)


def test_a_machine_being_deleted_is_no_longer_active(universe: Universe) -> None:
    instance_id = create(universe)
    universe.wait(LONG_S)
    universe.provider.delete(instance_id)
    assert all(i.state is InstanceState.DELETING for i in universe.provider.instances())


def test_a_machine_that_is_well_is_no_news(universe: Universe) -> None:
    before = universe.provider.changes()
    create(universe)
    universe.wait(LONG_S)
    assert universe.provider.changes() == before


def test_headroom_never_grows_by_buying(universe: Universe) -> None:
    before = universe.provider.headroom()
    create(universe)
    after = universe.provider.headroom()
    assert before.sold == after.sold
    for name in ("instances", "cpu_m", "memory_bytes"):
        granted, left = getattr(before, name), getattr(after, name)
        assert granted is None or left < granted


def test_usage_has_a_machine_for_as_long_as_its_list_says_it_is_charged(universe: Universe) -> None:
    began = universe.clock.now() - 2  # clouds may write whole seconds
    instance_id = create(universe)
    universe.wait(LONG_S)
    [listed] = [each for each in universe.provider.instances() if each.id == instance_id]
    assert listed.launched_at is not None
    if universe.provider.usage(began, universe.clock.now()) is None:
        return  # it keeps no books
    running = used(universe, instance_id, began)
    assert running == [Usage(instance_id, "c1", FLAVOUR.name, listed.launched_at)]
    universe.provider.delete(instance_id)
    universe.wait(LONG_S)
    [gone] = used(universe, instance_id, began)
    assert gone.ended_at is not None
    assert gone == msgspec.structs.replace(running[0], ended_at=gone.ended_at)
    assert listed.launched_at < gone.ended_at <= universe.clock.now()
    assert not used(universe, instance_id, gone.ended_at + 1), "what ended before the window"
    assert used(universe, instance_id, gone.ended_at - 1) == [gone], "what it was charged for is told in whole"


def used(universe: Universe, instance_id: str, since: float) -> list[Usage]:
    found = universe.provider.usage(since, max(universe.clock.now(), since + 1))
    return [each for each in found or () if each.instance == instance_id]


def test_an_adopted_machine_bears_its_new_name_and_group(universe: Universe) -> None:
    instance_id = create(universe)
    universe.wait(LONG_S)
    universe.provider.adopt(instance_id, "renamed", "c1", "other")
    universe.wait(LONG_S)
    (found,) = [each for each in universe.provider.instances() if each.id == instance_id]
    assert (found.cluster, found.claim, found.group) == ("renamed", "c1", "other")
    universe.provider.adopt(instance_id, "test", "c1", "other")  # whoever clears up after us finds it by that
    with pytest.raises(NotFoundError):
        universe.provider.adopt("11111111-2222-3333-4444-555555555555", "renamed", "c2", "other")
