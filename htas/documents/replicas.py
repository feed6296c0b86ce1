"""A cluster with more, or fewer, pods of some of its services: as their controllers would make and delete them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from htas.documents.words import did_you_mean
from htas.model.pods import Phase, Pod
from htas.model.snapshot import ClusterView
from htas.ports import MOST_TOLD, GivenError

MOST_GROWN = 20_000
"""Pods that may be added: a plan for as many takes seconds."""
STATEFUL_SET = "StatefulSet"


def services_of(view: ClusterView) -> Mapping[str, Sequence[Pod]]:
    """The pods of each service that are to stay, as their controllers count them."""
    of: dict[str, list[Pod]] = defaultdict(list)
    for pod in view.pods:
        if pod.service is not None and pod.owner is not None and pod.owner.kind != "Job" and not pod.is_terminating:
            of[pod.service].append(pod)
    return of


def with_replicas(view: ClusterView, wanted: Mapping[str, int]) -> ClusterView:
    """With more pods of a service, which wait, or fewer. Raises GivenError, with a line for each."""
    if not wanted:
        return view
    of, gone, come, faults = services_of(view), set[str](), list[Pod](), list[str]()
    for name, count in wanted.items():
        if name not in of:
            meant = did_you_mean(name, list(of)) if len(faults) < MOST_TOLD else ""
            faults.append(f"replicas.{name}: there is no service {name!r}{meant}")
        elif not 0 <= count <= MOST_GROWN:
            faults.append(f"replicas.{name}: {count} is not from 0 to {MOST_GROWN:,}")
        else:
            pods = sorted(of[name], key=_kept_first)
            gone |= {pod.key for pod in pods[count:]}
            newest = max(pods, key=lambda pod: (pod.created_at, pod.name))
            come += [_another(newest, i) for i in range(count - len(pods))]
    if faults:
        raise GivenError("\n".join(faults))
    if len(come) > MOST_GROWN:
        raise GivenError(f"replicas: {len(come):,} pods more in all; at most {MOST_GROWN:,} are tried")
    kept = tuple(pod for pod in view.pods if pod.key not in gone)
    return msgspec.structs.replace(view, pods=(*kept, *come))


def _kept_first(pod: Pod) -> tuple[bool, bool, float, str]:
    """A StatefulSet gives up its highest ordinals; others first what has no node or does not run, then the newest."""
    if pod.owner is not None and pod.owner.kind == STATEFUL_SET:
        ordinal = pod.name.rpartition("-")[2]
        return False, False, float(ordinal) if ordinal.isdecimal() else 0.0, pod.name
    return pod.node is None, pod.phase is not Phase.RUNNING, pod.created_at, pod.name


def _another(pod: Pod, number: int) -> Pod:
    """A pod as its controller would make it now. A StatefulSet's brings volumes of its own (`data-db-0` is db-0's)."""
    name = f"{pod.name}-more-{number}"
    own = {claim for claim, _ in pod.constraints.own_claims}  # it would be given its own
    claims = tuple(claim for claim in pod.constraints.claims if claim not in own)
    if pod.owner is not None and pod.owner.kind == STATEFUL_SET:
        claims = tuple(claim for claim in claims if not claim.endswith(f"-{pod.name}"))
    return msgspec.structs.replace(
        pod,
        name=name,
        uid=name,
        node=None,
        nominated_node=None,
        started_at=None,
        ready_since=None,
        phase=Phase.PENDING,
        twin_of="",
        is_moved=False,
        constraints=msgspec.structs.replace(pod.constraints, claims=claims, own_claims=()),
    )
