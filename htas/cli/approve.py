"""What `htas approve` prints, and whom it asks."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from htas.cli.console import out
from htas.cli.daemon_client import DaemonClient, server_at
from htas.cli.migrate import asker_of
from htas.cli.options import configured
from htas.cli.tables import table
from htas.documents.approvals import ApprovalItem, ApprovalsReport
from htas.documents.words import ago, length
from htas.model.approvals import ApprovalState
from htas.model.plan_document import instant_text

SHOWN = 8
"""Pods of a proposal that are listed."""
STYLES = {
    ApprovalState.WAITING: "",
    ApprovalState.APPROVED: "green",
    ApprovalState.REJECTED: "red",
    ApprovalState.LAPSED: "yellow",
}


def asked_server(config: Path | None, server: str | None, token_file: Path | None, ca: Path | None) -> DaemonClient:
    """The daemon that is named, else the one that the configuration has listen."""
    named = server_at(server, token_file, ca)
    if named is not None:
        return named
    asker = asker_of(configured(config), None, token_file, None)
    return DaemonClient(asker.url, None, Path(asker.ca_file) if asker.ca_file is not None else None, asker.token)


def approvals_view(found: ApprovalsReport) -> RenderableType:
    """A table: the oldest pending proposal comes first."""
    if not found.is_asked:
        return Text("no proposals: this daemon runs in another mode than approve")
    if not found.items:
        return Text("no proposals are pending")
    view = table("id", "state", "since", "what", "pods that leave", f"saves {found.currency}/h")
    for item in found.items:
        when = ago(item.since, found.now) if out.is_terminal else instant_text(item.since)
        what = f"{item.kind} {item.subject}: {item.why}"
        view.add_row(
            item.id,
            _state(item, found.now),
            when,
            what,
            _leaving(item),
            item.saves_per_hour,
            style=STYLES[item.state],
        )
    waiting = [item for item in found.items if item.state is ApprovalState.WAITING]
    if not waiting:
        return view
    how = "rejected" if found.otherwise == "reject" else "carried out"
    return Group(view, Text(f"without an answer in time, a proposal is {how}", style="dim"))


def _leaving(item: ApprovalItem) -> str:
    """A line for each pod, with what happens to it; of many the first ones."""
    how = {each.pod: f": {each.how}" for each in item.moves}
    lines = [f"{pod}{how.get(pod, '')}" for pod in item.pods[:SHOWN]]
    more = len(item.pods) - len(lines)
    return "\n".join([*lines, *([f"and {more} more"] if more else [])])


def _state(item: ApprovalItem, now: float) -> str:
    if item.until is not None:
        return f"pending, {length(max(0.0, item.until - now))} left"
    if item.state is ApprovalState.LAPSED:
        return f"lapsed: {item.lapsed}"
    told = f"{item.state.value} by {item.who}"
    if item.state is ApprovalState.APPROVED and not (item.is_proposed or item.is_begun):
        told += f"; not proposed since {instant_text(item.proposed_last)}: it counts if it is proposed again"
    return told
