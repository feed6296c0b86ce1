"""NodeResourcesFit, after kube-scheduler's plugins/noderesources/fit_test.go."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.pods import Pod
from htas.model.resources import Resources
from htas.planning.cluster.feasibility import resources
from tests.builders import make_node, make_pod, opened, running

CPU, MEMORY, DISK, PODS = (
    f"Insufficient {name}" if name != "pods" else "Too many pods"
    for name in ("cpu", "memory", "ephemeral-storage", "pods")
)
GPU, OTHER, HUGE = "example.com/gpu", "example.com/other", "hugepages-2Mi"


def asks(cpu_m: int = 0, memory: int = 0, disk: int = 0, **extended: int) -> Pod:
    names = {"gpu": GPU, "other": OTHER, "huge": HUGE}
    amounts = tuple(sorted((names[key], n) for key, n in extended.items() if n))
    return msgspec.structs.replace(make_pod("incoming"), requests=Resources(cpu_m, memory, disk, 1, amounts))


def reasons(incoming: Pod, used: Pod | None, **offers: Any) -> set[str]:
    """Why a node of 10m cpu, 20 bytes of memory and of disk, 32 pods and the extended resources offered refuses."""
    fields = {
        "cpu_m": 10,
        "memory_bytes": 20,
        "ephemeral_bytes": 20,
        "pods": 32,
        "extended": ((GPU, 5), (HUGE, 10)),
        **offers,
    }
    node = msgspec.structs.replace(make_node("n"), allocatable=Resources(**fields))
    placed = [running(msgspec.structs.replace(used, name="used"), "n")] if used is not None else []
    opening = opened([node], [*placed, incoming])
    cls = opening.book.class_of(incoming)
    return {r.reason for r in resources.refuse(opening.sim.world, cls, opening.sim.all_rows) if r.where.any()}


@pytest.mark.parametrize(
    ("incoming", "used", "want"),
    [
        pytest.param(asks(), asks(10, 20), set(), id="nothing asked of a full node"),
        pytest.param(asks(1, 1), asks(10, 20), {CPU, MEMORY}, id="both cpu and memory short, both told"),
        pytest.param(asks(1, 1), asks(5, 5), set(), id="both fit"),
        pytest.param(asks(2, 1), asks(9, 5), {CPU}, id="one of them fits: memory"),
        pytest.param(asks(1, 2), asks(5, 19), {MEMORY}, id="one of them fits: cpu"),
        pytest.param(asks(5, 1), asks(5, 19), set(), id="to the last unit"),
        pytest.param(asks(11), None, {CPU}, id="more than the node has"),
        pytest.param(asks(disk=20), None, set(), id="all of the disk"),
        pytest.param(asks(disk=16), asks(disk=10), {DISK}, id="too much of the disk"),
        pytest.param(asks(gpu=5), None, set(), id="all of an extended resource"),
        pytest.param(asks(gpu=6), None, {"Insufficient example.com/gpu"}, id="more than there is"),
        pytest.param(asks(gpu=3), asks(gpu=3), {"Insufficient example.com/gpu"}, id="more than is left"),
        pytest.param(
            asks(other=1), None, {"Insufficient example.com/other"}, id="an extended resource the node has not"
        ),
        pytest.param(asks(gpu=0), asks(gpu=5), set(), id="none asked for, none left"),
        pytest.param(asks(huge=10), None, set(), id="all huge pages"),
        pytest.param(asks(huge=6), asks(huge=5), {"Insufficient hugepages-2Mi"}, id="too many huge pages"),
        pytest.param(
            asks(11, 21, 21, gpu=6), None, {CPU, MEMORY, DISK, "Insufficient example.com/gpu"}, id="everything short"
        ),
        pytest.param(asks(0, 1), asks(15), set(), id="an overcommitted cpu is no matter to a pod that asks for none"),
    ],
)
def test_fit(incoming: Pod, used: Pod | None, want: set[str]) -> None:
    assert reasons(incoming, used) == want


@pytest.mark.parametrize(
    ("incoming", "want"),
    [
        pytest.param(asks(), {PODS}, id="a pod that asks for nothing still takes a place"),
        pytest.param(asks(1, 1), {PODS}, id="room but no place"),
        pytest.param(asks(11), {PODS, CPU}, id="neither"),
    ],
)
def test_places(incoming: Pod, want: set[str]) -> None:
    assert reasons(incoming, asks(1, 1), pods=1) == want
