"""What a real Nova charges for: its list and its usage say the same of a server, from its launch to its end."""

from __future__ import annotations

from collections.abc import Iterator
from time import time

import pytest

from htas.adapters.openstack.api import OpenStackApi
from htas.adapters.openstack.provider import OpenStackProvider
from htas.adapters.openstack.settings import Access, Recipe
from htas.model.claims import ClaimState, Instance, InstanceState, NodeClaim, Usage
from htas.model.flavours import Flavour
from htas.planning.cluster.machines import machine_node
from tests.builders import NECTAR, make_flavour, make_policy
from tests.real.harness import eventually
from tools.testenv.openstack import TINY, OpenStack

pytestmark = pytest.mark.timeout(300)
POLICY = make_policy()
FLAVOUR = NECTAR[0]


@pytest.fixture
def provider(openstack: OpenStack) -> Iterator[OpenStackProvider]:
    api = OpenStackApi(Access("htas", clouds_file=openstack.clouds_file))
    made = OpenStackProvider(api, "test", Recipe(TINY), None)
    made.look()
    yield made
    made.close()


def create(provider: OpenStackProvider, name: str, flavour: Flavour = FLAVOUR) -> str:
    claim = NodeClaim(name, "any", flavour.name, ClaimState.WANTED, time(), time())
    return provider.create(claim, flavour, machine_node(POLICY, POLICY.groups[0], flavour, None, name)).id


def shown(provider: OpenStackProvider, server: str, state: InstanceState) -> Instance:
    """The server as the list has it, once it is in a state."""

    def found() -> Instance | None:
        provider.look()
        return next((each for each in provider.instances() if (each.id, each.state) == (server, state)), None)

    server_shown = eventually(found, 60.0, f"the server is {state}")
    assert server_shown is not None
    return server_shown


def used(provider: OpenStackProvider, server: str, since: float) -> list[Usage]:
    return [each for each in provider.usage(since, time() + 1) or () if each.instance == server]


def test_a_server_is_charged_from_its_launch_until_it_was_terminated(provider: OpenStackProvider) -> None:
    began = time() - 2
    server = create(provider, "test-any-0123456789")
    listed = shown(provider, server, InstanceState.ACTIVE)
    assert listed.launched_at is not None
    assert listed.launched_at >= listed.created_at
    assert used(provider, server, began) == [
        Usage(server, "test-any-0123456789", FLAVOUR.name, listed.launched_at, None)
    ]
    provider.delete(server)
    [gone] = eventually(
        lambda: [each for each in used(provider, server, began) if each.ended_at], 60.0, "the server is terminated"
    )
    assert (gone.started_at, gone.name, gone.flavour) == (listed.launched_at, "test-any-0123456789", FLAVOUR.name)
    assert began < (gone.ended_at or 0.0) <= time() + 1
    assert used(provider, server, (gone.ended_at or 0.0) + 1) == []


def test_a_server_that_never_launched_is_charged_nothing(provider: OpenStackProvider) -> None:
    """Nova accepts `huge` and finds no host for it."""
    began = time() - 2
    server = create(provider, "test-any-9876543210", make_flavour("huge", "64", "256Gi", "9"))
    assert shown(provider, server, InstanceState.ERROR).launched_at is None
    assert used(provider, server, began) == []
