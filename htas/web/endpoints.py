"""The endpoints of the API, version 1: a path, what may be asked, what is answered, and where that comes from."""
# ruff: noqa: E501 # a table reads best with an endpoint on a line

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import msgspec

from htas.documents.approvals import ApprovalsReport, Verdict, Word, approvals_report
from htas.documents.asking import said_in
from htas.documents.books import books_of
from htas.documents.costs import CostReport, cost_report
from htas.documents.explain import NotThereError, explain_node, explain_pod
from htas.documents.history import Cycles, Explained, HistoryReport, Replayed, cycle_line, known_verb, replayed
from htas.documents.nodes import PresentCluster, Reasons, present_of
from htas.documents.recommendation import RecommendationReport, recommendation_report, told
from htas.documents.what_if import Changes, Levers, Simulated, compared, levers, simulated
from htas.documents.words import did_you_mean
from htas.model.plan import Plan
from htas.model.plan_document import plan_document
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.initialization import registered_nodes
from htas.ports import GivenError, NotFoundError
from htas.profiler.accounts import Window
from htas.profiler.history import entries
from htas.web import queries
from htas.web.chronicle import KINDS, past_of
from htas.web.reports.cluster import ClusterReport, cluster_report
from htas.web.reports.decisions import DecisionPage, decision_page, remember
from htas.web.reports.money import Against, MoneyReport, against, money_report
from htas.web.reports.nodes import (
    NodeDetail,
    NodePage,
    PodDetail,
    PodPage,
    node_detail,
    node_page,
    pod_detail,
    pod_page,
)
from htas.web.seat import RECOMMEND, Picture, Seat

PREFIX = "/api/v1"


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request: what is in its path, its query and, of a POST, its body."""

    path: dict[str, str]
    query: Any
    body: Any = None
    who: str = ""


Answer = Callable[[Seat, Picture, ApiRequest], Any]
Explain = Callable[[str, ClusterSnapshot, Plan, Policy], list[str]]


class Work(Enum):
    """What takes long: one at a time, whichever it is. SHOWING is asked for by pages, several at once."""

    PLANNING = auto()
    READING = auto()
    SHOWING = auto()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`returns` is the struct of its answer, or dict for the documented plan; `body` that of what is sent. What takes
    long is made in `turns`; what is not `is_kept` is made for each that asks: any instant may be in its query.
    """

    path: str
    summary: str
    answer: Answer
    returns: Any
    query: type[msgspec.Struct] = queries.Nothing
    method: str = "GET"
    body: type[msgspec.Struct] | None = None
    turns: Work | None = None
    is_kept: bool = True


@contextmanager
def _missing() -> Iterator[None]:
    """A name in the request that nothing has is no mistake in it: 404, as of pods and nodes."""
    try:
        yield
    except GivenError as error:
        raise NotFoundError(str(error)) from error


def _top(seat: Seat, picture: Picture, asked: ApiRequest) -> PresentCluster:
    said = told(picture.savings, picture.policy.catalogue.currency) if picture.savings is not None else ()
    view, sort = picture.snapshot.cluster, asked.query.sort
    kept = Counter(item.reason.value for item in picture.plan.kept)
    reasons = Reasons(kept, Counter(item.reason.value for item in picture.plan.unplaced))
    waiting = registered_nodes(picture.snapshot, picture.policy)
    return present_of(
        view, picture.at, picture.policy, sort, seat.upcoming(), picture.figures, said, reasons, picture.on, waiting
    )


def _nodes(_: Seat, picture: Picture, asked: ApiRequest) -> NodePage:
    return node_page(picture, **msgspec.structs.asdict(asked.query))


def _node(seat: Seat, picture: Picture, asked: ApiRequest) -> NodeDetail:
    """Of what has no past nothing was spent: a dump's nodes were not bought when they came."""
    found = node_detail(picture, asked.path["name"])
    return found if seat.reading is not None else msgspec.structs.replace(found, spent="")


def _pods(_: Seat, picture: Picture, asked: ApiRequest) -> PodPage:
    return pod_page(picture, **msgspec.structs.asdict(asked.query))


def _pod(_: Seat, picture: Picture, asked: ApiRequest) -> PodDetail:
    return pod_detail(picture, f"{asked.path['namespace']}/{asked.path['name']}")


def _plan(_: Seat, picture: Picture, asked: ApiRequest) -> Any:
    is_record = asked.query.form is queries.PlanForm.RECORD
    return picture.plan if is_record else plan_document(picture.plan)


def _explained(kind: str, by: Explain) -> Answer:
    """Of what is not there any more what was decided about it."""

    def answer(seat: Seat, picture: Picture, asked: ApiRequest) -> Explained:
        name = asked.query.name
        with _missing():
            try:
                return Explained(by(name, picture.snapshot, picture.plan, picture.policy))
            except NotThereError:
                remember(seat)
                past = past_of(kind, name, seat.chronicle.decisions())
                if not past:
                    raise
                return Explained(past)

    return answer


def _history(seat: Seat, picture: Picture, asked: ApiRequest) -> HistoryReport:
    verb = known_verb(asked.query.verb)
    with seat.store()() as store:
        found = list(entries(store.cycles(limit=asked.query.cycles), verb, asked.query.since))
    return HistoryReport(picture.policy.catalogue.currency, seat.present(), found[-asked.query.limit :])


def _cycles(seat: Seat, _: Picture, asked: ApiRequest) -> Cycles:
    with seat.store()() as store:
        return Cycles(list(map(cycle_line, store.cycles(asked.query.since, asked.query.limit))))


def _replay(seat: Seat, picture: Picture, asked: ApiRequest) -> Replayed:
    number = asked.path["cycle"]
    if not number.isdecimal() or len(number) > 15:
        raise GivenError(f"cycle {number[:50]!r}: is no number")
    with seat.store()() as store, _missing():
        return replayed(store, picture.policy, int(number))


def _costs(seat: Seat, picture: Picture, asked: ApiRequest) -> CostReport:
    query = asked.query
    if query.until is not None and query.until < query.since:
        raise GivenError(f"until={query.until:g} is before since={query.since:g}; exchange them")
    window = Window(query.since, query.until if query.until is not None else math.inf)
    books = books_of(seat.store(), picture.policy, window, seat.present())
    with said_in("against"):
        return cost_report(books, query.by, query.against or None)


def _decisions(seat: Seat, picture: Picture, asked: ApiRequest) -> DecisionPage:
    kind, kinds = asked.query.kind, sorted(set(KINDS.values()))
    if kind and kind not in kinds:
        raise GivenError(f"kind {kind[:50]!r}: there is none{did_you_mean(kind, kinds)}")
    return decision_page(seat, picture, **msgspec.structs.asdict(asked.query))


def _recommendation(seat: Seat, picture: Picture, _: ApiRequest) -> RecommendationReport:
    if seat.mode != RECOMMEND:
        raise NotFoundError("nothing is recommended here: that is for mode recommend")
    return recommendation_report(picture.savings, picture.plan, picture.outcomes, seat.courses.points())


def _approvals(seat: Seat, picture: Picture, _: ApiRequest) -> ApprovalsReport:
    asked = seat.approvals.asked() if seat.approvals is not None else []
    return approvals_report(
        asked, picture.policy.approval, picture.policy.catalogue.currency, picture.at, picture.judged_at
    )


def _approve(seat: Seat, picture: Picture, asked: ApiRequest) -> ApprovalsReport:
    word, approval, currency = asked.body, picture.policy.approval, picture.policy.catalogue.currency
    if approval is None or seat.approvals is None:
        raise GivenError("no proposals here: this daemon runs in another mode than approve")
    if bool(word.ids) == word.all:
        raise GivenError("name ids, or write all: true instead")
    said = seat.approvals.say(word.ids, asked.who, is_approved=word.verdict is Verdict.APPROVE, currency=currency)
    seat.renew()
    return approvals_report(said, approval, currency, picture.at, picture.judged_at)


def _simulate(_: Seat, picture: Picture, asked: ApiRequest) -> Simulated:
    found = simulated(picture.snapshot.cluster, picture.policy, picture.at, asked.body)
    return compared(found, picture.as_it_will_be if found.counts_bought else picture.as_it_is)


# fmt: off
ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "/cluster",
        "The cluster now: groups, nodes in columns, starting machines, pending pods, moves under way",
        lambda seat, picture, _: cluster_report(seat, picture),
        ClusterReport,
    ),
    Endpoint("/top", "What htas top shows", _top, PresentCluster, queries.OfTop),
    Endpoint("/nodes", "Nodes with their pods and why they are kept, a page at a time", _nodes, NodePage, queries.OfNodes),
    Endpoint(
        "/nodes/{name}",
        "A node, everything that keeps it, and what it has cost",
        _node,
        NodeDetail,
    ),
    Endpoint("/pods", "Pods, a page at a time; waiting=true: those without a node", _pods, PodPage, queries.OfPods),
    Endpoint("/pods/{namespace}/{name}", "A pod, and for a pending pod the flavours that it does not fit", _pod, PodDetail),
    Endpoint("/plan", "The plan, with reasons, as htas plan -o json has it", _plan, dict, queries.OfPlan),
    Endpoint("/explain/pod", "Why a pod runs where it is, or is pending", _explained("pod", explain_pod), Explained, queries.OfExplain),
    Endpoint("/explain/node", "Why a node is kept or deleted", _explained("node", explain_node), Explained, queries.OfExplain),
    Endpoint("/history", "What was done and why, the newest entries (limit) of the newest cycles on record (cycles)", _history, HistoryReport, queries.OfHistory, turns=Work.READING, is_kept=False),
    Endpoint("/cycles", "The newest cycles on record, a line each", _cycles, Cycles, queries.OfCycles, turns=Work.READING, is_kept=False),
    Endpoint("/cycles/{cycle}/replay", "Plan a recorded cycle again, by today's policy", _replay, Replayed, turns=Work.PLANNING),
    Endpoint("/costs", "What was spent, by a key; against another way", _costs, CostReport, queries.OfCosts, turns=Work.READING, is_kept=False),
    Endpoint("/money", "Spend in a window, the period before, by key; idle capacity, the month", lambda seat, picture, asked: money_report(seat, picture, **msgspec.structs.asdict(asked.query)), MoneyReport, queries.OfMoney, turns=Work.SHOWING),
    Endpoint("/against", "The cost of the same work in another way, in a window", lambda seat, picture, asked: against(seat, picture, **msgspec.structs.asdict(asked.query)), Against, queries.OfAgainst, turns=Work.SHOWING),
    Endpoint("/decisions", "Launches, drains, deletions and moves, and what they saved, newest first", _decisions, DecisionPage, queries.OfDecisions, turns=Work.SHOWING),
    Endpoint("/recommendation", "Of mode recommend: what HTAS would do, and what it would have saved", _recommendation, RecommendationReport),
    Endpoint("/approvals", "Pending proposals, and recent decisions on them", _approvals, ApprovalsReport, is_kept=False),
    Endpoint("/approvals", "Approve or reject proposals", _approve, ApprovalsReport, method="POST", body=Word, is_kept=False),
    Endpoint("/what-if", "What can be changed: rules, services, flavours; and the cluster as it is", lambda _, picture, __: levers(picture.snapshot.cluster, picture.policy, picture.as_it_is), Levers, turns=Work.SHOWING),
    Endpoint("/simulate", "The bill and the placement with rules, prices, flavours or replicas changed", _simulate, Simulated, method="POST", body=Changes, turns=Work.PLANNING),
)
# fmt: on
