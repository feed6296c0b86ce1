"""PodRequests and NonZeroRequested, after the situations in Kubernetes' own tests of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.quantity import MAX_AMOUNT
from tests.unit.adapters.kubernetes.manifests import Manifest, asking, pod, problems_of, read_pod

MI, GI = 2**20, 2**30


@pytest.mark.parametrize(
    ("spec", "cpu_m", "memory"),
    [
        pytest.param({"containers": [{"name": "c"}]}, 0, 0, id="a container that asks for nothing"),
        pytest.param({"containers": [{"name": "c"}], "overhead": {"cpu": "5", "memory": "5"}}, 5000, 5, id="overhead alone"),
        pytest.param({"containers": [asking(cpu="1", memory="10")], "overhead": {"cpu": "5", "memory": "5"}}, 6000, 15, id="overhead comes on top"),
        pytest.param({"containers": [asking(cpu="1", memory="5"), asking(cpu="4", memory="12")], "initContainers": [asking(cpu="1", memory="5"), asking(cpu="40", memory="120")], "overhead": {"cpu": "3", "memory": "8"}}, 43000, 128, id="a massive init container decides, overhead comes on top"),
        pytest.param({"containers": [asking(cpu="1", memory="9")], "initContainers": [asking(cpu="2", memory="3")]}, 2000, 9, id="the larger is taken for each resource by itself"),
        pytest.param({"containers": [asking(cpu="1")], "initContainers": [asking(cpu="1", always=True)]}, 2000, 0, id="a sidecar is added to the containers"),
        pytest.param({"containers": [asking(cpu="1")], "initContainers": [asking(cpu="1", always=True), asking(cpu="5")]}, 6000, 0, id="an init container after a sidecar runs beside it"),
        pytest.param({"containers": [asking(cpu="1")], "initContainers": [asking(cpu="5"), asking(cpu="1", always=True)]}, 5000, 0, id="an init container before a sidecar runs without it"),
        pytest.param({"containers": [asking(cpu="1")], "initContainers": [asking(cpu="2", always=True), asking(cpu="1"), asking(cpu="3", always=True)]}, 6000, 0, id="all sidecars beside the containers are more than any step"),
        pytest.param({"containers": [asking(cpu="1")], "initContainers": [asking(cpu="5", always=True), asking(cpu="200"), asking(cpu="3", always=True)]}, 205000, 0, id="one step between the sidecars is the peak"),
        pytest.param({"containers": [asking(limits={"cpu": "2", "memory": "1Gi"}, cpu="1")]}, 1000, GI, id="only a missing request takes its limit"),
        pytest.param({"containers": [asking(limits={"cpu": "2"}, cpu="0")]}, 0, 0, id="an explicit zero is not missing"),
        pytest.param({"containers": [asking(cpu="1")], "initContainers": [asking(limits={"cpu": "3"})]}, 3000, 0, id="an init container's missing request takes its limit too"),
        pytest.param({"containers": [{"name": "c", "resources": {"requests": {"cpu": 0.1}}}]}, 100, 0, id="a number instead of a text"),
        pytest.param({"containers": [asking(cpu="1e3")]}, 1_000_000, 0, id="an exponent"),
        pytest.param({"containers": [asking(cpu="100n", memory="1500m")]}, 1, 2, id="traces round up"),
    ],
)  # fmt: skip
def test_containers_make_up_the_pod(spec: dict[str, Any], cpu_m: int, memory: int) -> None:
    asked = read_pod(pod(**spec)).requests
    assert (asked.cpu_m, asked.memory_bytes, asked.pods) == (cpu_m, memory, 1)


@pytest.mark.parametrize(
    ("resources", "cpu_m", "memory"),
    [
        pytest.param({"requests": {"cpu": "10"}}, 10_000, 3 * GI, id="what the pod asks for replaces the sum, per resource"),
        pytest.param({"requests": {"cpu": "1"}}, 1000, 3 * GI, id="even with less than the sum"),
        pytest.param({"limits": {"cpu": "10"}}, 3000, 3 * GI, id="a limit alone leaves what containers ask for"),
        pytest.param({"requests": {}, "limits": {}}, 3000, 3 * GI, id="empty is not set"),
        pytest.param({"requests": {"nvidia.com/gpu": "4"}}, 3000, 3 * GI, id="devices are not asked for by pods"),
    ],
)  # fmt: skip
def test_pod_level_requests(resources: Manifest, cpu_m: int, memory: int) -> None:
    both = [asking(cpu="1", memory="1Gi"), asking(cpu="2", memory="2Gi")]
    asked = read_pod(pod(containers=both, resources=resources)).requests
    assert (asked.cpu_m, asked.memory_bytes, asked.extended) == (cpu_m, memory, ())


def test_a_pod_level_limit_is_the_request_where_no_container_asks() -> None:
    limits = {"cpu": "2", "memory": "4Gi", "hugepages-2Mi": "8Mi"}
    asked = read_pod(pod(containers=[asking(memory="1Gi")], resources={"limits": limits})).requests
    assert (asked.cpu_m, asked.memory_bytes, asked.extended) == (2000, GI, (("hugepages-2Mi", 8 * MI),))


def test_overhead_is_added_to_pod_level_requests() -> None:
    assert read_pod(pod(resources={"requests": {"cpu": "2"}}, overhead={"cpu": "50m"})).requests.cpu_m == 2050


def test_other_resources_are_counted_by_name() -> None:
    more = {"nvidia.com/gpu": "2", "ephemeral-storage": "1Ki", "hugepages-1Gi": "1Gi", "example.org/none": "0"}
    asked = read_pod(pod(containers=[asking(**more), asking(**{"nvidia.com/gpu": "1"})])).requests
    assert asked.ephemeral_bytes == 1024
    assert asked.extended == (("hugepages-1Gi", GI), ("nvidia.com/gpu", 3))


PENDING = {"type": "PodResizePending", "status": "True"}


@pytest.mark.parametrize(
    ("held", "conditions", "cpu_m"),
    [
        pytest.param({"resources": {"requests": {"cpu": "2"}}}, [], 4000, id="growing: what is asked for"),
        pytest.param({"resources": {"requests": {"cpu": "6"}}}, [], 6000, id="shrinking: what is in use until it is given back"),
        pytest.param({"allocatedResources": {"cpu": "5"}, "resources": {"requests": {"cpu": "2"}}}, [], 5000, id="what is allocated and not yet in use"),
        pytest.param({"resources": {"requests": {"cpu": "2"}}}, [{**PENDING, "reason": "Infeasible"}], 2000, id="infeasible: only what is in use"),
        pytest.param({"allocatedResources": {"cpu": "3"}, "resources": {"requests": {"cpu": "2"}}}, [{**PENDING, "reason": "Infeasible"}], 3000, id="infeasible while another is carried out: the larger of both"),
        pytest.param({"resources": {"requests": {"cpu": "2"}}}, [{**PENDING, "reason": "Deferred"}], 4000, id="deferred: still asked for"),
        pytest.param({}, [{**PENDING, "reason": "Infeasible"}], 4000, id="a kubelet that tells nothing of resources"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_sidecar", [False, True], ids=["container", "sidecar"])
def test_resize_in_place(held: Manifest, conditions: list[Manifest], cpu_m: int, is_sidecar: bool) -> None:
    resized = asking("resized", cpu="4", always=is_sidecar)
    lists = {"initContainers": [resized], "containers": []} if is_sidecar else {"containers": [resized]}
    told = {"initContainerStatuses" if is_sidecar else "containerStatuses": [{"name": "resized", **held}]}
    assert read_pod(pod(**lists, status={**told, "conditions": conditions})).requests.cpu_m == cpu_m


@pytest.mark.parametrize(
    ("spec", "cpu_m", "memory"),
    [
        pytest.param({"containers": [{"name": "a"}, {"name": "b"}]}, 200, 400 * MI, id="each container that asks for nothing"),
        pytest.param({"containers": [asking(cpu="0", memory="0")]}, 0, 0, id="an explicit zero stays zero"),
        pytest.param({"containers": [asking(cpu="1"), asking(memory="1Gi")]}, 1100, 200 * MI + GI, id="each resource by itself"),
        pytest.param({"containers": [asking(cpu="50m", memory="1Mi")], "initContainers": [{"name": "i"}]}, 100, 200 * MI, id="init containers too"),
        pytest.param({"containers": [{"name": "a"}], "overhead": {"cpu": "10m"}}, 110, 200 * MI, id="overhead comes on top"),
        pytest.param({"containers": [{"name": "a"}, asking(cpu="1")], "resources": {"requests": {"memory": "2Gi"}}}, 1000, 2 * GI, id="with pod-level requests nothing is assumed of what some container asks for"),
        pytest.param({"containers": [{"name": "a"}, {"name": "b"}], "resources": {"requests": {"memory": "2Gi"}}}, 200, 2 * GI, id="but of what nobody asks for it is"),
    ],
)  # fmt: skip
def test_what_scores_assume(spec: dict[str, Any], cpu_m: int, memory: int) -> None:
    found = read_pod(pod(**spec))
    assert (found.scoring_cpu_m, found.scoring_memory_bytes) == (cpu_m, memory)


def test_sums_are_capped_as_quantities_are() -> None:
    most = asking(memory="7Ei")
    assert read_pod(pod(containers=[most, most, most])).requests.memory_bytes == MAX_AMOUNT


def test_every_bad_quantity_of_a_pod_is_told() -> None:
    bad = pod("bad", containers=[asking(cpu="1x", memory="-1Gi"), asking(limits={"cpu": ""})], overhead={"cpu": "NaN"})
    assert [line.partition(": '")[0] for line in problems_of(bad)] == [
        "dump.json: Pod default/bad: spec.containers[0].resources.requests.cpu",
        "dump.json: Pod default/bad: spec.containers[0].resources.requests.memory",
        "dump.json: Pod default/bad: spec.containers[1].resources.limits.cpu",
        "dump.json: Pod default/bad: spec.overhead.cpu",
    ]


CPU_M = st.integers(0, 4000)


@settings(max_examples=60, derandomize=True)
@given(st.lists(CPU_M, min_size=1, max_size=3), st.lists(st.tuples(CPU_M, st.booleans()), max_size=4))
def test_the_pod_asks_for_its_peak_over_time(main: list[int], inits: list[tuple[int, bool]]) -> None:
    """Played as the kubelet does it: one init container after another, sidecars stay, then all containers."""
    up, peak = 0, 0
    for amount, stays in inits:
        peak = max(peak, up + amount)
        up += amount if stays else 0
    peak = max(peak, up + sum(main))
    spec = {
        "containers": [asking(cpu=f"{amount}m") for amount in main],
        "initContainers": [asking(cpu=f"{amount}m", always=stays) for amount, stays in inits],
    }
    assert read_pod(pod(**spec)).requests.cpu_m == peak
