"""`/nodes` and `/pods`: one by one, page by page, with what stands behind each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from htas.documents.explain import explain_node, explain_pod
from htas.documents.node_remedies import meaning_of_node
from htas.documents.nodes import NodeLine, node_line
from htas.documents.refusals import FlavourRefusal, refusals
from htas.documents.remedies import Meaning, meaning
from htas.model.money import bill_amount, price_text
from htas.model.pods import Pod
from htas.model.resources import share_millionths
from htas.ports import GivenError, NotFoundError
from htas.web.queries import NodeSort
from htas.web.reports.cluster import Judged, judged
from htas.web.reports.whys import OF_PROPOSALS
from htas.web.seat import Picture


class Block(msgspec.Struct, frozen=True):
    """A pod's part of its node: `cpu` and `memory` are shares of what that offers."""

    pod: str
    kind: str
    owner: str
    cpu: float
    memory: float


class NodeItem(msgspec.Struct, frozen=True):
    """A node of a page."""

    node: NodeLine
    why: str
    message: str
    blocks: Sequence[Block]


class NodePage(msgspec.Struct, frozen=True):
    """`total` are those that match; `next` is the offset of the next page, None: this is the last."""

    version: int
    total: int
    next: int | None
    items: Sequence[NodeItem]


class NodeDetail(msgspec.Struct, frozen=True):
    """A node, everything that holds it, and what it has cost since it came (empty: there is no past)."""

    item: NodeItem
    meaning: Meaning
    lines: Sequence[str]
    currency: str
    spent: str
    runtime: str
    kubelet: str
    labels: dict[str, str]


class PodItem(msgspec.Struct, frozen=True):
    """A pod of a page; `reason` tells why one waits."""

    pod: str
    kind: str
    owner: str
    node: str
    priority: int
    cpu_m: int
    memory_bytes: int
    since: float
    reason: str = ""


class PodPage(msgspec.Struct, frozen=True):
    """As `NodePage`."""

    version: int
    total: int
    next: int | None
    items: Sequence[PodItem]


class PodDetail(msgspec.Struct, frozen=True):
    """A pod, why it is where it is, its share of its machine's price, and the flavours that would not take it."""

    item: PodItem
    lines: Sequence[str]
    currency: str
    price_per_hour: str
    meaning: Meaning
    refusals: Sequence[FlavourRefusal]


ORDER: Mapping[NodeSort, Callable[[Judged], Any]] = {
    NodeSort.NAME: lambda each: each.node.name,
    NodeSort.GROUP: lambda each: (not each.figures.group, each.figures.group),
    NodeSort.FLAVOUR: lambda each: each.figures.flavour,
    NodeSort.ZONE: lambda each: each.node.zone or "",
    NodeSort.CPU: lambda each: each.figures.cpu,
    NodeSort.MEMORY: lambda each: each.figures.memory,
    NodeSort.PODS: lambda each: len(each.pods),
    NodeSort.AGE: lambda each: -each.node.created_at,
    NodeSort.PRICE: lambda each: each.figures.nanos,
    NodeSort.WHY: lambda each: each.why,
}
"""The smallest first; of equals by name."""


def node_page(
    picture: Picture,
    *,
    group: str = "",
    why: str = "",
    text: str = "",
    sort: NodeSort = NodeSort.RANK,
    reverse: bool = False,
    limit: int = 60,
    offset: int = 0,
) -> NodePage:
    """The nodes of a group, kept for a reason, with a text in their name, flavour or zone."""
    found = [
        each
        for each in judged(picture)
        if (not group or each.group == group)
        and (not why or each.why == why)
        and (not text or text in each.node.name or text in each.figures.flavour or text in (each.node.zone or ""))
    ]
    if sort in ORDER:
        found.sort(key=lambda each: each.node.name)
        found.sort(key=ORDER[sort], reverse=reverse)
    elif reverse:
        found.reverse()
    items = [_item(each, picture) for each in found[offset : offset + limit]]
    return NodePage(picture.version, len(found), _next(len(found), offset, limit), items)


def _next(total: int, offset: int, limit: int) -> int | None:
    return offset + limit if offset + limit < total else None


def _item(each: Judged, picture: Picture) -> NodeItem:
    line = node_line(each.node, each.figures, len(each.pods), picture.at)
    offered = each.node.allocatable
    blocks = [
        Block(
            pod.key,
            pod.kind.value if pod.is_work else "daemon",
            pod.maker,
            round(pod.requests.cpu_m / offered.cpu_m, 4) if offered.cpu_m else 0.0,
            round(pod.requests.memory_bytes / offered.memory_bytes, 4) if offered.memory_bytes else 0.0,
        )
        for pod in each.pods
    ]
    blocks.sort(key=lambda block: (block.kind == "daemon", -max(block.cpu, block.memory), block.pod))
    return NodeItem(line, each.why, each.message, blocks)


def node_detail(picture: Picture, name: str) -> NodeDetail:
    """Raises NotFoundError."""
    each = next((each for each in judged(picture) if each.node.name == name), None)
    if each is None:
        raise NotFoundError(f"node {name}: there is none now")
    billing = picture.policy.catalogue.billing
    held_s = max(0.0, picture.at - each.node.created_at) if each.node.created_at else 0.0
    price = picture.policy.whole_price_of(each.node)
    is_billed = price is not None and each.node.claim is not None and held_s > 0
    spent = billing.bill(price, each.node.created_at, held_s) if price is not None and is_billed else 0
    return NodeDetail(
        _item(each, picture),
        OF_PROPOSALS.get(each.why)
        or meaning_of_node(each.why, each.message, each.node, each.pods, picture.snapshot, picture.policy),
        explain_node(name, picture.snapshot, picture.plan, picture.policy),
        picture.plan.cost.currency,
        str(bill_amount(spent)),
        each.node.runtime,
        each.node.kubelet,
        dict(sorted(each.node.labels.items())),
    )


def pod_page(
    picture: Picture,
    *,
    waiting: bool = False,
    namespace: str = "",
    node: str = "",
    text: str = "",
    limit: int = 100,
    offset: int = 0,
) -> PodPage:
    """Pods in order of their names: those that wait, of a namespace, on a node, with a text in their name or owner."""
    found = [
        pod
        for pod in picture.snapshot.cluster.pods
        if (not waiting or pod.node is None)
        and (not namespace or pod.namespace == namespace)
        and (not node or pod.node == node)
        and (not text or text in pod.key or text in pod.maker)
    ]
    found.sort(key=lambda pod: pod.key)
    shown = found[offset : offset + limit]
    return PodPage(picture.version, len(found), _next(len(found), offset, limit), _pods(shown, picture))


def _pods(pods: Iterable[Pod], picture: Picture) -> list[PodItem]:
    reasons = {item.pod: item.reason.value for item in picture.plan.unplaced}
    return [
        PodItem(
            pod.key,
            pod.kind.value if pod.is_work else "daemon",
            pod.maker,
            pod.node or "",
            pod.priority,
            pod.requests.cpu_m,
            pod.requests.memory_bytes,
            pod.since,
            reasons.get(pod.key, ""),
        )
        for pod in pods
    ]


def pod_detail(picture: Picture, name: str) -> PodDetail:
    """Raises NotFoundError."""
    pod = next((pod for pod in picture.snapshot.cluster.pods if pod.key == name), None)
    if pod is None:
        raise NotFoundError(f"pod {name}: there is none now (it may have ended)")
    (item,) = _pods([pod], picture)
    try:
        lines = explain_pod(name, picture.snapshot, picture.plan, picture.policy)
    except GivenError as error:
        raise NotFoundError(str(error)) from error
    return PodDetail(
        item,
        lines,
        picture.plan.cost.currency,
        price_text(_share_nanos(pod, picture)),
        meaning(item.reason),
        refusals(pod, picture.snapshot, picture.policy) if pod.node is None else (),
    )


def _share_nanos(pod: Pod, picture: Picture) -> int:
    """Its part of its machine's price an hour, as `htas cost` shares bills."""
    node = next((node for node in picture.snapshot.cluster.nodes if node.name == pod.node), None)
    if node is None:
        return 0
    from htas.profiler.shares import part_of

    there = [each for each in picture.snapshot.cluster.pods if each.node == node.name and each.started_at is not None]
    shares = {each.uid: share_millionths(each.requests, node.allocatable) for each in (pod, *there)}
    return part_of(picture.policy.price_of(node) or 0, shares[pod.uid], sum(shares.values()))
