"""`htas top`: the nodes that are there, what they are asked for, how old they are and what they cost."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import zip_longest
from typing import NamedTuple

import yaml
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from htas.cli import watching
from htas.cli.bars import bar
from htas.cli.console import out
from htas.cli.daemon_client import DaemonClient
from htas.cli.tables import show, table
from htas.config.loader import Loaded
from htas.daemon.wiring.stores import reading_store
from htas.documents.forms import Sorted
from htas.documents.nodes import PresentCluster, Reasons, present_of
from htas.documents.words import ago, counted, length
from htas.model.billing import HOURS_A_MONTH
from htas.model.money import NANOS, price_text
from htas.model.plan_document import instant_text
from htas.model.record import CycleRecord
from htas.model.snapshot import ClusterView
from htas.model.stages import Stage
from htas.yaml_bounds import YamlBoundsError, load

COLUMNS = ("node", "group", "flavour", "zone", "cpu", "memory", "pods", "age", "price/h", "state")
REFRESH_S = 1.0
GIB = 2**30
DISPENSABLE: tuple[str | int, ...] = ("state", 4, "pods", "group", "zone", 8)
"""What a narrow terminal does without, the most useful first: columns, and bars of such a width."""
GAP = 2
WIDE = 100
"""Columns of a terminal from which on `--recorded` says for how long a node is busy."""


Look = Callable[[], PresentCluster | None]
"""Tells the present; None: nothing has been recorded yet."""


def looking(loaded: Loaded, sort: Sorted) -> Look:
    """At the cluster itself, or at what a sandbox's daemon recorded last."""
    return partial(_present, loaded, sort)


def asking(server: DaemonClient, sort: Sorted) -> Look:
    """What a daemon saw last."""
    return partial(server.get, "/top", PresentCluster, sort=sort.value)


def top(look: Look, watch: bool, sort: Sorted = Sorted.NAME) -> None:
    """Print the present, and with `watch` again each second. A terminal of its own is drawn over, a pipe gets lines."""
    if not watch:
        show(_screen(look))
        return
    if not out.is_terminal:
        while True:
            show(_screen(look))
            time.sleep(REFRESH_S)
    if not sys.stdin.isatty():  # no keys to read
        with Live(_screen(look), console=out, auto_refresh=False) as live:
            while True:
                time.sleep(REFRESH_S)
                live.update(_screen(look), refresh=True)
    watching.watch(
        look,
        lambda seen, has_reasons: screen(seen, out.width, is_terminal=True, has_reasons=has_reasons),
        sort,
        REFRESH_S,
    )


def _screen(look: Look) -> RenderableType:
    present = look()
    if present is None:
        return Text("nothing has been recorded yet: start the daemon with htas run")
    return screen(present, out.width, is_terminal=out.is_terminal)


def screen(present: PresentCluster, width: int, *, is_terminal: bool, has_reasons: bool = True) -> RenderableType:
    """The head lines and the table, as much of it as a terminal of `width` columns holds."""
    heads = [Text(line, style="bold") for line in _heads(present)]
    if present.upcoming and has_reasons:
        heads.append(Text(f"next by period: {_due(present.upcoming, present.now)}", style="dim"))
    heads += [Text(line, style="cyan") for line in present.recommended]
    heads += [
        Text(f"{what}: {', '.join(f'{count} {reason}' for reason, count in _most_first(reasons))}", style="dim")
        for what, reasons in (("nodes kept", present.kept), ("pods pending", present.unplaced))
        if reasons and has_reasons
    ]
    return Group(*heads, _table(present, width, is_terminal))


def _heads(present: PresentCluster) -> tuple[str, str]:
    states = [line.state for line in present.lines]
    odd = "".join(f", {states.count(name)} {name}" for name in ("draining", "not ready") if name in states)
    price = f"{price_text(present.nanos_per_hour)} {present.currency}/h"
    month = f"{present.nanos_per_hour * HOURS_A_MONTH / NANOS:,.2f} a month"
    queue = f"{counted(present.waiting, 'pod')} pending"
    return f"{instant_text(present.now)}  {counted(len(states), 'node')}{odd}  {queue}", f"{price}, {month}"


def _table(present: PresentCluster, width: int, is_terminal: bool) -> RenderableType:
    """As many columns as fit, the dispensable ones last; a pipe gets all of them, and no bars."""
    names, rows = list(COLUMNS), _rows(present, 0)
    if is_terminal:
        names = [name for name in COLUMNS if name not in DISPENSABLE]
        for each in DISPENSABLE:
            wider = [name for name in COLUMNS if name in names or name == each]
            drawn = _rows(present, each) if isinstance(each, int) else rows
            if _width(wider, drawn) <= width:
                names, rows = wider, drawn
    view = table(*names, right=("cpu", "memory", "pods", "age", "price/h"))
    for row, line in zip_longest(rows, present.lines):
        style = "bold" if line is None else "" if line.state == "ready" else "yellow"
        view.add_row(*(row.get(name, "") for name in names), style=style)
    return view


def _rows(present: PresentCluster, bars: int) -> list[dict[str, str]]:
    """The cells of each node, then of the total; `bars` is how wide bars are."""
    rows = [
        {
            "node": line.node,
            "group": line.group or "-",
            "flavour": line.flavour or "-",
            "zone": line.zone or "-",
            "cpu": _share(line.cpu, bars),
            "memory": _share(line.memory, bars),
            "pods": str(line.pods),
            "age": length(line.age_s),
            "price/h": line.price_per_hour or "-",
            "state": line.state,
        }
        for line in present.lines
    ]
    total = {
        "node": "total",
        "cpu": _share(present.cpu, bars),
        "memory": _share(present.memory, bars),
        "pods": str(sum(line.pods for line in present.lines)),
        "price/h": price_text(present.nanos_per_hour),
    }
    return [*rows, total] if len(rows) > 1 else rows


def _width(names: Sequence[str], rows: Sequence[Mapping[str, str]]) -> int:
    widths = (max(len(name), *(len(row.get(name, "")) for row in rows)) if rows else len(name) for name in names)
    return sum(widths) + GAP * (len(names) - 1)


def _most_first(reasons: Mapping[str, int]) -> Sequence[tuple[str, int]]:
    return sorted(reasons.items(), key=lambda item: (-item[1], item[0]))


def _due(upcoming: Mapping[Stage, float], now: float) -> str:
    """Such as: scheduling in 12s, cleaning in 4m."""
    times = sorted(upcoming.items(), key=lambda item: (item[1], item[0]))
    return ", ".join(f"{stage} in {length(at - now)}" if at > now else f"{stage} now" for stage, at in times)


def _share(share: float, width: int) -> str:
    return f"{bar(share, width)} {share:4.0%}" if width else f"{share:.0%}"


def _present(loaded: Loaded, sort: Sorted) -> PresentCluster | None:
    found = cluster_now(loaded)
    if found is None:
        newest = _newest(loaded)
        if newest is None:
            return None
        found = ClusterNow(newest.snapshot.cluster, newest.at)
    told = recommended_of(found.status)
    reasons, waiting = reasons_of(found.status), registered_in(found.status)
    return present_of(
        found.view,
        found.at,
        loaded.policy,
        sort,
        upcoming_of(found.status),
        recommended=told,
        reasons=reasons,
        registered=waiting,
    )


def upcoming_of(status: str) -> Mapping[Stage, float]:
    """Epoch seconds of `next` in a status document; empty where it has none, or is no document of ours."""
    with suppress(yaml.YAMLError, YamlBoundsError, AttributeError, TypeError, ValueError):
        told = load(status).get("next", {})
        return {Stage(stage): datetime.fromisoformat(at).timestamp() for stage, at in told.items()}
    return {}


def registered_in(status: str) -> Mapping[str, str]:
    """What nodes wait for that are not initialized, as the daemon that leads has published it."""
    with suppress(yaml.YAMLError, YamlBoundsError, AttributeError, TypeError, ValueError):
        return {str(node): str(why) for node, why in load(status).get("notInitialized", {}).items()}
    return {}


def recommended_of(status: str) -> Sequence[str]:
    """What a daemon that only recommends has published of its savings, a line each; else empty."""
    with suppress(yaml.YAMLError, YamlBoundsError, AttributeError, TypeError):
        return [str(line) for line in load(status).get("recommended", {}).get("told", ())]
    return ()


def reasons_of(status: str) -> Reasons:
    """Why nodes are kept and pods are pending, by a status document; empty where it has none."""
    with suppress(yaml.YAMLError, YamlBoundsError, AttributeError, TypeError, ValueError):
        found = load(status)
        kept, unplaced = found.get("kept", {}), found.get("pods", {}).get("unschedulable", {})
        return Reasons(*({str(why): int(count) for why, count in each.items()} for each in (kept, unplaced)))
    return Reasons()


class ClusterNow(NamedTuple):
    """A cluster, the time there, and the status document of the daemon that leads; "": none."""

    view: ClusterView
    at: float
    status: str = ""


def cluster_now(loaded: Loaded) -> ClusterNow | None:
    """The cluster as it is; None: it is a sandbox within a daemon."""
    setting = loaded.sandbox
    if setting is None:
        from htas.daemon.recommend.kubernetes import present_cluster

        snapshot, status = present_cluster(loaded)
        return ClusterNow(snapshot.cluster, snapshot.taken_at, status)
    if setting.address is None:
        return None
    from htas.daemon.wiring.sandbox import opened_world

    with opened_world(loaded, setting) as world:
        return ClusterNow(world.cluster.observe(), world.clock.now(), world.announcer.status)


def _newest(loaded: Loaded) -> CycleRecord | None:
    with reading_store(loaded) as store:
        return next(store.cycles(limit=1), None)


def recorded_view(loaded: Loaded) -> RenderableType:
    """Each machine as the profiler wrote of it last (HTAS paper 4.1): neither the cluster nor the daemon is asked."""
    with reading_store(loaded) as store:
        rows = store.latest()
    if not rows:
        return Text("nothing has been recorded yet: start the daemon with htas run")
    # A sandbox's clock is not the wall's: there the newest row is the present.
    now = max(row.event_time for row in rows) if loaded.sandbox is not None else time.time()
    is_wide = not out.is_terminal or out.width >= WIDE
    view = table("node", "flavour", "written", "after", "cores free", "GiB free", *(["busy for"] if is_wide else []))
    for row in rows:
        view.add_row(
            row.instance_name,
            row.instance_type or "-",
            ago(row.event_time, now) if out.is_terminal else instant_text(row.event_time),
            row.event.value,
            f"{row.cpuavailable / 1000:g}/{row.cpucapacity / 1000:g}",
            f"{row.ramavailable / GIB:.1f}/{row.ramcapacity / GIB:.1f}",
            *([length(row.runtime)] if is_wide else []),
        )
    return view
