"""What a pod asks for, by Kubernetes' rules.

Source: kubernetes, component-helpers/resource/helpers.go, PodRequests: containers and sidecars summed; an init
container runs beside the sidecars started before it; the larger of both; pod-level requests replace the aggregate;
overhead is added. What a manifest leaves out is filled in as the API server would have (apis/core/v1/defaults.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from htas.adapters.kubernetes import wire
from htas.adapters.kubernetes.errors import Fault, Faults
from htas.model.quantity import MAX_AMOUNT, QuantityError, parse_quantity, to_milli, to_units
from htas.model.resources import CPU, MEMORY, PODS, Resources

Whole = dict[str, int]

ASSUMED = {CPU: 100, MEMORY: 200 * 2**20}
"""What kube-scheduler's scores assume of a container without a request (scheduler/util/pod_resources.go)."""

_HUGEPAGES = "hugepages-"


class Needs(msgspec.Struct, frozen=True):
    """What the filters count of a pod, and what the scores do."""

    requests: Resources
    scoring_cpu_m: int
    scoring_memory_bytes: int


@lru_cache(maxsize=65536)
def _amount(text: str, is_cpu: bool) -> int:
    """One quantity in whole millicores or units; raises QuantityError. A cluster's pods state few different ones."""
    value = parse_quantity(text)
    if value < 0:
        raise QuantityError(f"{text!r} is negative")
    return to_milli(value) if is_cpu else to_units(value)


def amounts(items: wire.Amounts | None, path: str, faults: Faults) -> Whole:
    """Whole amounts by name: cpu in millicores, all else in units. A bad or negative quantity is a fault."""
    whole: Whole = {}
    for name, text in (items or {}).items():
        try:
            whole[name] = _amount(text if isinstance(text, str) else repr(text), name == CPU)
        except QuantityError as error:
            faults.append(Fault(f"{path}.{name}", str(error)))
    return whole


def pod_needs(pod: wire.Pod, faults: Faults) -> Needs:
    """The pod's requests, itself counted as one of `pods`, and what kube-scheduler's scores count of it."""
    spec = pod.spec
    status = {s.name: s for s in (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ()))}
    infeasible = _is_resize_infeasible(pod)

    def needs(container: wire.Container, path: str) -> Whole:
        asked = _container(container, path, faults)
        return _resized(asked, status.get(container.name), infeasible, faults)

    main = [needs(container, f"spec.containers[{i}]") for i, container in enumerate(spec.containers)]
    inits = [
        (needs(container, f"spec.initContainers[{i}]"), container.restart_policy == "Always")
        for i, container in enumerate(spec.init_containers or ())
    ]
    total = _aggregate(main, inits)
    pod_level = _pod_level(spec, total, faults)
    overhead = amounts(spec.overhead, "spec.overhead", faults)
    asked = _sum([{**total, **pod_level}, overhead])
    # With pod-level requests, a container without one is assumed to need some only of what nobody asked for.
    missing = {name: n for name, n in ASSUMED.items() if not pod_level or name not in asked}
    assumed = _aggregate([{**missing, **own} for own in main], [({**missing, **own}, side) for own, side in inits])
    counted = _sum([{**assumed, **pod_level}, overhead])
    return Needs(Resources.of({**asked, PODS: 1}), counted.get(CPU, 0), counted.get(MEMORY, 0))


def _container(container: wire.Container, path: str, faults: Faults) -> Whole:
    """A missing request takes its limit."""
    limits = amounts(container.resources.limits, f"{path}.resources.limits", faults)
    return {**limits, **amounts(container.resources.requests, f"{path}.resources.requests", faults)}


def _pod_level(spec: wire.PodSpec, aggregate: Whole, faults: Faults) -> Whole:
    """Pod-level requests. One that is missing takes its limit where no container asks for that resource.

    Hugepages, which cannot be overcommitted, take their limit in any case.
    """
    if spec.resources is None:
        return {}
    limits = amounts(spec.resources.limits, "spec.resources.limits", faults)
    requests = amounts(spec.resources.requests, "spec.resources.requests", faults)
    defaults = {name: n for name, n in limits.items() if name.startswith(_HUGEPAGES) or name not in aggregate}
    return {
        name: n for name, n in {**defaults, **requests}.items() if name in (CPU, MEMORY) or name.startswith(_HUGEPAGES)
    }


def _aggregate(containers: Iterable[Whole], inits: Iterable[tuple[Whole, bool]]) -> Whole:
    """What the pod needs at its peak; `inits` are needs and whether they are those of a sidecar, in order."""
    sidecars: Whole = {}
    peak: Whole = {}
    for needs, is_sidecar in inits:
        beside = _sum([sidecars, needs])
        sidecars = beside if is_sidecar else sidecars
        peak = _max(peak, beside)
    return _max(_sum([*containers, sidecars]), peak)


def _is_resize_infeasible(pod: wire.Pod) -> bool:
    """By the condition PodResizePending, or status.resize as it was until v1.33."""
    return pod.status.resize == "Infeasible" or any(
        condition.type == "PodResizePending" and condition.reason == "Infeasible"
        for condition in pod.status.conditions or ()
    )


def _resized(asked: Whole, status: wire.ContainerStatus | None, infeasible: bool, faults: Faults) -> Whole:
    """In-place resize: the larger of what is asked, allocated and in use; what is infeasible is not asked for."""
    if status is None or (status.allocated_resources is None and status.resources is None):
        return asked
    path = f"status.containerStatuses[{status.name}]"
    allocated = amounts(status.allocated_resources, f"{path}.allocatedResources", faults)
    in_use = status.resources.requests if status.resources is not None else None
    held = _max(allocated, amounts(in_use, f"{path}.resources.requests", faults))
    return held if infeasible and held else _max(asked, held)


def _sum(items: Iterable[Mapping[str, int]]) -> Whole:
    total: Whole = {}
    for item in items:
        for name, amount in item.items():
            total[name] = min(total.get(name, 0) + amount, MAX_AMOUNT)
    return total


def _max(one: Whole, other: Whole) -> Whole:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}
