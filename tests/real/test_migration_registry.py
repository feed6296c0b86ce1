"""Moves by way of an OCI registry: the agent on the source's node pushes, the target's kubelet pulls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
import urllib3

from htas.model.migrations import Failure, ImageRegistry, MigrationState, Transfer
from tests.real.conftest import Tell
from tests.real.counting import bare_pod, container, counts, goes_on, last, longest_pause, pod
from tests.real.moving import World, impatient, over
from tools.testenv.real_nodes import ARCHIVES, NAMES, REGISTRY

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def by_registry(world: World, tmp_path: Path) -> dict[str, object]:
    """The settings by which moves go through a registry; that and the agents are the test's to start."""
    (tmp_path / "token").write_text("let-me-in-please\n")
    certificates = [world.nodes.on(node, "cat /var/lib/kubelet/pki/kubelet.crt") for node in NAMES]
    (tmp_path / "kubelets.crt").write_text("".join(certificates))
    setting = ImageRegistry(f"http://{REGISTRY}", f"{REGISTRY}/htas", agent_token_file=str(tmp_path / "token"))
    return {
        "transfer": Transfer.REGISTRY,
        "registry": setting,
        "kubelet_ca_file": str(tmp_path / "kubelets.crt"),
        "deadlines": impatient(),
    }


def tags(world: World) -> list[str]:
    found = urllib3.request("GET", f"http://{REGISTRY}/v2/htas/tags/list").json()
    return list(found.get("tags") or ())


@pytest.mark.parametrize("megabytes", [1, 100])
def test_a_pod_moves_through_the_registry_and_its_image_goes_as_soon_as_it_runs(
    megabytes: int, world: World, by_registry: dict[str, object], tmp_path: Path, tell: Tell
) -> None:
    world.counting(bare_pod("lone", "real-a", container(megabytes)))
    before = last(world.cluster, "lone")
    with (
        world.nodes.registry() as url,
        world.nodes.agents(tmp_path / "token", url),
        world.engine(**by_registry) as engine,
    ):
        engine.start(world.model_of("lone"), "real-b")
        (record,) = over(engine)
        assert record.state is MigrationState.DONE, record
        steps = [
            record.reached[state] - record.started_at for state in ("Checkpointed", "Transferred", "Restored", "Done")
        ]
        tell(f"registry, {record.archive_bytes / 1e6:.1f} MB: dumped, pushed, restored, done after {steps} s")
        assert not world.nodes.files("real-a", ARCHIVES)
        assert not tags(world), "the image went as soon as the restored container ran"
        told = counts(world.cluster, record.twin)
        assert {each.process for each in told} == {before.process}
        assert goes_on(world.cluster, record.twin)
        tell(f"registry, {megabytes} MB: longest pause in the count {longest_pause(told):.2f} s")


PASSWORD = r'let"me\pull'
USERS = "htas:$2b$04$piicFkV.KVLHM44J8F7tcuynD4Vxs4SIZ9hKMnoifv5SrwFvMEdXG\n"
"""htpasswd's line for that password."""


def test_nodes_alone_hold_what_a_checkpoint_is_pulled_with(
    world: World, by_registry: dict[str, object], tmp_path: Path
) -> None:
    """By the documented credential provider; neither the pod nor its namespace has a pull secret."""
    own = tmp_path / "credentials"
    own.write_text(f"htas:{PASSWORD}\n")
    setting = by_registry["registry"]
    assert isinstance(setting, ImageRegistry)
    by_registry["registry"] = msgspec.structs.replace(setting, credentials_file=str(own))
    world.counting(*(bare_pod(name, "real-a", container()) for name in ("early", "lone")))
    before = last(world.cluster, "lone")
    with restricted(world) as url, world.nodes.agents(tmp_path / "token", url, "--credentials-file", str(own)):
        with world.engine(**by_registry, attempts=1) as engine:
            engine.start(world.model_of("early"), "real-b")
            (record,) = over(engine)
            assert (record.state, "authorization failed" in record.detail) == (MigrationState.ROLLED_BACK, True), record
        world.nodes.credentials_file.write_text(f"htas:{PASSWORD}\n")
        with world.engine(**by_registry) as engine:
            engine.start(world.model_of("lone"), "real-b")
            (record,) = over(engine)
            assert record.state is MigrationState.DONE, record
        assert last(world.cluster, record.twin).process == before.process
        assert "imagePullSecrets" not in pod(world.cluster, record.twin)["spec"]
        assert not world.cluster.items("/api/v1/namespaces/default/secrets")


@contextmanager
def restricted(world: World) -> Iterator[str]:
    """A registry that asks who one is."""
    try:
        with world.nodes.registry(USERS) as url:
            yield url
    finally:
        world.nodes.credentials_file.unlink(missing_ok=True)


def test_without_an_agent_the_move_is_taken_back(world: World, by_registry: dict[str, object]) -> None:
    world.counting(bare_pod("lone", "real-a", container()))
    with world.nodes.registry(), world.engine(**by_registry) as engine:
        engine.start(world.model_of("lone"), "real-b")
        (record,) = over(engine)
        assert (record.state, record.reason, record.attempt) == (
            MigrationState.ROLLED_BACK,
            Failure.TRANSFER_FAILED,
            3,
        ), record
        assert goes_on(world.cluster, "lone")
        assert pod(world.cluster, "lone")["spec"]["nodeName"] == "real-a"
        assert not tags(world)
