"""Services: pods that serve and those that are missed, as far as users see them, and whether new services come."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from htas.model.pods import Owner, Pod, WorkKind
from htas.model.snapshot import ClusterView

NEW_WITHIN_S, TELL_OF_MORE = 1200.0, 2
"""Services stay, so that they need not come often: two in twenty minutes tell of a third.

Counted over an hour, machines were bought that notebooks, which leave all day, did not fill: 1.03 of the bill.
"""
APART_S = 60.0
"""Services that come within a minute of each other are begun together, which happens once: they count as one."""
IN_ONE_GO_S = 600.0
"""So long at most."""


def is_served(pod: Pod) -> bool:
    """Whether a pod is one of a service's, as far as it is known to users: targets count those."""
    return pod.kind is WorkKind.SERVICE and pod.service is not None and not pod.is_terminating and not pod.gates


def served(view: ClusterView) -> list[Pod]:
    return sorted(filter(is_served, view.pods), key=lambda pod: (pod.created_at, pod.key))


def services_starting(view: ClusterView) -> dict[str, Pod]:
    """Services with a pod that is on a node and not Ready, and that pod: users miss it already."""
    return {pod.service or "": pod for pod in served(view) if pod.node is not None and pod.ready_since is None}


def new_services(pods: Iterable[Pod], now: float) -> list[Pod]:
    """The oldest pod of each service that has none older than that, in the order they came.

    A service counts once, whatever its replicas: forty pods of one Deployment are one service. While a rollout lasts
    its old pods tell how old it is; afterwards nobody knows, and it counts as new. Copies of pods that move, pods
    behind a gate and the kubelets' own are none, nor is a service that is leaving.
    """
    first: dict[str, Pod] = {}
    alone = list[Pod]()
    for pod in pods:
        if pod.kind is not WorkKind.SERVICE or pod.twin_of or pod.gates or not pod.is_work:
            continue
        if pod.owner is None:  # a service of its own
            alone.append(pod)
            continue
        service = _deployed_as(pod, pod.owner)
        oldest = first.setdefault(service, pod)
        if oldest is not pod and (pod.created_at, pod.key) < (oldest.created_at, oldest.key):
            first[service] = pod
    since = now - NEW_WITHIN_S
    new = [pod for pod in (*alone, *first.values()) if pod.created_at > since and not pod.is_terminating]
    return sorted(new, key=attrgetter("created_at"))


def _deployed_as(pod: Pod, owner: Owner) -> str:
    """A Deployment over its ReplicaSets, else the controller itself.

    Unlike `Pod.service`: services of one template of another kind, an operator's, come one by one.
    """
    is_deployed = pod.template.startswith("Deployment/")
    return f"{pod.namespace}/{pod.template if is_deployed else f'{owner.kind}/{owner.name}'}"


def keep_coming(services: Iterable[Pod]) -> bool:
    """Whether new services, in the order they came, tell of more: those that come one after the other count as one.

    But not for longer than it takes to deploy many: one every 50 s for twenty minutes are services that keep coming.
    """
    count, first, last = 0, float("-inf"), float("-inf")
    for pod in services:
        if pod.created_at >= last + APART_S or pod.created_at >= first + IN_ONE_GO_S:
            count, first = count + 1, pod.created_at
        last = pod.created_at
    return count >= TELL_OF_MORE
