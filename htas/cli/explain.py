"""Why a pod is where it is (or nowhere), and why a node stays or goes."""

from __future__ import annotations

from collections.abc import Iterator

from htas.cli.console import InputError
from htas.cli.explain_edge import explain_tier, tier_line
from htas.model.money import price_text
from htas.model.plan import Plan
from htas.model.pods import Pod, RunLength, RunLengthSource, WorkKind
from htas.model.policy import Policy
from htas.model.reasons import Unplaced
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cleaning.movability import VolumeBook, refusal, source_refusal
from htas.planning.cleaning.utilization import utilization
from htas.planning.opening import open_simulation
from htas.planning.packing.lengthening import in_words
from htas.planning.run_length import run_length_s


def explain_pod(name: str, snapshot: ClusterSnapshot, plan: Plan, policy: Policy) -> list[str]:
    """Lines about a pod, named `namespace/name` or, where it is the only one, `name`."""
    pods = [pod for pod in snapshot.cluster.pods if name in (pod.key, pod.name)]
    if not pods:
        raise InputError(f"pod {name}: there is none (it may have ended); name it namespace/name")
    if len(pods) > 1:
        raise InputError(f"pod {name}: there are several: {', '.join(pod.key for pod in pods)}")
    pod = pods[0]
    return [
        _what(pod, policy),
        *_where(pod, plan),
        *_refused_room(pod, snapshot, plan, policy),
        *explain_tier(pod, snapshot, plan, policy),
        *_movable(pod, snapshot, policy),
        *_constraints(pod),
    ]


def _what(pod: Pod, policy: Policy) -> str:
    ask = f"{pod.requests.cpu_m}m cpu, {pod.requests.memory_bytes / 2**20:.0f} MiB"
    extended = "".join(f", {amount} {name}" for name, amount in pod.requests.extended)
    text = f"{pod.key}: {pod.kind.value} work, priority {pod.priority}, asks for {ask}{extended}"
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


def _where(pod: Pod, plan: Plan) -> Iterator[str]:
    if pod.node is not None:
        moving = [item for item in plan.migrate if item.pod == pod.key]
        yield f"runs on {pod.node}"
        yield from (f"is to be preempted for {item.beneficiary}" for item in plan.preempt if item.pod == pod.key)
        yield from (f"is to move to {item.target} by {item.method}, since its node is emptied" for item in moving)
        return
    yield from (f"is to be bound to {item.node}" for item in plan.bind if item.pod == pod.key)
    yield from (f"has room kept on {item.node}: {item.why}" for item in plan.nominate if item.pod == pod.key)
    for launch in plan.launch:
        if pod.key in launch.pods:
            price = price_text(launch.nanos_per_hour)
            yield f"a {launch.flavour} of group {launch.group} is to be bought for it and {len(launch.pods) - 1} others"
            yield f"that machine costs {price} an hour"
    if pod.key in plan.optimize:
        yield "a better placement of what runs is to be searched for, so that it finds room"
    for item in plan.unplaced:
        if item.pod == pod.key:
            yield f"waits: {item.reason.value}: {item.message}"
            yield from (f"  {count} node(s): {reason}" for reason, count in sorted(item.nodes.items()))


def _refused_room(pod: Pod, snapshot: ClusterSnapshot, plan: Plan, policy: Policy) -> Iterator[str]:
    """Which node has room for a job that is bought for all the same: it would be rented too long."""
    if not any(pod.key in launch.pods for launch in plan.launch):
        return  # one that waits is told by the plan
    opening = open_simulation(snapshot, policy, snapshot.taken_at)
    judge = opening.lengthening
    bargain = judge.best_refused(opening.book.class_of(pod)) if judge is not None else None
    if bargain is not None:
        yield f"{Unplaced.OWN_MACHINE_CHEAPER}: {in_words(bargain, policy)}"


def _movable(pod: Pod, snapshot: ClusterSnapshot, policy: Policy) -> Iterator[str]:
    """Why no twin can take its place elsewhere, where its group moves pods so."""
    node = next((node for node in snapshot.cluster.nodes if node.name == pod.node), None)
    group = policy.group(node.group) if node is not None else None
    if node is None or group is None or not group.cleaning.migration.makes_twin or pod.is_daemon:
        return
    method, volumes = group.cleaning.migration, VolumeBook.of(snapshot.cluster.volumes)
    refused = refusal(pod, method, policy.migration, volumes) or source_refusal(node, method)
    if refused is not None:
        yield f"cannot be moved by {method}: {refused[0]}: {refused[1]}"


def _constraints(pod: Pod) -> Iterator[str]:
    for feature in pod.constraints.unsupported:
        yield f"asks for {feature}, which htas does not understand: it is never placed by guessing"


def explain_node(name: str, snapshot: ClusterSnapshot, plan: Plan, policy: Policy) -> list[str]:
    """Lines about a node."""
    node = next((node for node in snapshot.cluster.nodes if node.name == name), None)
    if node is None:
        raise InputError(f"node {name}: there is none; known are {_some([n.name for n in snapshot.cluster.nodes])}")
    pods = [pod for pod in snapshot.cluster.pods if pod.node == name]
    group = policy.group(node.group)
    lines = [f"{name}: {node.flavour or 'unknown flavour'}, group {node.group or 'none'}, {len(pods)} pods"]
    lines += tier_line(node, snapshot, policy)
    if group is not None:
        lines.append(f"utilisation {utilization(node, pods, group.cleaning, snapshot.taken_at):.0%}")
    lines += [f"stays: {item.reason.value}: {item.message}" for item in plan.kept if item.node == name]
    for item in plan.remove:
        if item.node == name:
            lines.append(f"goes: {item.reason.value}: {item.message}")
            lines.append(f"saves {price_text(item.savings_nanos_per_hour)} {plan.cost.currency} an hour")
    return lines


def _some(names: list[str]) -> str:
    return ", ".join(sorted(names)[:5]) + (" …" if len(names) > 5 else "") if names else "none"
