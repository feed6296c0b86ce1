"""Why a pod is where it is (or nowhere), and why a node stays or goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from htas.documents.explain_edge import explain_tier, tier_line
from htas.documents.refusals import refusals, taints_on, told_by_reason
from htas.documents.words import age, close_to, counted, did_you_mean, hourly, launched, share, some
from htas.model.money import price_text
from htas.model.nodes import ZONE_LABEL, Node
from htas.model.plan import Plan
from htas.model.pods import Pod, RunLength, RunLengthSource, WorkKind
from htas.model.policy import Policy
from htas.model.reasons import ProposalReason, Unplaced
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.feasibility.taints import UNTOLERATED
from htas.planning.cluster.run_length import run_length_s
from htas.planning.cluster.simulated import open_simulation
from htas.planning.cluster.taking_over import is_open
from htas.planning.disrupt.cleaning.candidates import kept_by
from htas.planning.disrupt.cleaning.obstacles import group_for, of_node, of_pods
from htas.planning.disrupt.cleaning.utilization import is_empty, utilization
from htas.planning.eligibility.migration_methods import method_for
from htas.planning.provision.own_machine import lengthening_of
from htas.planning.rental.lengthening import in_words
from htas.planning.what_if.adopting import CONTROL_PLANE, OF_CONTROL_PLANE
from htas.planning.what_if.pinning import PINNED, Pins, told
from htas.ports import GivenError


class NotThereError(GivenError):
    """The cluster has nothing of this name now; there may be a past of it."""


def explain_pod(name: str, snapshot: ClusterSnapshot, plan: Plan, policy: Policy) -> list[str]:
    """Lines about a pod, named `namespace/name` or, where it is the only one, `name`."""
    pods = [pod for pod in snapshot.cluster.pods if name in (pod.key, pod.name)]
    if not pods:
        raise NotThereError(f"pod {name}: there is none (it may have ended){_near_pods(name, snapshot.cluster.pods)}")
    if len(pods) > 1:
        raise GivenError(f"pod {name}: there are several: {', '.join(pod.key for pod in pods)}")
    pod = pods[0]
    return [
        _what(pod, policy),
        *_where(pod, snapshot, plan, policy),
        *_refused_room(pod, snapshot, plan, policy),
        *_flavours(pod, snapshot, plan, policy),
        *explain_tier(pod, snapshot, plan, policy),
        *_movable(pod, snapshot, plan, policy),
        *_constraints(pod),
    ]


def _near_pods(name: str, pods: Sequence[Pod]) -> str:
    """By the whole key, or by the name alone where no namespace is given."""
    if "/" in name:
        return did_you_mean(name, [pod.key for pod in pods])
    near = close_to(name, [pod.name for pod in pods])
    keys = [pod.key for each in near for pod in pods if pod.name == each]
    return f"; did you mean {' or '.join(keys)}?" if keys else "; name it NAMESPACE/NAME"


def _what(pod: Pod, policy: Policy) -> str:
    ask = f"{pod.requests.cpu_m}m cpu, {pod.requests.memory_bytes / 2**20:.0f} MiB"
    disk = pod.requests.ephemeral_bytes
    ask += f", {disk / 2**20:.0f} MiB ephemeral-storage" if disk else ""
    extended = "".join(f", {amount} {name}" for name, amount in pod.requests.extended)
    text = f"{pod.key}: {pod.kind.value} pod, priority {pod.priority}, requests {ask}{extended}"
    if pod.kind is WorkKind.BATCH:
        text += f"; runs about {run_length_s(pod, policy):.0f} s ({_source(pod.run_length)})"
    return text


def _source(length: RunLength | None) -> str:
    """Where an estimate comes from; of what was learned, how many runs it rests on and how well they agree."""
    if length is None:
        return RunLengthSource.DEFAULT.value
    if length.source is not RunLengthSource.LEARNED:
        return length.source.value
    if length.runs == 1:
        return f"learned from the only run of its {length.basis}"
    agreed = f"{length.confidence * 100:.0f} % of them ended within a quarter of that"
    return f"learned from {length.runs} runs of its {length.basis}; {agreed}"


def _where(pod: Pod, snapshot: ClusterSnapshot, plan: Plan, policy: Policy) -> Iterator[str]:
    if pod.node is not None:
        moving = [item for item in plan.migrate if item.pod == pod.key]
        node = next((node for node in snapshot.cluster.nodes if node.name == pod.node), None)
        known = _details(node, pod, snapshot.taken_at) if node is not None else ", which is not known"
        yield f"runs on {pod.node}{known}"
        if pod.is_terminating:
            yield "is terminating"
        yield from (f"is to be preempted for {item.beneficiary}" for item in plan.preempt if item.pod == pod.key)
        yield from (f"is to move to {item.target} by {item.method}, because its node is drained" for item in moving)
        yield from _makes_room(pod, snapshot, plan)
        return
    if not pod.is_placed_by(policy.scheduler_name):
        yield (
            f"pending: its scheduler {pod.scheduler} has not reported it Unschedulable (condition PodScheduled), so"
            " HTAS does not launch for it"
        )
    yield from (f"is to be bound to {item.node}" for item in plan.bind if item.pod == pod.key)
    yield from (f"has a reservation on {item.node}: {item.why}" for item in plan.nominate if item.pod == pod.key)
    for launch in plan.launches:
        if pod.key in launch.pods:
            price = price_text(launch.nanos_per_hour)
            others = f" and {counted(len(launch.pods) - 1, 'other')}" if len(launch.pods) > 1 else ""
            yield f"a {launch.flavour} of group {launch.group} is to be launched for it{others}"
            yield f"that machine costs {price} an hour"
    if pod.key in plan.optimize:
        yield "HTAS is to search for a better placement of running pods, so that it fits"
    for item in plan.unplaced:
        if item.pod == pod.key:
            yield f"pending: {item.reason.value}: {item.message}"
            for reason, count in sorted(item.nodes.items()):
                yield f"  {counted(count, 'node')}: {reason}{taints_on(pod, snapshot) if reason == UNTOLERATED else ''}"


def _makes_room(pod: Pod, snapshot: ClusterSnapshot, plan: Plan) -> Iterator[str]:
    """That a pod is to move, or is moving, so that others find room without a purchase."""
    current = snapshot.rearrangement
    if current is not None and current.why:
        under_way = (slot for slot in current.slots if slot.pod.uid == pod.uid and slot.source is not None)
        yield from (f"is moving to {slot.node} by {slot.method}: HTAS {current.why}" for slot in under_way)
    instead = plan.instead_of_buying
    if instead is not None:
        moves = (move for move in instead.moves if move.uid == pod.uid)
        yield from (f"is to move to {move.target} by {move.method}: HTAS {instead.message}" for move in moves)


def _refused_room(pod: Pod, snapshot: ClusterSnapshot, plan: Plan, policy: Policy) -> Iterator[str]:
    """Which node has room for a job that is bought for all the same: it would be rented too long."""
    if not any(pod.key in launch.pods for launch in plan.launches):
        return  # one that waits is told by the plan
    opening = open_simulation(snapshot, policy, snapshot.taken_at)
    judge = lengthening_of(opening, snapshot, policy)
    bargain = judge.best_refused(opening.book.class_of(pod)) if judge is not None else None
    if bargain is not None:
        yield f"{Unplaced.OWN_MACHINE_CHEAPER}: {in_words(bargain, policy)}"


FOR_ITS_OWN = frozenset({Unplaced.SCHEDULING_GATED, Unplaced.NOT_SUPPORTED, Unplaced.SURPLUS})
"""Reasons that lie in the pod alone: no flavour would help."""


def _flavours(pod: Pod, snapshot: ClusterSnapshot, plan: Plan, policy: Policy) -> Iterator[str]:
    """Of a pod that waits, which flavours would take it, and why each of the others would not."""
    if any(item.pod == pod.key and item.reason not in FOR_ITS_OWN for item in plan.unplaced):
        yield from told_by_reason(refusals(pod, snapshot, policy))


def _details(node: Node, pod: Pod, now: float) -> str:
    """What is known of where it runs: `(m1.large, zone az-1, for 3 d)`."""
    known = [node.flavour or "", f"zone {zone}" if (zone := node.labels.get(ZONE_LABEL)) else ""]
    if pod.started_at is not None and now > pod.started_at:
        known.append(f"for {age(now - pod.started_at)}")
    told = ", ".join(filter(None, known))
    return f" ({told})" if told else ""


def _movable(pod: Pod, snapshot: ClusterSnapshot, plan: Plan, policy: Policy) -> Iterator[str]:
    """Whether a running pod may be moved, and all that speaks against it, in the words of a plan."""
    node = next((node for node in snapshot.cluster.nodes if node.name == pod.node), None)
    if node is None or pod.key in {item.pod for item in plan.migrate} | {item.pod for item in plan.preempt}:
        return
    if not pod.is_work:
        yield f"belongs to its node and ends with it ({'DaemonSet' if pod.is_daemon else 'static pod'})"
        return
    if pod.passed_over:
        yield f"may be disrupted, although it opted out: {pod.passed_over}"
    found = _holding([pod], node, snapshot, policy)
    yield from (f"may not be moved: {each}" for each in found)
    if not found:
        group = policy.group(node.group)
        how = f" ({method_for(pod, group.cleaning.migration)})" if group is not None else ""
        yield f"may be moved{how}, if its node is drained"
    for kept in plan.kept:
        if kept.node == node.name:
            yield f"its node is kept: {kept.reason.value}: {kept.message}"


def _holding(pods: Sequence[Pod], node: Node, snapshot: ClusterSnapshot, policy: Policy) -> list[str]:
    """All that holds pods on their node: the rules of draining, and that a pod names that node alone."""
    pins = Pins(snapshot.cluster.nodes, snapshot.cluster.volumes)
    tied = ((pod, pin) for pod in pods if (pin := pins.of(pod)) is not None and pin.nodes <= {node.name})
    return [
        *(f"{rule}: {words}" for _, rule, words in of_pods(pods, node, snapshot, policy)),
        *(f"{PINNED}: {told(pod, pin)}" for pod, pin in tied),
    ]


def _constraints(pod: Pod) -> Iterator[str]:
    for feature in pod.constraints.unsupported:
        yield f"requests {feature}, which HTAS does not support: HTAS does not schedule it"


def explain_node(name: str, snapshot: ClusterSnapshot, plan: Plan, policy: Policy) -> list[str]:
    """Lines about a node."""
    node = next((node for node in snapshot.cluster.nodes if node.name == name), None)
    if node is None:
        raise NotThereError(f"node {name}: there is none{did_you_mean(name, [n.name for n in snapshot.cluster.nodes])}")
    pods = [pod for pod in snapshot.cluster.pods if pod.node == name]
    group = policy.group(node.group)
    flavour, pods_told, price = node.flavour or "unknown flavour", counted(len(pods), "pod"), policy.price_of(node)
    cost = f"{hourly(price)} {policy.catalogue.currency} an hour" if price is not None else "no known price"
    kubelet = f", kubelet {node.kubelet}" if node.kubelet else ""
    lines = [f"{name}: {flavour}, group {node.group or 'none'}, {pods_told}, {cost}{kubelet}"]
    if is_empty(pods, snapshot.taken_at):
        lines.append("empty: no pod on it would have to move")
    lines += (f"{condition} for {age(max(0.0, snapshot.taken_at - since))}" for condition, since in node.conditions)
    lines += tier_line(node, snapshot, policy)
    if group is not None:
        lines.append(f"utilisation {utilization(node, pods, group.cleaning, snapshot.taken_at):.0%}")
    replaced = list(_replaced(node, snapshot, plan, policy))
    lines += replaced or _why_it_stays(node, pods, snapshot, plan, policy)
    lines += _being_replaced(node, snapshot, policy)
    for item in plan.remove:
        if item.node == name:
            lines.append(f"to delete: {item.reason.value}: {item.message}")
            lines.append(f"saves {price_text(item.savings_nanos_per_hour)} {plan.cost.currency} an hour")
    return lines


def _replaced(node: Node, snapshot: ClusterSnapshot, plan: Plan, policy: Policy) -> Iterator[str]:
    """What is launched instead of a node, and what that saves against the least that consolidation asks for."""
    nodes, group = {each.name: each for each in snapshot.cluster.nodes}, policy.group(node.group)
    for each in plan.proposals:
        names = [release.node for release in each.releases]
        if not each.launches or node.name not in names:
            continue
        others = f", with {some([name for name in names if name != node.name])}" if len(names) > 1 else ""
        yield f"to be replaced{others}: {each.reason.value}: by {launched(each.launches)}; drained once Ready"
        price = sum(policy.price_of(nodes[name]) or 0 for name in names)
        least = ""
        if each.reason is ProposalReason.CONSOLIDATED and group is not None and group.cleaning.consolidation.enabled:
            least = f"; cleaning.consolidation.minSaving asks for {group.cleaning.consolidation.min_saving:.0%}"
        if each.value > 0:
            saves, currency = price_text(each.value), plan.cost.currency
            yield f"saves {saves} of {price_text(price)} {currency} an hour ({share(each.value, price)}){least}"


def _being_replaced(node: Node, snapshot: ClusterSnapshot, policy: Policy) -> Iterator[str]:
    """Machines that were launched instead of a node."""
    for claim in snapshot.claims:
        if node.name in claim.replaces and is_open(claim, policy, snapshot.taken_at):
            yield f"replaced by {claim.node or claim.id} ({claim.flavour}, {claim.state.value})"


def _why_it_stays(
    node: Node, pods: Sequence[Pod], snapshot: ClusterSnapshot, plan: Plan, policy: Policy
) -> Iterator[str]:
    """The reason that the plan tells, and beside it all others: what was lifted first would show the next.

    A plan may be of a moment ago: the same reason with another figure is no other.
    """
    kept = [item for item in plan.kept if item.node == node.name]
    if not kept:
        return
    yield from (f"kept: {item.reason.value}: {item.message}" for item in kept)
    told = {item.reason for item in kept}
    also = of_node(node, snapshot, plan, policy)
    yield from (f"also: {item.reason}: {item.message}" for item in also if item.reason not in told)
    if node.is_control_plane:
        yield f"also: {CONTROL_PLANE}: {OF_CONTROL_PLANE}"
        return
    if policy.group(node.group) is None:
        yield f"were it of group {group_for(node, policy).name}, it would be"
    found = _holding(pods, node, snapshot, policy)
    if policy.group(node.group) is None and node.held_by is not None:
        found.insert(0, f"{kept_by(node.held_by)}: annotated {node.held_by}=true")
    yield from (f"blocked by {each}" for each in dict.fromkeys(found) if all(each != item.message for item in kept))
    if not found and policy.group(node.group) is None:
        yield "blocked by no pod"
