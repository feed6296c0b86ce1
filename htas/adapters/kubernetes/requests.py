"""What a pod asks for, by Kubernetes' rules.

Source: kubernetes, component-helpers/resource/helpers.go, PodRequests: containers and sidecars summed; an init
container runs beside the sidecars started before it; the larger of both; pod-level requests replace the aggregate;
overhead is added. A missing request takes its limit, as the API server would have written it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from htas.adapters.kubernetes import wire
from htas.adapters.kubernetes.errors import ObjectError
from htas.model.quantity import QuantityError, parse_quantity, to_milli, to_units
from htas.model.resources import CPU, MEMORY, Resources

Whole = dict[str, int]

ASSUMED_CPU_M = 100
ASSUMED_MEMORY_BYTES = 200 * 2**20
"""What kube-scheduler's scores assume of a container without a request (scheduler/util/pod_resources.go)."""

POD_LEVEL_PREFIX = "hugepages-"


def amounts(items: wire.Amounts | None, path: str) -> Whole:
    """Whole amounts by name: cpu in millicores, all else in units; raises ObjectError on a bad quantity."""
    whole: Whole = {}
    for name, text in (items or {}).items():
        try:
            value = parse_quantity(text if isinstance(text, str) else repr(text))
        except QuantityError as error:
            raise ObjectError(f"{path}.{name}", str(error)) from None
        if value < 0:
            raise ObjectError(f"{path}.{name}", f"{text!r} is negative")
        whole[name] = to_milli(value) if name == CPU else to_units(value)
    return whole


def resources(items: wire.Amounts | None, path: str) -> Resources:
    return Resources.of(amounts(items, path))


def _container(container: wire.Container, path: str) -> Whole:
    limits = amounts(container.resources.limits, f"{path}.resources.limits")
    return {**limits, **amounts(container.resources.requests, f"{path}.resources.requests")}


def pod_requests(pod: wire.Pod) -> tuple[Whole, int, int]:
    """(requests, cpu and memory as kube-scheduler's scores count them)."""
    spec = pod.spec
    real = [_resized(pod, c, _container(c, f"spec.containers[{i}]")) for i, c in enumerate(spec.containers)]
    inits = list(spec.init_containers or ())
    init_needs = [_container(c, f"spec.initContainers[{i}]") for i, c in enumerate(inits)]
    is_sidecar = [c.restart_policy == "Always" for c in inits]
    total = _aggregate(real, init_needs, is_sidecar)
    assumed = _aggregate([_assumed(n) for n in real], [_assumed(n) for n in init_needs], is_sidecar)
    pod_level = _pod_level(spec)
    overhead = amounts(spec.overhead, "spec.overhead")
    total = _sum([{**total, **pod_level}, overhead])
    assumed = _sum([{**assumed, **pod_level}, overhead])
    return total, assumed.get(CPU, 0), assumed.get(MEMORY, 0)


def _pod_level(spec: wire.PodSpec) -> Whole:
    if spec.resources is None:
        return {}
    limits = amounts(spec.resources.limits, "spec.resources.limits")
    requests = {**limits, **amounts(spec.resources.requests, "spec.resources.requests")}
    return {
        name: amount for name, amount in requests.items() if name in (CPU, MEMORY) or name.startswith(POD_LEVEL_PREFIX)
    }


def _assumed(needs: Whole) -> Whole:
    return {CPU: ASSUMED_CPU_M, MEMORY: ASSUMED_MEMORY_BYTES, **needs}


def _aggregate(containers: Iterable[Whole], inits: Iterable[Whole], is_sidecar: Iterable[bool]) -> Whole:
    sidecars: Whole = {}
    peak: Whole = {}
    for needs, sidecar in zip(inits, is_sidecar, strict=True):
        if sidecar:
            sidecars = _sum([sidecars, needs])
            peak = _max(peak, sidecars)
        else:
            peak = _max(peak, _sum([sidecars, needs]))
    return _max(_sum([*containers, sidecars]), peak)


def _resized(pod: wire.Pod, container: wire.Container, needs: Whole) -> Whole:
    """In-place resize: the larger of what is asked, allocated and in use; what is infeasible is not asked for."""
    status = next((s for s in pod.status.container_statuses or () if s.name == container.name), None)
    if status is None or (status.allocated_resources is None and status.resources is None):
        return needs
    path = f"status.containerStatuses[{container.name}]"
    allocated = amounts(status.allocated_resources, f"{path}.allocatedResources")
    actual = amounts(status.resources.requests if status.resources else None, f"{path}.resources.requests")
    held = _max(allocated, actual)
    infeasible = pod.status.resize == "Infeasible" or any(
        c.type == "PodResizePending" and c.reason == "Infeasible" for c in pod.status.conditions or ()
    )
    return held if infeasible and held else _max(needs, held)


def _sum(items: Iterable[Mapping[str, int]]) -> Whole:
    total: Whole = {}
    for item in items:
        for name, amount in item.items():
            total[name] = total.get(name, 0) + amount
    return total


def _max(one: Whole, other: Whole) -> Whole:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}
