"""Initialization: when a launched machine counts as a node, and what a registered one still waits for.

Karpenter's life cycle: launched, registered, initialized. A kubelet reports Ready before device plugins and agents have
started. Cores and memory come with the kubelet and do not come later, so a node that has fewer is initialized. Devices
come late, and agents take their taints off late. A taint that no group declares, or a cordon, is waited for, too: a
machine is launched for pods that do not expect it. But such a node may be meant so: at the timeout it is taken as it
is, while a machine without its devices, or with a declared start-up taint, fails.

Pods also count on a node that HTAS did not launch, or that was started again, while it lacks a device or bears a
declared start-up taint (`still_starting`). Without an instance type the flavours of its size tell its devices. Other
taints of such a node, and its cordon, are its owner's affair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from htas.model.claims import ClaimState, NodeClaim
from htas.model.constraints import Effect, Taint, untolerated
from htas.model.flavours import Flavour
from htas.model.nodes import DRAINING_TAINT, ZONE_LABEL, Node
from htas.model.pods import Pod
from htas.model.policy import NodeGroup, Policy
from htas.model.resources import CPU, EPHEMERAL, MEMORY, PODS, Resources
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.offered import AS_GOOD_AS_NONE, PLACEHOLDERS, is_as_large

OF_CONDITIONS = frozenset(
    {
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/unschedulable",
    }
)
"""Taints that follow a node's conditions and its cordon, which planning reads from these."""


def still_awaited(
    claim: NodeClaim, node: Node, policy: Policy, learned: Mapping[str, Resources] = {}
) -> tuple[str, ...]:
    """What a claim's registered node lacks to be initialized, beside Ready; nothing once it was initialized."""
    if claim.ready_at is not None or claim.state in (ClaimState.READY, ClaimState.DRAINING):
        return ()
    group, flavour = policy.group(claim.group), policy.catalogue.named(claim.flavour)
    if group is None or flavour is None:
        return ()
    promised = learned.get(flavour.name, flavour.allocatable)
    return (*_taints(node, group, flavour), *_resources(node.allocatable, promised))


def is_unusable(node: Node, group: NodeGroup | None, flavour: Flavour | None) -> bool:
    """Whether a node lacks what no pod of its flavour can do without: fewer devices than promised are of use.

    A cordon or a taint that is not a declared start-up taint makes none unusable: somebody may want it so.
    """
    if group is None or flavour is None:
        return False
    promised = flavour.allocatable
    some = msgspec.structs.replace(promised, extended=tuple((name, 1) for name, _ in promised.extended))
    at_start = {(taint.key, taint.effect) for taint in group.startup_taints}
    is_starting = any((taint.key, taint.effect) in at_start for taint in node.taints)
    return is_starting or any(True for _ in _resources(node.allocatable, some))


def start_up_taints(node: Node, group: NodeGroup, flavour: Flavour) -> Iterator[Taint]:
    """Taints of a new node that keep pods out and that its group and flavour do not declare for good."""
    declared = {*flavour.taints, *group.taints, DRAINING_TAINT}
    at_start = {(taint.key, taint.effect) for taint in group.startup_taints}
    for taint in node.taints:
        is_passing = (taint.key, taint.effect) in at_start
        keeps_out = taint.effect is not Effect.PREFER_NO_SCHEDULE and taint.key not in OF_CONDITIONS
        if is_passing or (keeps_out and taint not in declared):
            yield taint


def _taints(node: Node, group: NodeGroup, flavour: Flavour) -> Iterator[str]:
    if node.is_unschedulable and not node.is_draining:
        yield "kubectl uncordon"
    for taint in start_up_taints(node, group, flavour):
        yield f"taint {taint.key}"


def _resources(offered: Resources, promised: Resources) -> Iterator[str]:
    """Resources that are not there yet: next to no cores or memory, no storage, no room for pods, fewer devices."""
    shown = offered.amounts()
    for name, amount in promised.amounts().items():
        if name in (CPU, MEMORY):
            least = -(-amount // AS_GOOD_AS_NONE)
        else:
            least = min(1, amount) if name in (EPHEMERAL, PODS) else amount
        if shown.get(name, 0) < least:
            yield name


@dataclass(frozen=True, slots=True)
class Starting:
    """A Ready node that no claim stands for as coming, and that lacks a device or bears a declared start-up taint."""

    node: Node
    promised: Node
    awaited: tuple[str, ...]


def still_starting(node: Node, policy: Policy, learned: Mapping[str, Resources], now: float) -> Starting | None:
    """What a node that is not launched now still waits for, such as one of another autoscaler or after a reboot.

    None: nothing, or it has been Ready for `timeouts.initialization`. A node of no group of ours may bear the start-up
    taint of any group.
    """
    since = node.ready_since
    if since is None or now - since >= policy.timeouts.initialization_s or not node.takes_pods:
        return None
    group = policy.group(node.group)
    groups = policy.groups if group is None else (group,)
    at_start = {(taint.key, taint.effect) for each in groups for taint in each.startup_taints}
    passing = [taint for taint in node.taints if (taint.key, taint.effect) in at_start]
    shown = dict(node.allocatable.extended)
    late = {name: amount for name, amount in _devices(node, policy, learned).items() if shown.get(name, 0) < amount}
    if not passing and not late:
        return None
    promised = msgspec.structs.replace(
        node,
        taints=tuple(taint for taint in node.taints if taint not in passing),
        allocatable=msgspec.structs.replace(node.allocatable, extended=tuple(sorted((shown | late).items()))),
    )
    return Starting(node, promised, (*(f"taint {taint.key}" for taint in passing), *late))


def _devices(node: Node, policy: Policy, learned: Mapping[str, Resources]) -> Mapping[str, int]:
    """The devices of a node's flavour. Without an instance type: those that every flavour of its size has."""
    flavours = policy.catalogue.flavours
    alike = [each for each in flavours if each.name == node.flavour]
    if not alike and (node.flavour or "") in PLACEHOLDERS:
        alike = [each for each in flavours if is_as_large(each, node.allocatable)]
    if not alike:
        return {}
    first, *others = (dict(learned.get(each.name, each.allocatable).extended) for each in alike)
    return {name: min([amount, *(each.get(name, 0) for each in others)]) for name, amount in first.items()}


def as_registered(promised: Node, node: Node | None) -> Node:
    """A launched machine's node as it is planned with: as promised, with the labels that a registered node shows."""
    if node is None:
        return promised
    labels = {**promised.labels, **node.labels}
    return msgspec.structs.replace(promised, labels=labels, is_of_any_zone=ZONE_LABEL not in labels)


@dataclass(slots=True)
class Registered:
    """A registered node as it is now: which of the pods that its machine was launched for it could run already."""

    node: Node
    promised: Node
    used: Resources
    """Requests of the pods that run there."""

    def take(self, pod: Pod) -> bool:
        """Whether it holds a pod as it is, beside those that it took before.

        Volumes wait for initialization, since their drivers are not asked here.
        """
        asked = self.used + pod.requests
        holds = (
            self.node.takes_pods
            and self.promised.labels.keys() <= self.node.labels.keys()
            and untolerated(self.node.taints, pod.constraints.tolerations) is None
            and not pod.constraints.claims
            and asked.fits_in(self.node.allocatable)
        )
        if holds:
            self.used = asked
        return holds


def registered_nodes(snapshot: ClusterSnapshot, policy: Policy) -> dict[str, str]:
    """Nodes that are Ready and not initialized yet, by name, and what each waits for, in words."""
    claims = {claim.id: claim for claim in snapshot.claims if claim.is_coming}
    nodes = snapshot.cluster.nodes if claims else ()
    return {
        node.name: in_words(awaited)
        for node in nodes
        if node.is_ready
        and node.claim in claims
        and (awaited := still_awaited(claims[node.claim], node, policy, snapshot.learned))
    }


def in_words(awaited: Iterable[str]) -> str:
    """What a registered machine waits for: `registered, waiting for nvidia.com/gpu`."""
    return f"registered, waiting for {', '.join(awaited)}"
