"""Which parts of planning a cycle runs."""

from __future__ import annotations

from enum import StrEnum


class Stage(StrEnum):
    """Placing is always part of a plan; buying, cleaning and the edge have cycles of their own (HTAS paper Table 6)."""

    SCHEDULING = "scheduling"
    AUTOSCALING = "autoscaling"
    CLEANING = "cleaning"
    EDGE = "edge"
    """Suggestions of what to move to the edge; not due where no node is of that tier."""


ALL_STAGES = frozenset(Stage)
EVENT_STAGES = frozenset({Stage.SCHEDULING, Stage.AUTOSCALING})
"""What news of the cluster brings forward: work is placed and bought for at once, cleaning keeps its own time."""
