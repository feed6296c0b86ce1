"""The provider over real HTTP, on a small cloud that misbehaves when told to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from threading import Barrier

import pytest

from htas.adapters.openstack import listing, provider
from htas.adapters.openstack.api import OpenStackApi
from htas.adapters.openstack.errors import HeldBackError
from htas.adapters.openstack.provider import OpenStackProvider
from htas.adapters.openstack.settings import Access, BootVolume, Recipe
from htas.model.claims import ClaimState, Instance, InstanceState, NodeClaim, Usage
from htas.model.record import DAY_S
from htas.planning.cluster.machines import machine_node
from htas.ports import (
    CapacityError,
    ConflictError,
    HTASError,
    NotFoundError,
    PermanentError,
    RefusedError,
    TransientError,
)
from tests.builders import make_flavour, make_policy
from tests.unit.adapters.openstack.cloud import SmallCloud

SMALL = make_flavour("small", "1", "2Gi", "0.05")
POLICY = make_policy(flavours=[SMALL])
RECIPE = Recipe("ubuntu", networks=("private",))


@pytest.fixture
def cloud() -> Iterator[SmallCloud]:
    with SmallCloud() as cloud:
        yield cloud


def api_of(cloud: SmallCloud, folder: Path) -> OpenStackApi:
    return OpenStackApi(Access("small", clouds_file=cloud.clouds_yaml(folder), timeout_s=5.0))


@pytest.fixture
def bought(cloud: SmallCloud, tmp_path: Path) -> OpenStackProvider:
    made = OpenStackProvider(api_of(cloud, tmp_path), "test", RECIPE, None)
    made.look()
    return made


def claim(name: str = "test-any-1", age_s: float = -1.0) -> NodeClaim:
    """A claim made just now, or before the provider was."""
    at = time.time() - age_s
    return NodeClaim(name, "any", "small", ClaimState.WANTED, at, at)


def create(bought: OpenStackProvider, name: str = "test-any-1", age_s: float = -1.0) -> Instance:
    node = machine_node(POLICY, POLICY.groups[0], SMALL, None, name)
    return bought.create(claim(name, age_s), SMALL, node)


def test_an_order_says_whose_it_is_and_what_it_is_made_of(cloud: SmallCloud, bought: OpenStackProvider) -> None:
    create(bought)
    order = cloud.orders[0]["server"]
    assert order["name"] == "test-any-1"
    assert order["metadata"] == {"htas.cluster": "test", "htas.claim": "test-any-1", "htas.group": "any"}
    assert (order["flavorRef"], order["imageRef"], order["networks"]) == ("f-small", "i1", [{"uuid": "n1"}])


def test_a_boot_volume_goes_with_its_machine(cloud: SmallCloud, tmp_path: Path) -> None:
    made = OpenStackProvider(api_of(cloud, tmp_path), "test", Recipe("ubuntu", boot_volume=BootVolume(40, "ssd")), None)
    create(made)
    order = cloud.orders[0]["server"]
    (device,) = order["block_device_mapping_v2"]
    assert (device["uuid"], device["volume_size"], device["volume_type"]) == ("i1", 40, "ssd")
    assert device["delete_on_termination"] is True
    assert "imageRef" not in order
    assert order["networks"] == "none"


def test_all_pages_of_a_list_are_read(cloud: SmallCloud, bought: OpenStackProvider) -> None:
    cloud.page = 2
    for i in range(5):
        cloud.add_server(f"s{i}", cluster="test", claim=f"s{i}", group="any")
    bought.look()
    assert sorted(each.claim or "" for each in bought.instances()) == [f"s{i}" for i in range(5)]


REFUSALS = [
    pytest.param(
        (403, "Quota exceeded for cores: Requested 4, but already used 0 of 3 cores", {}), CapacityError, id="quota"
    ),
    pytest.param((403, "Policy doesn't allow os_compute_api:servers:create", {}), RefusedError, id="no right"),
    pytest.param((413, "slow down", {"Retry-After": "7"}), HeldBackError, id="rate limit, as it was told once"),
    pytest.param((429, "slow down", {"Retry-After": "7"}), HeldBackError, id="rate limit"),
    pytest.param((503, "in maintenance", {}), TransientError, id="away"),
    pytest.param((400, "Can not find requested image", {}), RefusedError, id="image"),
    pytest.param((400, "Network 1 could not be found.", {}), RefusedError, id="network"),
    pytest.param((400, "Invalid key_name provided.", {}), RefusedError, id="key"),
    pytest.param(
        (400, "Flavor's disk is too small for requested image.", {}), PermanentError, id="this flavour's disk"
    ),
    pytest.param((400, "The requested availability zone is not available", {}), PermanentError, id="this zone"),
    pytest.param((409, "Multiple possible networks found", {}), RefusedError, id="which network"),
    pytest.param(
        (500, "No valid host was found. There are not enough hosts", {}), CapacityError, id="no host, at once"
    ),
]


@pytest.mark.parametrize(("refusal", "kind"), REFUSALS)
def test_each_refusal_of_an_order_has_its_kind(
    refusal: tuple[int, str, dict[str, str]], kind: type[HTASError], cloud: SmallCloud, bought: OpenStackProvider
) -> None:
    status, words, headers = refusal
    cloud.refuse["POST /servers"] = [(status, {"error": {"code": status, "message": words}}, headers)]
    with pytest.raises(HTASError, match="POST compute/servers") as caught:
        create(bought)
    assert type(caught.value) is kind
    assert words[:40] in str(caught.value)
    if isinstance(caught.value, CapacityError):
        assert caught.value.is_quota == (status == 403)
    assert cloud.orders == []


def test_what_cannot_be_found_names_its_key(cloud: SmallCloud, bought: OpenStackProvider) -> None:
    cloud.images.clear()
    with pytest.raises(RefusedError, match=r"provider\.openstack\.image: 'ubuntu' is not there"):
        create(bought)


def test_of_images_of_one_name_the_newest_counts_but_networks_must_be_one(
    cloud: SmallCloud, bought: OpenStackProvider
) -> None:
    cloud.images.append({"id": "i2", "name": "ubuntu", "created_at": "2026-06-01"})
    create(bought)
    assert cloud.orders[0]["server"]["imageRef"] == "i2"
    bought.names.forget()
    cloud.networks.append({"id": "n2", "name": "private"})
    with pytest.raises(RefusedError, match=r"networks: 2 are named 'private'; write the id of one"):
        create(bought, "test-any-2")


def test_a_wish_for_a_pause_is_kept_by_every_call(cloud: SmallCloud, bought: OpenStackProvider) -> None:
    cloud.refuse["POST /servers"] = [(429, "slow down", {"Retry-After": "60"})]
    with pytest.raises(TransientError) as caught:
        create(bought)
    assert caught.value.retry_after_s == 60.0
    asked = len(cloud.requests)
    with pytest.raises(TransientError, match="the cloud demands a pause"):
        create(bought, "test-any-2")
    assert len(cloud.requests) == asked


def test_a_token_that_ended_is_renewed_and_the_call_repeated(cloud: SmallCloud, bought: OpenStackProvider) -> None:
    cloud.tokens.clear()
    create(bought)
    assert len(cloud.orders) == 1


def test_a_token_that_ended_is_renewed_for_all_calls_under_way(cloud: SmallCloud, bought: OpenStackProvider) -> None:
    cloud.tokens.clear()
    cloud.refused_together = Barrier(3)
    cloud.log_in_takes_s = 0.3  # the others are told 401 while the first logs in
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda i: create(bought, f"test-any-{i}"), range(3)))
    assert len(cloud.orders) == 3


def test_a_credential_that_is_refused_is_read_anew_when_it_has_been_rotated(
    cloud: SmallCloud, bought: OpenStackProvider, tmp_path: Path
) -> None:
    cloud.tokens.clear()
    cloud.password = "another-secret"
    with pytest.raises(RefusedError, match=r"the credential is not accepted: look at clouds\.yaml") as caught:
        create(bought)
    assert "secret" not in str(caught.value)
    cloud.clouds_yaml(tmp_path)
    create(bought)
    assert len(cloud.orders) == 1


def test_an_order_whose_answer_was_lost_is_not_repeated(cloud: SmallCloud, bought: OpenStackProvider) -> None:
    cloud.loses_answers = True
    with pytest.raises(TransientError):
        create(bought)
    cloud.loses_answers = False
    assert create(bought).id == "id-test-any-1"
    assert len(cloud.orders) == 1


def test_an_order_that_may_be_under_way_is_given_time_before_it_is_repeated(
    cloud: SmallCloud, bought: OpenStackProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nova was frozen: what was sent may still lie in a queue when it answers again."""
    now = 1000.0
    monkeypatch.setattr(provider, "monotonic", lambda: now)
    cloud.refuse["POST /servers"] = [(504, "gateway timed out", {})]
    with pytest.raises(TransientError):
        create(bought)
    with pytest.raises(TransientError, match="may be under way still: requested again in 10 s"):
        create(bought)
    now += 10.0
    create(bought)
    assert len(cloud.orders) == 1


def test_a_claim_of_an_earlier_process_is_looked_for_first(
    cloud: SmallCloud, bought: OpenStackProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.add_server("test-any-1", "BUILD", cluster="test", claim="test-any-1", group="any")
    assert create(bought, age_s=60.0).id == "id-test-any-1"
    cloud.add_server("test-any-2", cluster="another", claim="test-any-2", group="any")
    with pytest.raises(TransientError):  # of another cluster: not ours, so ours may still be on its way
        create(bought, "test-any-2", age_s=60.0)
    assert cloud.orders == []


def test_what_was_bought_and_released_counts_at_once(cloud: SmallCloud, bought: OpenStackProvider) -> None:
    room = bought.headroom()
    made = create(bought)
    assert [each.state for each in bought.instances()] == [InstanceState.BUILDING]
    assert bought.headroom().instances == (room.instances or 0) - 1
    assert bought.headroom().memory_bytes == (room.memory_bytes or 0) - 2 * 2**30
    bought.delete(made.id)
    assert [each.state for each in bought.instances()] == [InstanceState.DELETING]


def test_a_machine_that_is_gone_is_gone(cloud: SmallCloud, bought: OpenStackProvider) -> None:
    made = create(bought)
    cloud.servers.clear()
    with pytest.raises(NotFoundError):
        bought.delete(made.id)
    assert bought.instances() == ()


def test_a_server_that_is_adopted_is_ours_from_then_on(cloud: SmallCloud, bought: OpenStackProvider) -> None:
    theirs = cloud.add_server("theirs", cluster="old", claim="x", group="any", owner="somebody")
    bought.look()
    bought.adopt(theirs, "test", "x", "batch")
    said = {"cluster": "test", "claim": "x", "group": "batch", "owner": "somebody"}
    assert cloud.servers[theirs]["metadata"] == {f"htas.{key}": text for key, text in said.items()}
    (found,) = bought.instances()
    assert (found.cluster, found.claim, found.group) == ("test", "x", "batch"), "before the next look already"
    bought.delete(theirs)
    with pytest.raises(NotFoundError):
        bought.adopt("id-gone", "test", "x", "batch")


def test_a_server_of_another_cluster_is_not_deleted_whoever_asks(cloud: SmallCloud, bought: OpenStackProvider) -> None:
    theirs = cloud.add_server("theirs", cluster="another", claim="x", group="any")
    nobodys = cloud.add_server("nobodys")
    bought.look()
    for server_id in (theirs, nobodys):
        with pytest.raises(PermanentError, match="does not bear this cluster's name"):
            bought.delete(server_id)
    assert not [told for told in cloud.requests if told.startswith("DELETE")]


def test_a_list_that_lacks_a_server_proves_nothing(cloud: SmallCloud, bought: OpenStackProvider) -> None:
    made = create(bought)
    bought.look()
    cloud.hidden.add(made.id)
    bought.look()
    assert [each.id for each in bought.instances()] == [made.id]
    assert bought.changes() == 1  # the first look
    del cloud.servers[made.id]
    bought.look()
    assert bought.instances() == ()
    assert bought.changes() == 2  # it went unasked


def test_servers_of_a_part_that_is_down_stay_as_they_were(cloud: SmallCloud, bought: OpenStackProvider) -> None:
    made = create(bought)
    cloud.servers[made.id]["status"] = "ACTIVE"
    bought.look()
    cloud.servers[made.id]["status"] = "UNKNOWN"
    bought.look()
    assert [(each.claim, each.state) for each in bought.instances()] == [("test-any-1", InstanceState.ACTIVE)]


def test_a_start_in_such_a_moment_waits_until_it_is_known_whose_servers_these_are(
    cloud: SmallCloud, tmp_path: Path
) -> None:
    cloud.add_server("s", "UNKNOWN", cluster="test", claim="s", group="any")
    made = OpenStackProvider(api_of(cloud, tmp_path), "test", RECIPE, None)
    with pytest.raises(TransientError, match="a part of the cloud is down"):
        made.look()
    with pytest.raises(TransientError, match="not listed yet"):
        made.instances()


def test_why_a_machine_failed_is_asked_for_once_and_is_news(cloud: SmallCloud, bought: OpenStackProvider) -> None:
    made = create(bought)
    bought.look()
    before = bought.changes()
    cloud.servers[made.id] |= {"status": "ERROR", "fault": {"code": 500, "message": "No valid host was found. "}}
    bought.look()
    bought.look()
    assert [(each.state, each.fault) for each in bought.instances()] == [
        (InstanceState.ERROR, "No valid host was found.")
    ]
    assert bought.changes() == before + 1
    assert cloud.requests.count(f"GET /servers/{made.id}") == 1


def test_ports_left_behind_are_deleted_and_those_of_others_are_not(
    cloud: SmallCloud, bought: OpenStackProvider
) -> None:
    made = create(bought)
    foreign = cloud.add_server("foreign")
    bought.look()
    cloud.ports = {"port-1": made.id, "port-2": foreign}
    bought.delete(made.id)
    cloud.servers.clear()
    bought.look()
    assert cloud.ports == {"port-2": foreign}


def test_a_list_that_is_too_old_decides_nothing(
    cloud: SmallCloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = OpenStackProvider(api_of(cloud, tmp_path), "test", RECIPE, None, interval_s=10.0)
    now = 0.0
    monkeypatch.setattr(made.listing, "_clock", lambda: now)
    made.look()
    now = listing.LEAST_STALE_S
    assert made.instances() == ()
    now += 1
    with pytest.raises(TransientError, match="no answer for 31 s"):
        made.instances()


def test_nothing_is_changed_once_another_may_lead(cloud: SmallCloud, tmp_path: Path) -> None:
    api = api_of(cloud, tmp_path)
    made = OpenStackProvider(api, "test", RECIPE, None)
    server = cloud.add_server("mine", cluster="test", claim="mine", group="any")
    made.look()
    api.may_write = lambda: False
    for act in (lambda: create(made), lambda: made.delete(server)):
        with pytest.raises(TransientError, match="another daemon may lead by now"):
            act()
    assert cloud.orders == []
    assert not [told for told in cloud.requests if told.startswith("DELETE")]


def test_a_cloud_that_is_not_named_right_is_told_in_its_words(tmp_path: Path, cloud: SmallCloud) -> None:
    api = OpenStackApi(Access("nobody", clouds_file=cloud.clouds_yaml(tmp_path)))
    with pytest.raises(RefusedError, match=r"clouds\.yaml: Cloud nobody was not found"):
        api.get("compute", "/limits")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(None, "is not there; write provider.openstack.cloudsFile", id="no file"),
        pytest.param("clouds: [a, b]", "cannot be read as a clouds.yaml", id="a list of clouds"),
        pytest.param("clouds: {small: {auth: {password: hush", "small was not found|cannot be read", id="no YAML"),
    ],
)
def test_a_clouds_file_that_is_none_is_told_without_what_is_in_it(
    content: str | None, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "clouds.yaml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(RefusedError, match=words) as caught:
        OpenStackApi(Access("small", clouds_file=path)).get("compute", "/limits")
    assert str(path) in str(caught.value)
    assert "hush" not in str(caught.value)


def test_the_file_that_is_named_wins_over_the_environments(
    cloud: SmallCloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("clouds: {}")
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(other))
    assert b"limits" in api_of(cloud, tmp_path).get("compute", "/limits")


def test_a_cloud_that_does_not_answer_may_answer_later(tmp_path: Path) -> None:
    with SmallCloud() as cloud:
        api = api_of(cloud, tmp_path)
    with pytest.raises(TransientError):
        api.get("compute", "/limits")


def test_a_conflict_at_a_delete_is_a_conflict(cloud: SmallCloud, bought: OpenStackProvider) -> None:
    made = create(bought)
    cloud.refuse["DELETE /servers"] = [(409, {"conflictingRequest": {"message": "Instance is locked"}}, {})]
    with pytest.raises(ConflictError, match="Instance is locked"):
        bought.delete(made.id)


def test_a_server_counts_against_the_quota_from_its_order_on_and_once(
    cloud: SmallCloud, bought: OpenStackProvider
) -> None:
    """Nova counts it only when a host has been found: until then its usage shows room that is not there."""
    room = bought.headroom().instances or 0
    made = create(bought)
    for task in ("scheduling", "scheduling", "spawning", None):
        cloud.servers[made.id]["OS-EXT-STS:task_state"] = task
        bought.look()
        assert bought.headroom().instances == room - 1


# What Nova charges for.

DAY = "2026-11-21"


def use(name: str, started: str | None, ended: str | None = None, flavor: str = "small") -> dict[str, str | None]:
    """A server's line in os-simple-tenant-usage; Nova writes no zone and means UTC."""
    started, ended = (f"{DAY}T{each}" if each is not None else None for each in (started, ended))
    return {"instance_id": f"id-{name}", "name": name, "flavor": flavor, "started_at": started, "ended_at": ended}


def at(hour: float) -> float:
    return datetime.fromisoformat(f"{DAY}T00:00:00+00:00").timestamp() + 3600 * hour


def test_usage_has_every_page_of_the_window_and_what_is_gone(cloud: SmallCloud, bought: OpenStackProvider) -> None:
    cloud.page = 2
    cloud.usage = [
        use("a", "01:00:00.000000", "02:30:00.500000"),
        use("b", "02:00:00.000000", None, "large"),
        use("c", "02:00:00.000000", "02:10:00.000000"),
        use("before", "00:00:00.000000", "00:30:00.000000"),
    ]
    assert bought.usage(at(1), at(3)) == [
        Usage("id-a", "a", "small", at(1), at(2.5) + 0.5),
        Usage("id-b", "b", "large", at(2)),
        Usage("id-c", "c", "small", at(2), at(2) + 600),
    ]
    assert bought.usage(at(4) + DAY_S, at(5) + DAY_S) == [Usage("id-b", "b", "large", at(2))]


def test_a_project_that_ran_nothing_has_no_usage(cloud: SmallCloud, bought: OpenStackProvider) -> None:
    assert bought.usage(at(1), at(2)) == []


def test_a_role_that_may_not_read_usage_is_told(cloud: SmallCloud, bought: OpenStackProvider) -> None:
    cloud.refuse["GET /os-simple-tenant-usage"] = [(403, {"forbidden": {"message": "Policy doesn't allow it"}}, {})]
    with pytest.raises(RefusedError, match=r"os-simple-tenant-usage.*403"):
        bought.usage(at(1), at(2))


@pytest.mark.parametrize(
    ("launched", "terminated", "since", "until"),
    [
        pytest.param(None, None, None, None, id="never launched: nothing is charged"),
        pytest.param(f"{DAY}T12:00:30.000000", None, at(12) + 30, None, id="charged from its launch, not its order"),
        pytest.param(f"{DAY}T12:00:30", f"{DAY}T13:00:00", at(12) + 30, at(13), id="until it was terminated"),
    ],
)
def test_a_list_says_since_when_a_server_is_charged(
    launched: str | None,
    terminated: str | None,
    since: float | None,
    until: float | None,
    cloud: SmallCloud,
    bought: OpenStackProvider,
) -> None:
    server = cloud.servers[cloud.add_server("s", cluster="test", claim="s", group="any")]
    server |= {"OS-SRV-USG:launched_at": launched, "OS-SRV-USG:terminated_at": terminated}
    bought.look()
    [found] = bought.instances()
    assert (found.launched_at, found.ended_at) == (since, until)
