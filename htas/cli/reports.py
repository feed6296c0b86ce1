"""Views on the store and the configuration: check, top, cost, history, replay."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from htas.cli.bars import bar
from htas.cli.console import InputError, instant_of, out
from htas.config.loader import Loaded
from htas.daemon.kubernetes_wiring import live_snapshot
from htas.daemon.sandbox_wiring import opened_world
from htas.daemon.wiring import recorded_store
from htas.model.money import bill_amount, price_text
from htas.model.pods import Pod
from htas.model.record import Bill, CycleRecord
from htas.model.stages import Stage
from htas.planning.cleaning.utilization import utilization
from htas.planning.planner import plan
from htas.ports import StorePort
from htas.profiler import accounts
from htas.profiler.compare import differences
from htas.profiler.history import entries

REFRESH_S = 1.0
UNFOLDED = frozenset({"node", "when", "cycle", "on", "group", "flavour", "event", "type"})
"""Columns of names, which people copy: only the words behind them are folded."""


class CostBy(StrEnum):
    GROUP = "group"
    FLAVOUR = "flavour"
    DAY = "day"


def _table(*columns: str) -> Table:
    table = Table(header_style="dim", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column in UNFOLDED)
    return table


def configuration_view(loaded: Loaded) -> RenderableType:
    """What a configuration comes to: each group with the flavours it may buy and its limits."""
    policy = loaded.policy
    table = _table("group", "work", "placed by", "nodes", "flavours (price/h)")
    for group in policy.groups:
        limit = group.limits.max_nodes
        flavours = ", ".join(f"{f.name} ({price_text(f.nanos_per_hour)})" for f in policy.flavours_of(group))
        nodes = f"{group.min_nodes}–{limit if limit is not None else '∞'}"
        table.add_row(group.name, group.workload.value, group.packing.algorithm.value, nodes, flavours)
    title = Text(f"ok: cluster {policy.cluster}, schedulerName {policy.scheduler_name}\n", style="bold green")
    return Group(title, table)


def cloud_problems_of(loaded: Loaded, live: bool) -> list[str]:
    """What the user data lacks and, `live`, the cloud of what is configured; only a real cloud lacks anything."""
    if loaded.settings.provider.openstack is None:
        return []
    from htas.daemon.openstack_supply import cloud_problems

    return cloud_problems(loaded, live)


def _with_store(loaded: Loaded, use: Callable[[StorePort], RenderableType]) -> RenderableType:
    store = recorded_store(loaded)
    try:
        return use(store)
    finally:
        store.close()


def cost_view(loaded: Loaded, by: CostBy, against: str | None) -> RenderableType:
    """Sums of bills; machines that run are billed up to the world's present.

    `against` is a fixed cluster such as "3 m1.large", rented from the first bill on, to compare with.
    """
    return _with_store(loaded, lambda store: _costs(loaded, by, against, store))


def _alternative(loaded: Loaded, against: str, start: float) -> list[Bill]:
    """The bills of a fixed cluster stated as "COUNT FLAVOUR"."""
    count, _, name = against.strip().partition(" ")
    flavour = loaded.policy.catalogue.named(name.strip())
    if not count.isdigit() or flavour is None:
        known = ", ".join(f.name for f in loaded.policy.catalogue.flavours)
        raise InputError(f'--against: {against!r} is no fixed cluster; write "3 FLAVOUR" with one of {known}')
    return [Bill(f"fixed-{i}", "fixed", flavour.name, flavour.nanos_per_hour, start) for i in range(int(count))]


def _costs(loaded: Loaded, by: CostBy, against: str | None, store: StorePort) -> RenderableType:
    catalogue, bills = loaded.policy.catalogue, store.bills()
    if not bills:
        return Text("nothing has been bought yet")
    now = _present(store)
    if by is CostBy.DAY:
        sums = accounts.by_day(bills, catalogue.billing, now)
    else:
        key: Callable[[Bill], str] = (lambda b: b.group) if by is CostBy.GROUP else (lambda b: b.flavour)
        sums = accounts.by(key, bills, catalogue.billing, now)
    table = _table(by.value, catalogue.currency)
    for name, amount in sums.items():
        table.add_row(name, str(bill_amount(amount)))
    table.add_row("total", accounts.total_text(bills, catalogue.billing, now), style="bold")
    running = sum(bill.ended_at is None for bill in bills)
    per_hour = price_text(accounts.nanos_per_hour(bills))
    told = f"{running} machines run now, at {per_hour} {catalogue.currency}/h"
    if against is not None:
        fixed = _alternative(loaded, against, min(bill.started_at for bill in bills))
        saved = bill_amount(accounts.saved(bills, fixed, catalogue.billing, now))
        told += f"\n{saved} {catalogue.currency} saved against {against} rented all the time"
    return Group(table, Text(told, style="dim"))


def _present(store: StorePort) -> float:
    """The latest instant the store knows of: a sandbox's clock is not the wall's."""
    newest = store.cycles(limit=1)
    stated = [bill.ended_at or bill.started_at for bill in store.bills()]
    return max([*(record.at for record in newest), *stated])


def history_view(loaded: Loaded, verb: str | None, limit: int, since: str | None) -> RenderableType:
    def view(store: StorePort) -> RenderableType:
        table = _table("cycle", "when", "what", "on", "", "why")
        for entry in entries(
            store.cycles(limit=limit), verb, instant_of(since, "--since") if since is not None else 0.0
        ):
            when = datetime.fromtimestamp(entry.at, UTC).strftime("%m-%d %H:%M:%S")
            style = {"failed": "red", "dropped": "yellow"}.get(entry.status, "")
            table.add_row(str(entry.cycle), when, entry.verb, entry.subject, entry.status, entry.why, style=style)
        return table if table.row_count else Text("nothing has been recorded yet")

    return _with_store(loaded, view)


def node_view(loaded: Loaded, name: str) -> RenderableType:
    """The profiler's rows of one node (HTAS paper, Table 3)."""

    def view(store: StorePort) -> RenderableType:
        table = _table("when", "event", "type", "runtime s", "cpu free", "of", "ram free", "of")
        for row in store.profile(name):
            when = datetime.fromtimestamp(row.event_time, UTC).strftime("%m-%d %H:%M:%S")
            ram = f"{row.ramavailable / 2**20:.0f} MiB", f"{row.ramcapacity / 2**20:.0f} MiB"
            cpu = f"{row.cpuavailable}m", f"{row.cpucapacity}m"
            table.add_row(when, row.event.value, row.instance_type, str(row.runtime), *cpu, *ram)
        if not table.row_count:
            raise InputError(f"node {name}: nothing is written of it; htas top names the nodes there are")
        return table

    return _with_store(loaded, view)


def replay(loaded: Loaded, number: int) -> bool:
    """Plan a recorded cycle again and print the differences; whether there were none."""
    store = recorded_store(loaded)
    try:
        record = store.cycle(number)
    finally:
        store.close()
    if record is None:
        raise InputError(f"cycle {number}: not in the store (it may have been too old); htas history lists them")
    again = plan(record.snapshot, loaded.policy, record.at, frozenset(Stage(stage) for stage in record.stages))
    found = differences(record.plan, again)
    for line in found:
        out.print(line, markup=False)
    if not found:
        out.print(f"cycle {number}: the same plan again")
    return not found


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
    setting = loaded.sandbox
    if setting is not None and setting.address is not None:
        with opened_world(loaded, setting) as world:
            view, now = world.cluster.observe(), world.clock.now()
    elif setting is None:
        snapshot = live_snapshot(loaded)
        view, now = snapshot.cluster, snapshot.taken_at
    else:
        newest = _newest(loaded)
        if newest is None:
            return Text("nothing has been recorded yet: start the daemon with htas run")
        view, now = newest.snapshot.cluster, newest.at
    policy = loaded.policy
    table = _table("node", "group", "flavour", "utilisation", "pods", "price/h", "state")
    price = 0
    for node in view.nodes:
        pods: list[Pod] = [pod for pod in view.pods if pod.node == node.name]
        group, flavour = policy.group(node.group), policy.catalogue.named(node.flavour)
        share = utilization(node, pods, (group or policy.groups[0]).cleaning, now)
        price += flavour.nanos_per_hour if flavour is not None else 0
        table.add_row(
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
    return Group(Text(head, style="bold"), table)


def _newest(loaded: Loaded) -> CycleRecord | None:
    store = recorded_store(loaded)
    try:
        records = store.cycles(limit=1)
    finally:
        store.close()
    return records[0] if records else None
