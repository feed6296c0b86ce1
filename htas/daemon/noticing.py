"""What of a cycle, and of the bills, people should be told: a pure fold over what happens, on the cycles' own clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

import msgspec

from htas.daemon.cycle import CycleResult
from htas.model.money import bill_amount
from htas.model.notices import Notice, Occasion
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.proposals import Launch
from htas.model.reasons import Unplaced

AGAIN_S = 3600.0
"""The same is told once an hour while it goes on, with how often it was seen meanwhile."""
MOST_KEYS = 1_000
"""Of what was told, kept in mind; the oldest is forgotten first, and at worst told once more."""
PARTS = (80, 100)
"""Per cent of the month's budget, each told once a month; and the forecast's passing of all of it."""
BOUNDS: Mapping[Unplaced, str] = {
    Unplaced.LIMIT_REACHED: "a limit of the configuration is reached",
    Unplaced.NAMESPACE_LIMIT: "a namespace has reached its limit",
    Unplaced.QUOTA_REACHED: "the cloud's quota is used up",
}


class Spending(msgspec.Struct, frozen=True):
    """A month beside its budget, in price × billed seconds, as accounts add up."""

    so_far: int
    forecast: int
    budget: int
    currency: str


class Noticing:
    """Says what is new. Told of cycles by one thread, in their order."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._told_at: dict[tuple[Occasion, str], float] = {}
        self._unsaid: Counter[tuple[Occasion, str]] = Counter()
        self._launches: dict[str, Launch] = {}
        """Launches that the cloud has not answered: it does so after the cycle that asked."""

    def of_cycle(self, result: CycleResult) -> list[Notice]:
        """What a cycle gives reason to tell."""
        at = result.snapshot.taken_at
        self._launches |= {item.claim: item for item in result.plan.launches}
        found = [*self._bounds(result, at), *self._outcomes(result.outcomes, at)]
        claims = {claim.id for claim in result.snapshot.claims} | {item.claim for item in result.plan.launches}
        self._launches = {key: item for key, item in self._launches.items() if key in claims}
        return list(self._new(found))

    def of_month(self, at: float, month: Spending) -> list[Notice]:
        """What the month's bills give reason to tell; each part of the budget once a month."""
        name = datetime.fromtimestamp(at, UTC).strftime("%Y-%m")
        so_far, forecast, budget = (_amount(each) for each in (month.so_far, month.forecast, month.budget))
        passed = [part for part in PARTS if month.so_far * 100 >= month.budget * part]
        if passed:
            title = f"{passed[-1]} % of the budget of {name} is spent"
            key, text = f"{name}/{passed[-1]}", f"{so_far} of {budget} {month.currency} so far; forecast {forecast}"
        elif month.forecast > month.budget:
            title = f"{name} will cost more than its budget"
            key, text = f"{name}/forecast", f"forecast {forecast} {month.currency}, budget {budget}; {so_far} so far"
        else:
            return []
        return list(self._new([Notice(Occasion.BUDGET, key, title, text, at)], once=True))

    def _bounds(self, result: CycleResult, at: float) -> Iterator[Notice]:
        """Of each bound how many wait for it, and what one of them was told."""
        waiting: dict[Unplaced, list[str]] = {}
        such_as: dict[Unplaced, str] = {}
        for item in result.plan.unplaced:
            if item.reason in BOUNDS:
                waiting.setdefault(item.reason, []).append(item.pod)
                such_as.setdefault(item.reason, item.message)
        for reason, pods in waiting.items():
            title = f"{len(pods)} {'pod is' if len(pods) == 1 else 'pods are'} pending: {BOUNDS[reason]}"
            text = f"{reason}: {such_as[reason] or BOUNDS[reason]}; such as {pods[0]}"
            yield Notice(Occasion.LIMIT_REACHED, reason.value, title, text, at)

    def _outcomes(self, outcomes: Iterable[Outcome], at: float) -> Iterator[Notice]:
        for outcome in outcomes:
            if outcome.action is Action.LAUNCH and outcome.status is OutcomeStatus.FAILED:
                launch = self._launches.get(outcome.subject)
                what = f"{launch.flavour} for group {launch.group}" if launch is not None else outcome.subject
                key = launch.flavour if launch is not None else "a machine"
                text = f"{outcome.subject}: {outcome.message}"
                yield Notice(Occasion.LAUNCH_FAILED, key, f"A launch failed: {what}", text, at)
            elif outcome.action is Action.UNDO_DRAIN and outcome.status is OutcomeStatus.DONE:
                title = f"The drain of node {outcome.subject} was undone"
                yield Notice(Occasion.DRAIN_UNDONE, outcome.subject, title, outcome.message, at)

    def _new(self, found: Iterable[Notice], once: bool = False) -> Iterator[Notice]:
        """Those not told of late. What goes on is counted until it is told again."""
        for notice in found:
            what = (notice.occasion, notice.key)
            told_at = self._told_at.get(what)
            self._unsaid[what] += 1
            if told_at is not None and (once or notice.at - told_at < AGAIN_S):
                continue
            self._told_at[what] = notice.at
            yield msgspec.structs.replace(notice, cluster=self._cluster, times=self._unsaid.pop(what))
        while len(self._told_at) > MOST_KEYS:
            oldest = min(self._told_at, key=self._told_at.__getitem__)
            del self._told_at[oldest]
            self._unsaid.pop(oldest, None)


def _amount(nanos: int) -> str:
    return f"{bill_amount(nanos):.2f}"
