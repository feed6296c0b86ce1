"""What a drain rule may look at, and what it answers with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from htas.model.migrations import MigrationSettings
from htas.model.pods import Pod
from htas.model.policy import CleaningRules
from htas.model.reasons import Blocking
from htas.planning.eligibility.budgets import BudgetLedger
from htas.planning.eligibility.movability import VolumeBook

NO_VOLUMES = VolumeBook()


@dataclass(frozen=True, slots=True)
class Context:
    rules: CleaningRules
    budgets: BudgetLedger
    now: float
    settings: MigrationSettings = field(default_factory=MigrationSettings)
    volumes: VolumeBook = NO_VOLUMES


@dataclass(frozen=True, slots=True)
class Verdict:
    """`blocked`: the pod holds its node; `waits`: its end is awaited; `stays`: it ends with it; else it moves."""

    blocked: Blocking | None = None
    waits: bool = False
    stays: bool = False
    message: str = ""


MOVES = Verdict()
GOES_WITH_NODE = Verdict(stays=True)

Rule = Callable[[Pod, Context], Verdict | None]
"""None: the rule has nothing to say, the next one is asked."""
