"""What may be asked with an endpoint: its query, checked, and described for OpenAPI."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from htas.documents.forms import CostBy, Sorted
from htas.documents.history import MOST_CYCLES, MOST_ENTRIES

Text = Annotated[str, msgspec.Meta(max_length=253)]
Instant = Annotated[float, msgspec.Meta(ge=0.0, le=1e11)]
"""Seconds since 1970, to the year 5138: neither infinite nor no number."""
Hours = Annotated[float, msgspec.Meta(ge=1, le=24 * 800)]
Offset = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


class PlanForm(StrEnum):
    """The documented plan, or the whole of it as it is recorded, which HTAS itself reads."""

    DOCUMENT = "document"
    RECORD = "record"


class NodeSort(StrEnum):
    """What a list of nodes is sorted by. RANK: by group, the fullest node first."""

    RANK = "rank"
    NAME = "name"
    GROUP = "group"
    FLAVOUR = "flavour"
    ZONE = "zone"
    CPU = "cpu"
    MEMORY = "memory"
    PODS = "pods"
    AGE = "age"
    PRICE = "price"
    WHY = "why"


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No query."""


class OfTop(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sort: Sorted = Sorted.NAME


class OfNodes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    group: Text = ""
    why: Text = ""
    text: Text = ""
    sort: NodeSort = NodeSort.RANK
    reverse: bool = False
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 60
    offset: Offset = 0


class OfPods(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    waiting: bool = False
    namespace: Text = ""
    node: Text = ""
    text: Text = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100
    offset: Offset = 0


class OfPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    form: PlanForm = PlanForm.DOCUMENT


class OfExplain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Text


class OfHistory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    verb: Text = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_ENTRIES)] = MOST_ENTRIES
    cycles: Annotated[int, msgspec.Meta(ge=1, le=MOST_CYCLES)] = 100
    since: Instant = 0.0


class OfCycles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_CYCLES)] = 100
    since: Instant = 0.0


class OfCosts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    by: CostBy = CostBy.GROUP
    against: Text = ""
    since: Instant = 0.0
    until: Instant | None = None


class OfMoney(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The last hours, or a range: from `since` until `until` (absent: now)."""

    hours: Hours = 24.0
    since: Instant | None = None
    until: Instant | None = None

    def __post_init__(self) -> None:
        _rounded(self)


class OfAgainst(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    way: Text
    hours: Hours = 24.0
    since: Instant | None = None
    until: Instant | None = None

    def __post_init__(self) -> None:
        _rounded(self)


class OfDecisions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: Text = ""
    text: Text = ""
    since: Instant = 0.0
    until: Instant | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 100
    before: Annotated[int, msgspec.Meta(ge=0)] | None = None


def _rounded(asked: OfMoney | OfAgainst) -> None:
    """Whole hours, and instants to the minute. A document is kept for each window: of any fraction of an hour 40 askers
    had one made anew each time.
    """
    msgspec.structs.force_setattr(asked, "hours", float(round(asked.hours)))
    for name in ("since", "until"):
        instant = getattr(asked, name)
        if instant is not None:
            msgspec.structs.force_setattr(asked, name, instant // 60 * 60.0)
