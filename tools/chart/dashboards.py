"""The chart's two dashboards for Grafana, from tables of panels: what is spent, and whether HTAS works.

A query is written with `{}` behind each metric, for the release that the dashboard's variables choose.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

CHOSEN = 'job=~"$job",namespace=~"$namespace"'
WAITS = 'reason!~"AutoscalingNotDue|CapacityFreesSoon|OwnMachineCheaper"'
WIDTH = 24


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel: `queries` are expressions with their legends, `unit` is Grafana's word, `wide` of 24 columns."""

    title: str
    queries: tuple[tuple[str, str], ...]
    said: str
    kind: str = "timeseries"
    unit: str = "short"
    wide: int = 8
    tall: int = 7
    stacked: bool = False


MONEY = (
    Panel("Price now", (("max(htas_cost_per_hour{})", ""),), "Price per hour of all machines.", "stat", "none", 5, 4),
    Panel(
        "Nodes", (('sum(htas_nodes{state="ready",group!="none"})', ""),), "Launched, and Ready.", "stat", "short", 5, 4
    ),
    Panel("Pending", (('sum(htas_pods{state="pending"})', ""),), "Pods without a node.", "stat", "short", 5, 4),
    Panel(
        "Price an hour",
        (
            ("max(htas_cost_per_hour{})", "price"),
            ("max(htas_planned_cost_per_hour{})", "once the plan is carried out"),
            ('max(htas_limit{group="",resource="price"})', "limit"),
        ),
        "In the price file's currency.",
        "timeseries",
        "none",
        16,
        9,
    ),
    Panel(
        "Spent",
        (
            ("increase(htas_cost_total{}[1d])", "in the last day"),
            ("increase(htas_cost_total{}[1h])", "in the last hour"),
        ),
        "By bills; a new journal starts at 0.",
        "timeseries",
        "none",
        8,
        9,
    ),
    Panel(
        "Nodes by group", (("sum by (group) (htas_nodes{})", "{{group}}"),), "none: not HTAS's.", wide=8, stacked=True
    ),
    Panel(
        "Launched",
        (("sum by (flavour) (increase(htas_nodes_launched_total{}[1h]))", "{{flavour}}"),),
        "Machines in the last hour, by flavour.",
        wide=8,
        stacked=True,
    ),
    Panel(
        "Deleted",
        (("sum by (reason) (increase(htas_nodes_deleted_total{}[1h]))", "{{reason}}"),),
        "Machines in the last hour, and why.",
        wide=8,
        stacked=True,
    ),
    Panel(
        "How full: memory",
        (
            (
                'sum by (group) (htas_requested{resource="memory"})'
                ' / sum by (group) (htas_allocatable{resource="memory"})',
                "{{group}}",
            ),
        ),
        "Requests, as a share of allocatable.",
        unit="percentunit",
    ),
    Panel(
        "How full: CPU",
        (
            (
                'sum by (group) (htas_requested{resource="cpu"}) / sum by (group) (htas_allocatable{resource="cpu"})',
                "{{group}}",
            ),
        ),
        "Requests, as a share of allocatable.",
        unit="percentunit",
    ),
    Panel(
        "Why nodes are kept",
        (("sum by (reason) (htas_kept_nodes{})", "{{reason}}"),),
        "See htas explain node.",
        stacked=True,
    ),
    Panel(
        "Pinned, an hour",
        (("sum by (namespace) (htas_pinned_price_per_hour{})", "{{namespace}}"),),
        "Cost of pinned pods, by namespace.",
        unit="none",
        wide=12,
        stacked=True,
    ),
    Panel(
        "Deleted by scale-down, per hour",
        (("increase(htas_deleted_cost_per_hour_total{}[1d])", "price of machines, in a day"),),
        "Hourly prices of machines that scale-down deleted.",
        unit="none",
        wide=12,
    ),
)
OPERATIONS = (
    Panel("Leaders", (("sum(htas_leader{})", ""),), "1 is right.", "stat", "short", 4, 4),
    Panel(
        "Since the last cycle",
        (("time() - max(htas_last_success_timestamp_seconds{})", ""),),
        "That succeeded.",
        "stat",
        "s",
        5,
        4,
    ),
    Panel("Cloud away", (("max(htas_cloud_away{})", ""),), "1: nothing is launched or deleted.", "stat", "short", 5, 4),
    Panel("Store away", (("max(htas_store_away{})", ""),), "1: records are queued on disk.", "stat", "short", 5, 4),
    Panel(
        "Store unwritable", (("max(htas_store_unwritable{})", ""),), "1: nothing is launched.", "stat", "short", 5, 4
    ),
    Panel(
        "Pending pods, and why",
        ((f"sum by (reason) (htas_unschedulable_pods{{{WAITS}}})", "{{reason}}"),),
        "Pods that HTAS cannot launch for; the runbook has the reasons.",
        stacked=True,
        wide=12,
    ),
    Panel(
        "From a pod's creation to its bind",
        (
            ("histogram_quantile(0.5, sum by (le) (rate(htas_pod_bind_wait_seconds_bucket{}[10m])))", "median"),
            ("histogram_quantile(0.95, sum by (le) (rate(htas_pod_bind_wait_seconds_bucket{}[10m])))", "95 %"),
        ),
        "A launch included, it takes as long as a machine.",
        unit="s",
        wide=12,
    ),
    Panel(
        "A cycle",
        (
            (
                "histogram_quantile(0.95, sum by (le)"
                ' (rate(htas_cycle_duration_seconds_bucket{part="planning"}[10m])))',
                "planning",
            ),
            (
                'histogram_quantile(0.95, sum by (le) (rate(htas_cycle_duration_seconds_bucket{part="all"}[10m])))',
                "all",
            ),
        ),
        "95 % take no longer.",
        unit="s",
    ),
    Panel(
        "From the decision to Ready",
        (
            ("histogram_quantile(0.5, sum by (le) (rate(htas_node_startup_seconds_bucket{}[1h])))", "median"),
            ("histogram_quantile(0.95, sum by (le) (rate(htas_node_startup_seconds_bucket{}[1h])))", "95 %"),
        ),
        "Of launched machines.",
        unit="s",
    ),
    Panel(
        "Actions that failed",
        (('sum by (verb) (increase(htas_actions_total{status="failed"}[10m]))', "{{verb}}"),),
        "In ten minutes.",
        stacked=True,
    ),
    Panel(
        "Under way",
        (
            ("max(htas_drains{})", "drains"),
            ("max(htas_moves{})", "moves"),
            ("max(htas_rearranging_pods{})", "rearranging"),
        ),
        "Nodes being drained, pods moved.",
    ),
    Panel(
        "Moves that ended",
        (("sum by (result, reason) (increase(htas_moves_total{}[1h]))", "{{result}} {{reason}}"),),
        "In an hour.",
        stacked=True,
    ),
    Panel(
        "Flavours that back off",
        (("sum by (flavour, zone) (htas_backoffs{})", "{{flavour}} {{zone}}"),),
        "Not launched after a failure.",
        stacked=True,
    ),
    Panel(
        "Calls to the API server",
        (("sum by (code) (rate(htas_apiserver_requests_total{}[5m]))", "{{code}}"),),
        "A second, by answer.",
        unit="reqps",
        stacked=True,
    ),
    Panel(
        "Calls to the cloud",
        (("sum by (service, code) (rate(htas_cloud_requests_total{}[5m]))", "{{service}} {{code}}"),),
        "A second, by answer.",
        unit="reqps",
        stacked=True,
    ),
)
DASHBOARDS = {"htas-money": ("HTAS: money", MONEY), "htas-operations": ("HTAS: does it work?", OPERATIONS)}


def dashboard_text(name: str) -> str:
    """A dashboard as Grafana imports it (schema 39, Grafana 10 and newer)."""
    title, panels = DASHBOARDS[name]
    document = {
        "uid": name,
        "title": title,
        "tags": ["htas"],
        "schemaVersion": 39,
        "timezone": "utc",
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {"list": _variables()},
        "panels": _placed(panels),
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def expressions(name: str) -> list[str]:
    """The queries of a dashboard, as they are written above."""
    return [query for panel in DASHBOARDS[name][1] for query, _ in panel.queries]


def _variables() -> list[dict[str, Any]]:
    source = {"type": "prometheus", "uid": "${datasource}"}
    chosen: list[dict[str, Any]] = [
        {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    ]
    for name in ("job", "namespace"):
        query = f"label_values(htas_build_info, {name})"
        chosen.append(
            {"name": name, "type": "query", "datasource": source, "query": query, "refresh": 2}
            | {"includeAll": True, "multi": True, "current": {"text": "All", "value": "$__all"}}
        )
    return chosen


def _placed(panels: tuple[Panel, ...]) -> list[dict[str, Any]]:
    """Side by side as far as they fit, then in the next row."""
    found, x, y, row = [], 0, 0, 0
    for number, panel in enumerate(panels, start=1):
        if x + panel.wide > WIDTH:
            x, y, row = 0, y + row, 0
        place = {"x": x, "y": y, "w": panel.wide, "h": panel.tall}
        found.append(_panel(panel, number, place))
        x, row = x + panel.wide, max(row, panel.tall)
    return found


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${datasource}"}
    custom = {"fillOpacity": 30, "stacking": {"mode": "normal"}} if panel.stacked else {"fillOpacity": 5}
    targets = [
        {"refId": chr(65 + i), "datasource": source, "expr": chosen(query), "legendFormat": legend}
        for i, (query, legend) in enumerate(panel.queries)
    ]
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.said,
        "gridPos": place,
        "datasource": source,
        "targets": targets,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": custom}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}} if panel.kind == "timeseries" else {},
    }


def chosen(query: str) -> str:
    """A query of the releases that the variables choose."""
    return re.sub(r"(htas_\w+)\{(\}?)", rf"\1{{{CHOSEN},\2", query).replace(",}", "}")
