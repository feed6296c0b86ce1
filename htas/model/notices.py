"""Notices: what people are told of unasked, by webhook."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from htas.model.former_names import Named


class Occasion(Named):
    """What a notice is about; a receiver may ask for some of them alone (`notices[].on`)."""

    LIMIT_REACHED = "limit-reached"
    """Pods wait since a limit, a quota, or what their namespace may have, forbids another machine."""
    LAUNCH_FAILED = "launch-failed"
    DRAIN_UNDONE = "drain-undone"
    BUDGET = "budget"
    """The month's spending passed a part of `monthlyBudget`, or its forecast passed all of it."""
    TEST = "test"
    """Somebody asked for it: `htas notices test`."""


TOLD = tuple(occasion for occasion in Occasion if occasion is not Occasion.TEST)
"""What a daemon tells of by itself."""


class Form(StrEnum):
    """What a receiver takes: a document of ours, or a message of Slack's."""

    JSON = "json"
    SLACK = "slack"


class Notice(msgspec.Struct, frozen=True):
    """One thing to tell. `key` tells it from others of its occasion: the same is not told again for a while. `times` is
    how often it was seen since it was told last.
    """

    occasion: Occasion
    key: str
    title: str
    text: str
    at: float
    cluster: str = ""
    times: int = 1
