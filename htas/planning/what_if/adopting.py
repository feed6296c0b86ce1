"""Adopting a cluster: its nodes are taken for HTAS's own, so that the planner may judge, empty and replace them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from htas.model.billing import Price
from htas.model.claims import ClaimState, NodeClaim
from htas.model.constraints import Constraints, Taint, Toleration
from htas.model.flavours import Catalogue
from htas.model.nodes import CLAIM_LABEL, CLUSTER_LABEL, GROUP_LABEL, HOLDING, Node
from htas.model.pods import MAY_MIGRATE, Owner, Phase, Pod, RunLength, RunLengthSource, WorkKind
from htas.model.policy import CleaningRules, NodeGroup, Policy, Workload
from htas.model.reasons import Kept
from htas.model.resources import LackingRequests
from htas.model.snapshot import ClusterSnapshot, ClusterView, Memory
from htas.model.volumes import Volumes
from htas.planning.cluster.default_requests import lacking_requests
from htas.planning.cluster.run_length import LONGEST_S
from htas.planning.cluster.zones import asks_for_zones, zones_of
from htas.planning.disrupt.cleaning.candidates import kept_by
from htas.planning.eligibility.drain_rules import cannot_be_read
from htas.planning.eligibility.migration_methods import begins_on_a_guess
from htas.planning.what_if.agents import PER_NODE, Agents, as_daemons
from htas.planning.what_if.likeness import as_seen, lent_labels, offered_by, taints_of_devices, with_driver_labels
from htas.planning.what_if.monthly import by_the_month
from htas.planning.what_if.pools import Pool, groups_for, pools_of

ADOPTED = "(present)"
"""The node group of adopted nodes: it takes any work and buys nothing. No group of a configuration can be named so."""
CONTROL_PLANE, OF_CONTROL_PLANE = "ControlPlane", "it is of the control plane"
"""How that cause is called beside the cleaner's, and in words."""
ANYWHERE = Constraints(tolerations=(Toleration(operator="Exists"),))


class WhyItStays(msgspec.Struct, frozen=True):
    """Why a node stays whatever is planned; where the cleaner has a word for it, `rule` is that."""

    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class AdoptedCluster:
    """A cluster with every node adopted that has a price and may go. All its pods run: what waits is left out."""

    policy: Policy
    snapshot: ClusterSnapshot
    fixed: Mapping[str, WhyItStays]
    """Nodes that stay in any case, and why."""
    calm: Mapping[str, WhyItStays]
    """Nodes that stay for as long as they are annotated so."""
    unpriced: Mapping[str, int]
    """Instance types, some with their zone, without a price ("": a node without a type), and how many nodes are of
    them.
    """
    waiting: int
    opted_in: frozenset[str]
    """Pods of services that were taken to be movable although nobody opted them in."""
    of_unknown_length: frozenset[str]
    """Jobs that would begin again of which nobody knows how long they run; they are taken to run for long."""
    foreign: frozenset[str]
    """Nodes that could go and that HTAS has not bought: it gives back its own alone."""
    prices: Mapping[str, int | None]
    """By node, billionths an hour in the mean of a month; None: not known."""
    hourly: Mapping[str, int | None]
    """The same without monthly caps, as the daemon compares them."""
    monthly: Catalogue
    """The price list in the mean of a month."""
    zoneless: tuple[str, ...]
    """Flavours that name no zones, where some work goes by them: they are taken to be sold in each of `zones`."""
    zones: tuple[str, ...]
    tainted: Mapping[str, tuple[Taint, ...]]
    """Flavours that no node shows, with the taints taken for theirs, which all nodes with their devices bear."""
    lent: Mapping[str, Mapping[str, str]]
    """Flavours that no node shows, with the labels taken for theirs, which all nodes bear and nothing that is written
    gives them."""
    agents: tuple[Agents, ...]
    """Pods that operators made one for each node: they count as a DaemonSet's."""
    pools: tuple[Pool, ...]
    """Pools for whose machines node groups are presumed."""
    widest: Policy
    """For the lower bound: machines of any flavour may be given the labels and taints of any pool."""
    lacking: LackingRequests
    """Pods that state no cpu or no memory: what counts for them is in their requests here."""

    @property
    def now(self) -> float:
        return self.snapshot.taken_at

    @property
    def rules(self) -> CleaningRules:
        return self.policy.groups[-1].cleaning

    def price(self, node: Node) -> int:
        """Billionths an hour in the mean of a month; 0 for a node without a known price."""
        return self.prices[node.name] or 0

    def hourly_price(self, node: Node) -> int:
        """The same without its monthly cap."""
        return self.hourly[node.name] or 0

    def is_priced(self, node: Node) -> bool:
        return self.prices[node.name] is not None


STATIC = "static/"
"""How the DaemonSets are named that stand for static pods; a slash is in no real name."""


def _placed_by_us(pod: Pod, policy: Policy, *, is_moved: bool) -> Pod:
    """A pod of HTAS's own; `is_moved` although nobody knows how long it runs: as if it ran for long.

    HTAS lets such a job end where it is. But a dump tells of no run lengths, and what is asked is where it belongs.
    """
    requests = policy.default_requests.filled(pod.requests) if pod.is_work else pod.requests
    pod = msgspec.structs.replace(pod, scheduler=policy.scheduler_name, requests=requests)
    return _long_running(pod) if is_moved else pod


def _long_running(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, run_length=RunLength(LONGEST_S, RunLengthSource.ANNOTATION))


def adopt(view: ClusterView, policy: Policy, now: float, *, as_annotated: bool = False) -> AdoptedCluster:
    """A cluster as the what-if sees it, whoever bought its nodes.

    Nodes without a price stay as they are, hold what they hold and take nothing more: moving work to them would only
    look like a saving. So do those of the edge: what is on them follows the services' targets. Services are taken to
    have opted in to being moved unless `as_annotated`. Choices are made at hourly prices, as the daemon makes them.
    Figures and the bound are those of a month (`by_the_month`).
    """
    monthly = msgspec.structs.replace(policy, catalogue=by_the_month(policy.catalogue))
    prices = {node.name: monthly.price_of(node) for node in view.nodes}
    no_masters = [node for node in view.nodes if not node.is_control_plane]
    pods, agents = as_daemons(_static_as_daemons(_running(view), no_masters), no_masters)
    fixed = _fixed(view, pods, policy)
    calm = {node.name: _calm(node.held_by) for node in view.nodes if node.held_by and node.name not in fixed}
    workers = [node for node in view.nodes if prices[node.name] is not None and not node.is_control_plane]
    movable, opted_in = (pods, frozenset[str]()) if as_annotated else _opted_in(pods)
    seen = msgspec.structs.replace(policy, catalogue=as_seen(policy.catalogue, workers))
    pools = pools_of(seen, workers, pods)
    adopting = _adopting(seen, pools, len(workers))
    method = adopting.groups[-1].cleaning.migration
    guessed = frozenset(pod.key for pod in movable if begins_on_a_guess(pod, method, policy, now) is not None)
    aside = fixed.keys() | calm.keys()
    adopted = tuple(_aside(node, policy) if node.name in aside else _adopted(node, policy) for node in view.nodes)
    present = tuple(node for node in adopted if node.group == ADOPTED)
    snapshot = ClusterSnapshot(
        now,
        msgspec.structs.replace(
            view,
            nodes=adopted,
            pods=tuple(_placed_by_us(pod, policy, is_moved=pod.key in guessed) for pod in movable),
            daemons=None if view.daemons is None else (*view.daemons, *_templates(pods, view.daemons)),
        ),
        claims=tuple(_claim(node, policy) for node in present),
        learned=offered_by(workers, adopting.catalogue),
        models=with_driver_labels(present, view.volumes),
        memory=Memory.of_long_ago(view.nodes, now),
        expects_more=False,
    )
    unpriced = Counter(_type_of(node, policy) for node in view.nodes if prices[node.name] is None)
    waiting = sum(pod.node is None and not pod.is_daemon and not pod.is_terminating for pod in view.pods)
    foreign = frozenset(node.name for node in view.nodes if node.name not in fixed and not _is_owned(node, policy))
    return AdoptedCluster(
        adopting,
        snapshot,
        fixed,
        calm,
        dict(sorted(unpriced.items())),
        waiting,
        opted_in,
        guessed,
        foreign,
        prices,
        {node.name: policy.price_of(node) for node in view.nodes},
        monthly.catalogue,
        *_zoneless(policy, pods, zones_of(workers), view.volumes),
        _tainted(policy, workers),
        _lent(policy, workers),
        agents,
        pools,
        _widest(monthly, workers, pods),
        lacking_requests(movable, policy.default_requests),
    )


def _widest(policy: Policy, workers: Sequence[Node], pods: Sequence[Pod]) -> Policy:
    """The policy where labels of today bind no flavour, but may be given to any machine, and taints of devices alone
    are set."""
    catalogue = as_seen(policy.catalogue, workers, is_of_flavours=False)
    policy = msgspec.structs.replace(policy, catalogue=catalogue)
    pools = [msgspec.structs.replace(pool, taints=()) for pool in pools_of(policy, workers, pods)]
    return _adopting(policy, pools, len(workers))


def _tainted(policy: Policy, workers: Sequence[Node]) -> dict[str, tuple[Taint, ...]]:
    shown = {node.flavour for node in workers}
    found = {}
    for flavour in policy.catalogue.flavours:
        stated = {taint.key for taint in flavour.taints}
        if flavour.name not in shown:
            found[flavour.name] = tuple(t for t in taints_of_devices(flavour, workers) if t.key not in stated)
    return {name: taints for name, taints in found.items() if taints}


def _lent(policy: Policy, workers: Sequence[Node]) -> dict[str, dict[str, str]]:
    shown = {node.flavour for node in workers}
    found = {
        flavour.name: lent_labels(flavour, workers, [group for group in policy.groups if group.is_elastic])
        for flavour in policy.catalogue.flavours
        if flavour.name not in shown
    }
    return {name: labels for name, labels in found.items() if labels}


def _zoneless(
    policy: Policy, pods: Iterable[Pod], zones: tuple[str, ...], volumes: Volumes
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The daemon buys no machine of such a flavour for work that goes by zones, by itself or by its volumes."""
    zonal = _zonal_claims(volumes, zones)
    work = [pod for pod in pods if not pod.is_daemon]
    if not any(
        asks_for_zones(pod.constraints) or any(f"{pod.namespace}/{claim}" in zonal for claim in pod.constraints.claims)
        for pod in work
        if zones
    ):
        return (), ()
    return tuple(flavour.name for flavour in policy.catalogue.flavours if not flavour.zones), zones


def _zonal_claims(volumes: Volumes, zones: Collection[str]) -> set[str]:
    """Claims whose volume can be reached from some zones alone, whatever its driver calls them."""
    zonal = {
        volume.name
        for volume in volumes.persistent
        for term in volume.node_affinity or ()
        if any(not set(part.values).isdisjoint(zones) for part in term.expressions)
    }
    return {claim.key for claim in volumes.claims if claim.volume in zonal}


def _is_owned(node: Node, policy: Policy) -> bool:
    return node.cluster == policy.cluster and node.claim is not None


def _adopting(policy: Policy, pools: Sequence[Pool], workers: int) -> Policy:
    """The policy with a group for each pool, and one for what is there: cleaned by the first group's rules, at any age
    and without waiting."""
    rules = policy.groups[0].cleaning.at_once(workers)  # what is asked is what the work costs, not whose turn it is
    group = NodeGroup(ADOPTED, Workload.ANY, flavours=(), cleaning=rules)
    return msgspec.structs.replace(
        policy,
        groups=(*policy.groups, *groups_for(pools, policy), group),
        max_wait_for_capacity_s=0.0,  # nothing waits for a node to free: what is asked is where everything fits
        max_rental_lengthening=None,
    )


def _running(view: ClusterView) -> list[Pod]:
    """Pods that run and stay, and DaemonSet pods that are about to; what is ending or waits is not asked about."""
    names = {node.name for node in view.nodes}
    return [pod for pod in view.pods if not pod.is_terminating and (pod.node in names or pod.is_daemon)]


def _opted_in(pods: Iterable[Pod]) -> tuple[list[Pod], frozenset[str]]:
    result, opted_in = [], set[str]()
    for pod in pods:
        if pod.kind is WorkKind.SERVICE and MAY_MIGRATE not in pod.disruption and pod.is_work:
            pod = msgspec.structs.replace(pod, disruption={**pod.disruption, MAY_MIGRATE: "true"})
            opted_in.add(pod.key)
        result.append(pod)
    return result, frozenset(opted_in)


def _static_as_daemons(pods: Iterable[Pod], workers: Sequence[Node]) -> list[Pod]:
    """Static pods that every worker has (kube-proxy-NODE) would run on a new machine, too: as DaemonSet pods do."""
    pods = list(pods)
    names = {node.name for node in workers}
    counts = Counter(base for pod in pods if pod.node in names and (base := _static_base(pod)) is not None)
    on_all = {base for base, count in counts.items() if count == len(names)}
    return [
        msgspec.structs.replace(pod, is_mirror=False, owner=Owner("DaemonSet", f"{STATIC}{base}"), constraints=ANYWHERE)
        if (base := _static_base(pod)) in on_all
        else pod
        for pod in pods
    ]


def _templates(pods: Iterable[Pod], known: Iterable[Pod]) -> list[Pod]:
    """Of each static pod or agent that counts as a DaemonSet's, what a new machine would run: as the newest of them.
    A cluster that was adopted before knows them already.
    """
    made, there = (STATIC, PER_NODE), {pod.owner for pod in known}
    by_age = sorted(pods, key=lambda pod: (pod.created_at, pod.key))
    found = {pod.owner.name: pod for pod in by_age if pod.owner is not None and pod.owner.name.startswith(made)}
    found = {name: pod for name, pod in found.items() if pod.owner not in there}
    return [msgspec.structs.replace(pod, node=None, phase=Phase.PENDING) for pod in found.values()]


def _static_base(pod: Pod) -> str | None:
    """The name in its file of a static pod: the kubelet adds its node's."""
    return pod.name.removesuffix(f"-{pod.node}") if pod.is_mirror and pod.node is not None else None


def _fixed(view: ClusterView, pods: Iterable[Pod], policy: Policy) -> dict[str, WhyItStays]:
    static: dict[str, list[str]] = {}
    for pod in pods:
        if pod.is_mirror and pod.node is not None:
            static.setdefault(pod.node, []).append(pod.key)
    reasons = {node.name: _stays(node, static.get(node.name, ()), view, policy) for node in view.nodes}
    return {name: reason for name, reason in sorted(reasons.items()) if reason is not None}


def _type_of(node: Node, policy: Policy) -> str:
    """A node's instance type; where the price file has it, but not for the node's zone, with the zone."""
    if policy.catalogue.named(node.flavour) is None:
        return node.flavour or ""
    return f"{node.flavour} in {f'zone {node.zone}' if node.zone is not None else 'no zone'}"


def _stays(node: Node, static: Sequence[str], view: ClusterView, policy: Policy) -> WhyItStays | None:
    """Why a node stays whatever is planned; None: it may go."""
    if policy.price_of(node) is None:
        return WhyItStays(Kept.NO_PRICE, f"its instance type {_type_of(node, policy) or '(no label)'} has no price")
    if node.is_control_plane:
        return WhyItStays(CONTROL_PLANE, OF_CONTROL_PLANE)
    if policy.is_given(node):
        return WhyItStays(Kept.NOT_ELASTIC, "it is on the edge, where HTAS launches and deletes nothing")
    if not node.is_ready:
        return WhyItStays(Kept.NOT_READY, "it is not Ready")
    if node.name in view.unread:
        return WhyItStays(Kept.UNREADABLE_POD, cannot_be_read(view.unread[node.name]))
    if static:
        return WhyItStays("StaticPod", f"static pod {min(static)} is defined on this machine alone")
    return None


def _calm(key: str) -> WhyItStays:
    return WhyItStays(kept_by(key), f"annotated {key}=true")


def uncalmed(present: AdoptedCluster, rules: Collection[str]) -> AdoptedCluster:
    """Without the annotations by which nodes stay by these rules; one that has no other may go like all that may."""
    view, policy = present.snapshot.cluster, present.policy
    nodes, freed = [], []
    for node in view.nodes:
        held_by = set(annotations_that_hold(node, rules))
        if held_by:
            left = {key: value for key, value in node.annotations.items() if key not in held_by}
            node = msgspec.structs.replace(node, annotations=left)
            if node.name in present.calm and node.held_by is None:
                node = _adopted(node, policy)
                freed.append(node)
        nodes.append(node)
    if nodes == list(view.nodes):
        return present
    snapshot = msgspec.structs.replace(
        present.snapshot,
        cluster=msgspec.structs.replace(view, nodes=tuple(nodes)),
        claims=(*present.snapshot.claims, *(_claim(node, policy) for node in freed)),
    )
    names = {node.name for node in freed}
    calm = {name: stays for name, stays in present.calm.items() if name not in names}
    return replace(present, snapshot=snapshot, calm=calm)


def annotations_that_hold(node: Node, rules: Collection[str]) -> list[str]:
    """Those that hold a node by some of these rules."""
    return [key for key in HOLDING if node.annotations.get(key) == "true" and _calm(key).rule in rules]


def _adopted(node: Node, policy: Policy) -> Node:
    ours = {CLUSTER_LABEL: policy.cluster, CLAIM_LABEL: node.name, GROUP_LABEL: ADOPTED}
    return msgspec.structs.replace(node, labels={**node.labels, **ours})


def _aside(node: Node, policy: Policy) -> Node:
    """A node that stays: nobody's, and closed to more work where its price is not known or its place is the edge."""
    labels = {key: value for key, value in node.labels.items() if key not in (CLUSTER_LABEL, CLAIM_LABEL, GROUP_LABEL)}
    closed = node.is_unschedulable or policy.price_of(node) is None or policy.is_given(node)
    return msgspec.structs.replace(node, labels=labels, is_unschedulable=closed)


def _claim(node: Node, policy: Policy) -> NodeClaim:
    price = policy.catalogue.price(node.flavour, node.zone) or Price(0)
    return NodeClaim(
        id=node.name,
        group=ADOPTED,
        flavour=node.flavour or "",
        state=ClaimState.READY,
        created_at=node.created_at,
        since=node.created_at,
        node=node.name,
        nanos_per_hour=price.nanos_per_hour,
        cap=price.cap,
    )
