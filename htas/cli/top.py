"""`htas top`: the nodes that are there, what they are asked for, how old they are and what they cost."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

import msgspec
import yaml
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from htas.cli.bars import bar
from htas.cli.console import out
from htas.cli.forms import Sorted
from htas.cli.instants import absolute, ago, length
from htas.cli.tables import show, table
from htas.config.loader import Loaded
from htas.daemon.stores import reading_store
from htas.model.money import price_text
from htas.model.nodes import Node
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.record import CycleRecord
from htas.model.snapshot import ClusterView
from htas.model.stages import Stage
from htas.planning.disrupt.cleaning.utilization import shares

REFRESH_S = 1.0
GIB = 2**30
WITH_PODS, WITH_GROUPS, WITH_BARS = 90, 100, 120
"""Columns of a terminal from which on pods are counted, the group shown (a node's name has it), and bars drawn."""


class NodeLine(msgspec.Struct, frozen=True):
    """One node of an export: `cpu` and `memory` are requests over allocatable, `created` is ISO 8601 in UTC."""

    node: str
    group: str
    flavour: str
    zone: str
    cpu: float
    memory: float
    pods: int
    created: str
    age_s: int
    price_per_hour: str
    state: str


class Present(msgspec.Struct, frozen=True):
    """The cluster at an instant, and what its nodes come to."""

    now: float
    view: ClusterView
    lines: Sequence[NodeLine]
    nanos_per_hour: int
    upcoming: Mapping[Stage, float] = {}
    """When each kind of cycle is due next by its period, as the daemon that leads has published it; empty: unknown."""


ORDER: Mapping[Sorted, Callable[[NodeLine], tuple[object, str]]] = {
    Sorted.NAME: lambda line: (0, line.node),
    Sorted.CPU: lambda line: (-line.cpu, line.node),
    Sorted.MEMORY: lambda line: (-line.memory, line.node),
    Sorted.AGE: lambda line: (-line.age_s, line.node),
    Sorted.PRICE: lambda line: (-float(line.price_per_hour or 0), line.node),
}
"""Most first, oldest first; of equals by name."""


def top(loaded: Loaded, sort: Sorted, watch: bool) -> None:
    """Print the present, and with `watch` again each second. A terminal of its own is drawn over, a pipe gets lines."""
    if not watch:
        show(_screen(loaded, sort))
        return
    if not out.is_terminal:
        while True:
            show(_screen(loaded, sort))
            time.sleep(REFRESH_S)
    with Live(_screen(loaded, sort), console=out, auto_refresh=False) as live:
        while True:
            time.sleep(REFRESH_S)
            live.update(_screen(loaded, sort), refresh=True)


def node_lines(loaded: Loaded, sort: Sorted) -> Sequence[NodeLine]:
    """The nodes as lines; none where nothing has been recorded yet."""
    present = _present(loaded, sort)
    return present.lines if present is not None else ()


def _screen(loaded: Loaded, sort: Sorted) -> RenderableType:
    present = _present(loaded, sort)
    if present is None:
        return Text("nothing has been recorded yet: start the daemon with htas run")
    return screen(present, loaded.policy.catalogue.currency, out.width, is_terminal=out.is_terminal)


def screen(present: Present, currency: str, width: int, *, is_terminal: bool) -> RenderableType:
    """The head line and the table, as much of it as a terminal of `width` columns holds."""
    has_groups = not is_terminal or width >= WITH_GROUPS
    has_pods = not is_terminal or width >= WITH_PODS
    has_bars = is_terminal and width >= WITH_BARS
    groups, pods = ["group"] if has_groups else [], ["pods"] if has_pods else []
    names = ["node", *groups, "flavour", "cpu", "memory", *pods, "age", "price/h", "state"]
    view = table(*names, right=frozenset({"cpu", "memory", "pods", "age", "price/h"}))
    for line in present.lines:
        view.add_row(
            line.node,
            *([line.group or "-"] if has_groups else []),
            line.flavour or "-",
            _share(line.cpu, has_bars),
            _share(line.memory, has_bars),
            *([str(line.pods)] if has_pods else []),
            length(line.age_s),
            line.price_per_hour or "-",
            line.state,
            style="" if line.state == "ready" else "yellow",
        )
    waiting = sum(pod.node is None for pod in present.view.pods)
    states = [line.state for line in present.lines]
    odd = "".join(f", {states.count(name)} {name}" for name in ("draining", "not ready") if name in states)
    count = "1 node" if len(states) == 1 else f"{len(states)} nodes"
    price = f"{price_text(present.nanos_per_hour)} {currency}/h"
    queue = "1 pod waits" if waiting == 1 else f"{waiting} pods wait"
    head = f"{absolute(present.now)}  {count}{odd}  {queue}  {price}"
    heads = [Text(head, style="bold")]
    if present.upcoming:
        heads.append(Text(f"next by period: {_due(present.upcoming, present.now)}", style="dim"))
    return Group(*heads, view)


def _due(upcoming: Mapping[Stage, float], now: float) -> str:
    """Such as: scheduling in 12s, cleaning in 4m."""
    times = sorted(upcoming.items(), key=lambda item: (item[1], item[0]))
    return ", ".join(f"{stage} in {length(at - now)}" if at > now else f"{stage} now" for stage, at in times)


def _share(share: float, has_bar: bool) -> str:
    return f"{bar(share, 8)} {share:4.0%}" if has_bar else f"{share:.0%}"


def _present(loaded: Loaded, sort: Sorted) -> Present | None:
    found = cluster_now(loaded)
    if found is None:
        newest = _newest(loaded)
        if newest is None:
            return None
        found = ClusterNow(newest.snapshot.cluster, newest.at)
    return present_of(found.view, found.at, loaded.policy, sort, upcoming_of(found.status))


def upcoming_of(status: str) -> Mapping[Stage, float]:
    """Epoch seconds of `next` in a status document; empty where it has none, or is no document of ours."""
    with suppress(yaml.YAMLError, AttributeError, TypeError, ValueError):
        told = yaml.safe_load(status).get("next", {})
        return {Stage(stage): datetime.fromisoformat(at).timestamp() for stage, at in told.items()}
    return {}


def present_of(
    view: ClusterView, now: float, policy: Policy, sort: Sorted, upcoming: Mapping[Stage, float] | None = None
) -> Present:
    """What a cluster's nodes come to at an instant."""
    on: dict[str, list[Pod]] = defaultdict(list)
    for pod in view.pods:
        if pod.node is not None:
            on[pod.node].append(pod)
    lines = sorted((_line(node, on[node.name], policy, now) for node in view.nodes), key=ORDER[sort])
    return Present(now, view, lines, sum(policy.price_of(node) or 0 for node in view.nodes), upcoming or {})


def _line(node: Node, pods: Sequence[Pod], policy: Policy, now: float) -> NodeLine:
    group, nanos = policy.group(node.group), policy.price_of(node)
    cpu, memory = shares(node, pods, (group or policy.groups[0]).cleaning, now)
    return NodeLine(
        node=node.name,
        group=node.group or "",
        flavour=node.flavour or "",
        zone=node.zone or "",
        cpu=round(cpu, 4),
        memory=round(memory, 4),
        pods=len(pods),
        created=absolute(node.created_at),
        age_s=max(0, int(now - node.created_at)),
        price_per_hour=price_text(nanos) if nanos is not None else "",
        state="draining" if node.is_draining else ("ready" if node.is_ready else "not ready"),
    )


class ClusterNow(NamedTuple):
    """A cluster, the time there, and the status document of the daemon that leads; "": none."""

    view: ClusterView
    at: float
    status: str = ""


def cluster_now(loaded: Loaded) -> ClusterNow | None:
    """The cluster as it is; None: it is a sandbox within a daemon."""
    setting = loaded.sandbox
    if setting is None:
        from htas.daemon.kubernetes_wiring import live_present

        snapshot, status = live_present(loaded)
        return ClusterNow(snapshot.cluster, snapshot.taken_at, status)
    if setting.address is None:
        return None
    from htas.daemon.sandbox_wiring import opened_world

    with opened_world(loaded, setting) as world:
        return ClusterNow(world.cluster.observe(), world.clock.now(), world.announcer.status)


def _newest(loaded: Loaded) -> CycleRecord | None:
    with reading_store(loaded) as store:
        records = store.cycles(limit=1)
    return records[0] if records else None


def recorded_view(loaded: Loaded) -> RenderableType:
    """Each machine as the profiler wrote of it last (HTAS paper 4.1): neither the cluster nor the daemon is asked."""
    with reading_store(loaded) as store:
        rows = store.latest()
    if not rows:
        return Text("nothing has been recorded yet: start the daemon with htas run")
    # A sandbox's clock is not the wall's: there the newest row is the present.
    now = max(row.event_time for row in rows) if loaded.sandbox is not None else time.time()
    is_wide = not out.is_terminal or out.width >= WITH_GROUPS
    view = table("node", "flavour", "written", "after", "cores free", "GiB free", *(["busy for"] if is_wide else []))
    for row in rows:
        view.add_row(
            row.instance_name,
            row.instance_type or "-",
            ago(row.event_time, now) if out.is_terminal else absolute(row.event_time),
            row.event.value,
            f"{row.cpuavailable / 1000:g}/{row.cpucapacity / 1000:g}",
            f"{row.ramavailable / GIB:.1f}/{row.ramcapacity / GIB:.1f}",
            *([length(row.runtime)] if is_wide else []),
        )
    return view
