"""The documented rights are enough, and they are no more: an application credential held to deploy/openstack/access-rules.json."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import yaml

from htas.adapters.openstack.api import OpenStackApi
from htas.adapters.openstack.provider import OpenStackProvider
from htas.adapters.openstack.settings import Access, Recipe
from htas.model.claims import ClaimState, InstanceState, NodeClaim
from htas.planning.cluster.machines import machine_node
from htas.ports import RefusedError
from tests.builders import NECTAR, make_policy
from tests.real.harness import ROOT, eventually
from tools.testenv.openstack import TINY, OpenStack

pytestmark = pytest.mark.timeout(300)
RULES = ROOT / "deploy" / "openstack" / "access-rules.json"


@pytest.fixture
def least(openstack: OpenStack, tmp_path: Path) -> OpenStackApi:
    identity = openstack.user.identity
    made = identity.create_application_credential(
        user=openstack.user.current_user_id,
        name=f"htas-{time.time_ns()}",
        roles=[{"name": "member"}],
        access_rules=json.loads(RULES.read_text()),
    )
    known = yaml.safe_load(openstack.clouds_file.read_text())["clouds"]["htas"]
    auth = {
        "auth_url": known["auth"]["auth_url"],
        "application_credential_id": made.id,
        "application_credential_secret": made.secret,
    }
    clouds = {"least": {"auth_type": "v3applicationcredential", "auth": auth, "region_name": known["region_name"]}}
    path = tmp_path / "clouds.yaml"
    path.write_text(yaml.safe_dump({"clouds": clouds}))
    return OpenStackApi(Access("least", clouds_file=path))


def test_the_documented_rights_buy_and_return_a_machine_with_its_port(
    openstack: OpenStack, least: OpenStackApi
) -> None:
    policy, flavour = make_policy(), NECTAR[0]
    provider = OpenStackProvider(least, "test", Recipe(TINY, networks=("private",)), None)
    provider.look()
    now = time.time()
    claim = NodeClaim("least-1", "any", flavour.name, ClaimState.WANTED, now, now)
    made = provider.create(claim, flavour, machine_node(policy, policy.groups[0], flavour, None, claim.id))

    def state() -> InstanceState | None:
        provider.look()
        return next((each.state for each in provider.instances() if each.id == made.id), None)

    eventually(lambda: state() is InstanceState.ACTIVE, 60, "it is active")
    assert list(openstack.user.network.ports(device_id=made.id))
    provider.delete(made.id)
    eventually(lambda: state() is None, 60, "it is gone")
    assert not list(openstack.user.network.ports(device_id=made.id))
    provider.close()


@pytest.mark.parametrize(
    ("service", "path"), [("compute", "/os-keypairs"), ("network", "/security-groups"), ("compute", "/os-hypervisors")]
)
def test_what_is_not_documented_is_refused(service: str, path: str, least: OpenStackApi) -> None:
    with pytest.raises(RefusedError):
        least.get(service, path)
