"""A plan for people: tables with reasons; in a file or a pipe the same without colour."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from htas.cli.tables import listed
from htas.documents.least import Least
from htas.documents.words import counted, hourly, launched, of_lacking_requests
from htas.model.plan import Plan
from htas.model.plan_document import instant_text
from htas.model.reasons import Kept


def plan_view(plan: Plan, doubts: Sequence[str] = (), unpriced: int = 0, least: Least | None = None) -> RenderableType:
    """`doubts`: why no figure of it is to be believed, told first. `unpriced`: nodes that are counted as free. `least`:
    the lower bound, where the cluster is known."""
    parts: list[RenderableType] = [Text(f"Do not trust these figures: {doubt}", style="bold red") for doubt in doubts]
    parts.append(_headline(plan, unpriced, least))
    parts += [
        table
        for table in (
            _launches(plan),
            _replacements(plan),
            _binds(plan),
            _reservations(plan),
            _preemptions(plan),
            _suggestions(plan),
            _removals(plan),
            _unplaced(plan),
            _kept(plan),
        )
        if table
    ]
    return Group(*parts)


def _headline(plan: Plan, unpriced: int, least: Least | None) -> Text:
    cost = plan.cost
    text = Text()
    text.append(f"Plan for {instant_text(plan.taken_at)}  ", style="bold")
    text.append(f"{hourly(cost.before_nanos)} → {hourly(cost.after_nanos)} {cost.currency}/h", style="bold cyan")
    replacing = [each for each in plan.proposals if each.launches]
    if replacing:
        gone = sum(each.value + sum(item.nanos_per_hour for item in each.launches) for each in replacing)
        text.append(f", {hourly(cost.after_nanos - gone)} once replaced")
    said = _without(unpriced) if unpriced else _least(plan, least)
    text.append(f"  ({said})\n" if said else "\n")
    instead = plan.instead_of_buying
    moves = len(plan.migrate) + len(plan.suggest) + (len(instead.moves) if instead is not None else 0)
    replaced = f"{counted(len(_replaced(plan)), 'node')} to replace, " if replacing else ""
    text.append(
        f"{len(plan.bind)} to bind, {counted(len(plan.nominate), 'reservation')}, "
        f"{counted(len(plan.launches), 'machine')} to launch, {counted(len(plan.preempt), 'pod')} to preempt, "
        f"{moves} to move, {replaced}{counted(len(plan.remove), 'node')} to delete, {_pending(plan)}"
    )
    for failure in plan.failures:
        text.append(f"\n{failure.message}; please report it, -o json has the place", style="red")
    if lacking := of_lacking_requests(plan.lacking):
        text.append(f"\n{lacking}", style="yellow")
    if plan.kept and all(item.reason is Kept.NOT_AUTOSCALED for item in plan.kept) and not plan.remove:
        text.append("\nHTAS launched none of these nodes, so it deletes none; htas simulate shows what it could do")
    return text


def _pending(plan: Plan) -> str:
    """Pods that stay pending for now: those that machines are launched for, too."""
    launched_for = {pod for item in plan.launches for pod in item.pods}
    reserved = {item.pod for item in plan.nominate}
    pods = launched_for | reserved | {item.pod for item in plan.unplaced}
    parts = [
        f"{len(some)} {what}"
        for some, what in ((launched_for, "until a machine is Ready"), (reserved - launched_for, "with a reservation"))
        if some
    ]
    return f"{counted(len(pods), 'pod')} pending" + (f" ({', '.join(parts)})" if parts else "")


def _without(unpriced: int) -> str:
    """Where the present price is not known, nothing is compared with it."""
    return f"without {counted(unpriced, 'node')} of unknown price, so this is not the whole bill"


def _least(plan: Plan, least: Least | None) -> str:
    """The lower bound, where it is below the plan; empty where it would say nothing."""
    cost = plan.cost
    if cost.beside_nanos and cost.after_nanos == cost.beside_nanos:
        return "all of it for nodes that HTAS did not launch" + ("" if plan.unplaced else "; nothing else is needed")
    if least is None or least.nanos >= cost.after_nanos or not least.is_reachable_from(cost.after_nanos):
        return ""
    return f"the pods that then run cost at least {hourly(least.nanos)}, which may be out of reach"


def _launches(plan: Plan) -> Table | None:
    alike: dict[tuple[str, str, str, int], list[int]] = defaultdict(list)
    for item in plan.launch:
        alike[item.group, item.flavour, item.zone or "-", item.nanos_per_hour].append(len(item.pods))
    rows = [
        (str(len(pods)), flavour, group, zone, hourly(nanos), str(sum(pods)))
        for (group, flavour, zone, nanos), pods in sorted(alike.items())
    ]
    return listed("Launch", ("machines", "flavour", "group", "zone", "price/h each", "for pods"), rows)


def _replaced(plan: Plan) -> set[str]:
    """Nodes for which others are launched first."""
    return {release.node for each in plan.proposals if each.launches for release in each.releases}


def _replacements(plan: Plan) -> Table | None:
    """Nodes that go once what replaces them is Ready, with what that saves."""
    rows = [
        (
            ", ".join(release.node for release in each.releases),
            launched(each.launches),
            hourly(sum(item.nanos_per_hour for item in each.launches)),
            hourly(each.value) if each.value > 0 else "·",
            each.reason.value,
        )
        for each in plan.proposals
        if each.launches
    ]
    return listed("Replace, then delete", ("nodes", "by", "price/h", "saves/h", "reason"), rows)


def _binds(plan: Plan) -> Table | None:
    return listed("Bind", ("pod", "node"), [(item.pod, item.node) for item in plan.bind])


def _reservations(plan: Plan) -> Table | None:
    """Room that a pod has, but cannot have now."""
    rows = [(item.pod, item.node, item.why) for item in plan.nominate]
    return listed("Reserve", ("pod", "node", "because"), rows)


def _preemptions(plan: Plan) -> Table | None:
    rows = [(item.pod, item.source, item.beneficiary) for item in plan.preempt]
    return listed("Preempt", ("pod", "on node", "for"), rows)


def _suggestions(plan: Plan) -> Table | None:
    instead = plan.instead_of_buying
    title = "Move, for the edge" if instead is None else "Move, instead of a launch"
    moves = plan.suggest if instead is None else instead.moves
    rows = [(item.pod, item.source, item.target or "nowhere", item.method) for item in moves]
    return listed(title, ("pod", "from", "to", "by"), rows)


def _removals(plan: Plan) -> Table | None:
    moves = Counter(item.source for item in plan.migrate)
    rows = [
        (item.node, str(moves[item.node]), hourly(item.savings_nanos_per_hour), item.reason.value, item.message)
        for item in plan.remove
    ]
    return listed("Delete", ("node", "pods move", "saves/h", "reason", "why"), rows)


def _unplaced(plan: Plan) -> Table | None:
    counts = Counter((item.reason.value, item.message) for item in plan.unplaced)
    first = {(item.reason.value, item.message): item.pod for item in reversed(plan.unplaced)}
    rows = [(str(count), first[key], key[0], key[1]) for key, count in counts.most_common()]
    return listed("Pending", ("pods", "such as", "reason", "why"), rows)


def _kept(plan: Plan) -> Table | None:
    """Nodes that stay for one and the same reason are told together."""
    nodes: dict[tuple[str, str], list[str]] = {}
    replaced = _replaced(plan)
    for item in (item for item in plan.kept if item.node not in replaced):
        nodes.setdefault((item.reason.value, item.message), []).append(item.node)
    rows = [
        (str(len(names)), names[0] if len(names) == 1 else f"{names[0]} …", *key)
        for key, names in sorted(nodes.items(), key=lambda item: (-len(item[1]), item[1]))
    ]
    return listed("Kept", ("nodes", "such as", "reason", "why"), rows)
