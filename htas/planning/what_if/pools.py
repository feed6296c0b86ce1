"""Pools of today: nodes with labels and taints that neither the price file nor a node group gives.

A new machine could be given the same labels and taints, so `htas simulate` presumes a node group for each pool, and the
answer says so. Work of a pool may then go to any flavour, on which the lower bound and the mixes depend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from htas.model.constraints import Taint
from htas.model.nodes import HOSTNAME_LABEL, Node
from htas.model.pods import Pod
from htas.model.policy import NodeGroup, Policy
from htas.planning.what_if.likeness import GIVEN_TO_ALL, ITS_OWN, is_lasting

MOST_POOLS = 16
"""The largest pools are presumed. Work of others stays on its nodes."""
DISCOVERED = ("kubernetes.io", "k8s.io", "nvidia.com", "amd.com", "intel.com")
"""Domains of labels that kubelets, clouds and device plugins write: a machine has them or not."""
ROLE = "node-role.kubernetes.io/"


class Pool(msgspec.Struct, frozen=True):
    """Labels and taints that nodes of today share. `group` is the node group presumed for new machines of the pool."""

    group: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]


Signature = tuple[tuple[tuple[str, str], ...], tuple[Taint, ...]]


def pools_of(policy: Policy, workers: Sequence[Node], pods: Iterable[Pod]) -> tuple[Pool, ...]:
    """The pools that no group of the policy makes machines for, the largest first."""
    asked = {key for pod in pods if pod.is_work for key in _keys_asked(pod)}
    keys = asked - _own_keys(workers, asked)
    counts = Counter(_signature(node, keys, policy) for node in workers)
    elastic = [group for group in policy.groups if group.is_elastic]
    missing = [each for each in counts if any(each) and not any(_gives(group, each) for group in elastic)]
    missing.sort(key=lambda each: (-counts[each], [text for text, _ in each[0]], str(each)))
    return tuple(_pool(labels, taints) for labels, taints in missing[:MOST_POOLS]) if elastic else ()


def groups_for(pools: Iterable[Pool], policy: Policy) -> Iterator[NodeGroup]:
    """A node group for each pool, which buys what the groups of the policy buy."""
    elastic = [group for group in policy.groups if group.is_elastic]
    flavours = tuple(dict.fromkeys(pattern for group in elastic for pattern in group.flavours))
    for pool in pools:
        yield NodeGroup(
            pool.group,
            flavours=flavours,
            labels=pool.labels,
            taints=pool.taints,
            autoscaling=elastic[0].autoscaling,
            cpu_weight=elastic[0].cpu_weight,
            memory_weight=elastic[0].memory_weight,
            mix_budget_s=elastic[0].mix_budget_s,
            startup_s=elastic[0].startup_s,
        )


def _pool(labels: tuple[tuple[str, str], ...], taints: tuple[Taint, ...]) -> Pool:
    words = [f"{key}={value}" for key, value in labels] or [f"{taint.key}={taint.value}" for taint in taints]
    return Pool(f"(pool {', '.join(words)})", dict(labels), taints)


def _keys_asked(pod: Pod) -> Iterator[str]:
    """Keys of labels that a pod requires and that people give to nodes."""
    wanted = pod.constraints
    keys = [key for key, _ in wanted.node_selector]
    keys += [part.key for term in wanted.node_affinity or () for part in term.expressions]
    return (key for key in keys if _is_given_by_people(key))


def _is_given_by_people(key: str) -> bool:
    domain = key.partition("/")[0] if "/" in key else ""
    discovered = any(domain == each or domain.endswith(f".{each}") for each in DISCOVERED)
    return key not in ITS_OWN and key not in GIVEN_TO_ALL and (not discovered or key.startswith(ROLE))


def _own_keys(workers: Sequence[Node], keys: Iterable[str]) -> set[str]:
    """Keys that name a single node: on each node that has one, its value is the node's name or its hostname."""
    found = set()
    for key in keys:
        bearing = [node for node in workers if key in node.labels]
        if bearing and all(node.labels[key] in (node.name, node.labels.get(HOSTNAME_LABEL)) for node in bearing):
            found.add(key)
    return found


def _signature(node: Node, keys: Collection[str], policy: Policy) -> Signature:
    """What a node bears that its flavour does not give."""
    flavour = policy.catalogue.named(node.flavour)
    given = flavour.labels if flavour is not None else {}
    known = flavour.taints if flavour is not None else ()
    labels = {(key, node.labels[key]) for key in keys if key in node.labels and given.get(key) != node.labels[key]}
    taints = [taint for taint in node.taints if is_lasting(taint) and taint not in known]
    return tuple(sorted(labels)), tuple(sorted(taints, key=lambda taint: (taint.key, taint.value, taint.effect)))


def _gives(group: NodeGroup, signature: Signature) -> bool:
    """Whether a group's machines would take what the nodes of a pool take."""
    labels, taints = signature
    return all(group.labels.get(key) == value for key, value in labels) and set(group.taints) <= set(taints)
