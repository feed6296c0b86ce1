"""Views on the configuration and the present: check and top."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from htas.cli.bars import bar
from htas.cli.console import out
from htas.cli.tables import table
from htas.config.loader import Loaded
from htas.daemon.stores import reading_store
from htas.model.edge import Tier
from htas.model.money import price_text
from htas.model.pods import Pod
from htas.model.policy import NodeGroup, Policy
from htas.model.record import CycleRecord
from htas.model.snapshot import ClusterView
from htas.planning.cleaning.utilization import utilization
from htas.planning.edge.present import empty_groups
from htas.ports import HTASError

REFRESH_S = 1.0


def configuration_view(loaded: Loaded) -> RenderableType:
    """What a configuration comes to: each group with the flavours it may buy and its limits."""
    policy = loaded.policy
    has_tiers = any(group.tier is Tier.EDGE for group in policy.groups)
    view = table("group", *(["tier"] if has_tiers else []), "work", "placed by", "nodes", "flavours (price/h)")
    for group in policy.groups:
        tier = [group.tier.value] if has_tiers else []
        view.add_row(group.name, *tier, group.workload.value, group.packing.algorithm.value, *_bought(group, policy))
    title = Text(f"ok: cluster {policy.cluster}, schedulerName {policy.scheduler_name}\n", style="bold green")
    parts: list[RenderableType] = [title, view]
    if not any(group.is_elastic for group in policy.groups):
        parts.append(Text("\nno group buys machines: work waits where the nodes that are there have no room"))
    return Group(*parts)


def _bought(group: NodeGroup, policy: Policy) -> tuple[str, str]:
    """How many machines a group may have, and of which flavours."""
    if not group.is_elastic:
        return "not bought", "–"
    limit = group.limits.max_nodes
    flavours = ", ".join(f"{f.name} ({price_text(f.nanos_per_hour)})" for f in policy.flavours_of(group))
    return f"{group.min_nodes}–{limit if limit is not None else '∞'}", flavours


def empty_groups_of(loaded: Loaded) -> list[str]:
    """Groups that wait for nodes nobody has labelled. A sandbox within a daemon cannot be asked."""
    if all(group.is_elastic for group in loaded.policy.groups):
        return []
    try:
        found = _now(loaded)
    except HTASError as error:
        return [f"whether the groups of tier edge have nodes is not known: {error}"]
    return empty_groups(found[0].nodes, loaded.policy) if found is not None else []


def cloud_problems_of(loaded: Loaded, live: bool) -> list[str]:
    """What the user data lacks and, `live`, the cloud of what is configured; only a real cloud lacks anything."""
    if loaded.settings.provider.openstack is None:
        return []
    from htas.daemon.openstack_supply import cloud_problems

    return cloud_problems(loaded, live)


def top(loaded: Loaded, watch: bool) -> None:
    """The newest recorded state, or the sandbox's present where it runs in a process of its own."""
    if not watch:
        out.print(_top(loaded))
        return
    with Live(_top(loaded), console=out, auto_refresh=False) as live:
        while True:
            time.sleep(REFRESH_S)
            live.update(_top(loaded), refresh=True)


def _top(loaded: Loaded) -> RenderableType:
    found = _now(loaded)
    if found is None:
        newest = _newest(loaded)
        if newest is None:
            return Text("nothing has been recorded yet: start the daemon with htas run")
        found = newest.snapshot.cluster, newest.at
    view, now = found
    policy = loaded.policy
    nodes = table("node", "group", "flavour", "utilisation", "pods", "price/h", "state")
    price = 0
    for node in view.nodes:
        pods: list[Pod] = [pod for pod in view.pods if pod.node == node.name]
        group, flavour = policy.group(node.group), policy.catalogue.named(node.flavour)
        share = utilization(node, pods, (group or policy.groups[0]).cleaning, now)
        price += flavour.nanos_per_hour if flavour is not None else 0
        nodes.add_row(
            node.name,
            node.group or "-",
            node.flavour or "-",
            bar(share, 8) + f" {share:4.0%}",
            str(len(pods)),
            price_text(flavour.nanos_per_hour) if flavour is not None else "-",
            "draining" if node.is_draining else ("ready" if node.is_ready else "not ready"),
        )
    waiting = sum(pod.node is None for pod in view.pods)
    when = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M:%S")
    head = f"{when}  {len(view.nodes)} nodes  {waiting} pods wait  {price_text(price)} {policy.catalogue.currency}/h\n"
    return Group(Text(head, style="bold"), nodes)


def _now(loaded: Loaded) -> tuple[ClusterView, float] | None:
    """The cluster and the time there; None: it is a sandbox within a daemon."""
    setting = loaded.sandbox
    if setting is None:
        from htas.daemon.kubernetes_wiring import live_snapshot

        snapshot = live_snapshot(loaded)
        return snapshot.cluster, snapshot.taken_at
    if setting.address is None:
        return None
    from htas.daemon.sandbox_wiring import opened_world

    with opened_world(loaded, setting) as world:
        return world.cluster.observe(), world.clock.now()


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
    view = table("node", "flavour", "written", "after", "cpu free", "of", "ram free", "of", "busy for s")
    for row in rows:
        view.add_row(
            row.instance_name,
            row.instance_type or "-",
            datetime.fromtimestamp(row.event_time, UTC).strftime("%m-%d %H:%M:%S"),
            row.event.value,
            f"{row.cpuavailable}m",
            f"{row.cpucapacity}m",
            f"{row.ramavailable / 2**20:.0f} MiB",
            f"{row.ramcapacity / 2**20:.0f} MiB",
            str(row.runtime),
        )
    return view
