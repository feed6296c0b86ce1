"""`htas optimize`: what a rearrangement would gain, tier by tier, and who would move; nothing is changed."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from htas.cli.console import InputError
from htas.cli.tables import listed
from htas.config.loader import Loaded
from htas.config.values import seconds as seconds_of
from htas.daemon.loops.optimizer import budget_of
from htas.documents.words import without_requests
from htas.model.plan_document import API_VERSION, instant_text, lacking_document
from htas.model.pods import MAY_MIGRATE
from htas.model.policy import Engine
from htas.model.rearrangement import Rearrangement, RearrangementStatus
from htas.model.rearrangement_document import leave_document, place_document, tiers_document
from htas.model.resources import DefaultRequests
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.default_requests import lacking_requests

if TYPE_CHECKING:
    from htas.planning.optimize.considering import Untouched

LONGEST_S, MOST_WORKERS = 3600.0, 64


class Consider(StrEnum):
    """Which running pods a search may move."""

    MOVABLE = "movable"
    """Those that the daemon may move."""
    ALL = "all"
    """All that a controller makes anew, as "Priority Matters" has it: a what-if, which the daemon does not do."""


SAID = {
    RearrangementStatus.PROVEN_OPTIMAL: "no placement is better",
    RearrangementStatus.IMPROVED: "better than now; time ended before it was proven to be the best",
    RearrangementStatus.ALREADY_OPTIMAL: "no placement is better than the present one",
    RearrangementStatus.NO_BETTER_FOUND: "nothing better was found in time, and nothing was proven",
}


def search(
    loaded: Loaded, snapshot: ClusterSnapshot, budget: str | None, engine: str | None, workers: int | None, seed: int
) -> tuple[Rearrangement, float]:
    """What the optimiser finds, and how long it took, in seconds; raises InputError where an option makes no sense."""
    allowed = budget_of(loaded.policy, seed)
    if budget is not None:
        allowed = msgspec.structs.replace(allowed, seconds=_seconds(budget))
    if engine is not None:
        allowed = msgspec.structs.replace(allowed, engine=_engine(engine))
    if workers is not None:
        allowed = msgspec.structs.replace(allowed, workers=_workers(workers))
    from htas.planning.optimize.optimise import optimise  # the solver takes a second to load
    from htas.planning.solvers.placement.engines import load

    load(allowed.engine)
    began = monotonic()
    found = optimise(snapshot, loaded.policy, snapshot.taken_at, allowed, lambda: monotonic() - began)
    return found, monotonic() - began


def considered(loaded: Loaded, snapshot: ClusterSnapshot, whom: str) -> ClusterSnapshot:
    """The snapshot to search; raises InputError where nobody knows what `whom` means."""
    from htas.planning.optimize.considering import as_if_all_may_move

    if whom not in tuple(Consider):
        raise InputError(f"--consider: {whom!r} is neither; write {' or '.join(Consider)}")
    return snapshot if whom == Consider.MOVABLE else as_if_all_may_move(snapshot, loaded.policy)


def left_out(loaded: Loaded, snapshot: ClusterSnapshot) -> Untouched:
    """Whom the search leaves where they are: what it says of the best placement holds for the others."""
    from htas.planning.optimize.considering import untouched

    return untouched(snapshot, loaded.policy, snapshot.taken_at)


def _seconds(text: str) -> float:
    try:
        seconds = seconds_of(text)
    except ValueError as error:
        raise InputError(f"--budget: {error}") from None
    if not 0 < seconds <= LONGEST_S:
        raise InputError(f"--budget: {text} is not above 0s and at most {LONGEST_S / 60:g}m; write one such as 10s")
    return seconds


def _engine(name: str) -> Engine:
    if name not in tuple(Engine):
        raise InputError(f"--engine: {name!r} is none; write {', '.join(Engine)}")
    return Engine(name)


def _workers(workers: int) -> int:
    if not 1 <= workers <= MOST_WORKERS:
        raise InputError(f"--workers: {workers} is not from 1 to {MOST_WORKERS}; write one for each core it may use")
    return workers


def document(
    found: Rearrangement, took_s: float, snapshot: ClusterSnapshot, out: Untouched, whom: str
) -> dict[str, Any]:
    """The rearrangement as plain data, for scripts."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Rearrangement",
        "takenAt": instant_text(found.found_at),
        "status": found.status.value,
        "message": found.message,
        "tookSeconds": round(took_s, 3),
        "considered": whom,
        "untouched": {"stay": out.stay, "giveWay": out.give_way, "foreign": out.foreign},
        "podsWithoutRequests": lacking_document(lacking_requests(snapshot.cluster.pods, DefaultRequests())),
        "tiers": tiers_document(found.tiers),
        "leave": leave_document(found.moves),
        "place": place_document(found.seats),
    }


def optimum_view(
    found: Rearrangement, took_s: float, snapshot: ClusterSnapshot, out: Untouched, whom: str
) -> RenderableType:
    """What was found in words; the snapshot it was found for tells the priorities of those who leave."""
    moves = sum(shift.target is not None for shift in found.moves)
    text = Text()
    text.append(f"{found.status.value}", style="bold cyan" if found.is_better else "bold")
    text.append(f": {SAID[found.status]} ({took_s:.1f} s)\n")
    waiting = "1 pending pod" if len(found.seats) == 1 else f"{len(found.seats)} pending pods"
    text.append(f"{waiting} placed by moving {moves} and evicting {len(found.moves) - moves}")
    if found.message:
        text.append(f"\n{found.message}", style="dim")
    if whom == Consider.ALL:
        text.append("\nas if every pod that a controller recreates might move: a what-if, which the daemon does not do")
    text.append("".join(f"\n{said}" for said in _said_of(out)), style="dim")
    lacking = lacking_requests(snapshot.cluster.pods, DefaultRequests())
    if lacking.pods:
        text.append(f"\n{without_requests(lacking)}: nodes take them by what they state", style="yellow")
    parts: list[RenderableType] = [text]
    seats = listed("Placed", ("pod", "node"), [(seat.pod, seat.node) for seat in found.seats])
    parts += [made for made in (_tiers(found, snapshot), _shifts(found), seats) if made is not None]
    return Group(*parts)


def _said_of(out: Untouched) -> list[str]:
    """Without this "no placement is better" would be untrue: Figure 1 of two services that did not opt in is one."""
    said = (
        (
            out.give_way,
            f'running, only for pods of higher priority: a service opts in to moves by {MAY_MIGRATE}: "true"',
        ),
        (out.stay, "running, not at all: opt-outs, budgets, constraints among pods, other schedulers"),
        (out.foreign, "pending, not at all: another scheduler's"),
    )
    return [f"not free to move: {pods} {what}" for pods, what in said if pods]


def _tiers(found: Rearrangement, snapshot: ClusterSnapshot) -> RenderableType | None:
    priorities = {pod.uid: pod.priority for pod in snapshot.cluster.pods}
    leave = Counter(priorities[shift.uid] for shift in found.moves)
    move = Counter(priorities[shift.uid] for shift in found.moves if shift.target is not None)
    rows = [
        (
            str(tier.priority),
            str(tier.wanted),
            str(tier.placed_before),
            f"{tier.placed_after} ({tier.placed_after - tier.placed_before:+d})",
            "proven" if tier.is_placing_proven else f"at most {tier.placed_bound} with those above",
            str(tier.placed_before - leave[tier.priority]),
            str(move[tier.priority]),
            "proven" if tier.is_staying_proven else "not proven",
        )
        for tier in found.tiers
    ]
    columns = "priority", "pods", "placed now", "then", "bound", "stay", "move", "fewest moves"
    return listed("By priority", columns, rows)


def _shifts(found: Rearrangement) -> RenderableType | None:
    rows = [(shift.pod, shift.source, shift.target or "nowhere (pending)", shift.method) for shift in found.moves]
    return listed("Leave their nodes", ("pod", "from", "to", "how"), rows)
