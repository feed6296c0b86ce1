"""Bookkeeping: bills follow the machines that the cloud lists, and are compared with the cloud's own usage.

Each look at the cloud opens and closes bills (`bill_life.py`). An end that the cloud has not told is provisional: its
usage is asked for, beside the cycles, and asked again with growing pauses while it does not answer. So it is when HTAS
starts: machines may have come and gone since, as where an older copy of the store was restored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec
import structlog

from htas.execution.backoff import NO_PAUSE
from htas.execution.bill_life import by_machine, confirmed, found_later, group_of, may_be_of, of_machine, of_missing
from htas.execution.cloud_calls import CloudCalls
from htas.execution.ports import Ports
from htas.model.claims import Instance, NodeClaim, Usage
from htas.model.outcomes import CLUSTER, Action, Outcome, OutcomeStatus
from htas.model.policy import Policy
from htas.model.record import SETTLED_S, Bill
from htas.ports import HTASError

log = structlog.get_logger()

SLACK_S = 86_400.0
"""The cloud's clock and ours may differ by so much, as where one shows local time: the window that usage is asked for
is longer by so much at both ends. A machine outside it would count as one that the cloud has forgotten.
"""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 10.0, 600.0
"""Between two questions for usage while the cloud does not answer, or does not confirm every end; doubling."""
NAMED = 3
"""Machines that an outcome names; of more it has the number."""


class _Answer(NamedTuple):
    asked_at: float
    told: Sequence[Usage] | None


class Bookkeeper:
    """Writes the bills of one daemon. `policy` may be replaced between cycles."""

    def __init__(self, ports: Ports, calls: CloudCalls, policy: Policy) -> None:
        self.policy = policy
        self.revisions = 0
        """How often a bill was changed that had ended a while ago."""
        self._ports = ports
        self._calls = calls
        self._known: list[float] | None = None
        """When what was on record at the start was written."""
        self._has_begun = False
        self._since = 0.0
        """What ended before has been compared with the cloud's usage."""
        self._is_due = False
        self._tells_usage = True
        self._answer: _Answer | None = None
        self._is_asking = False
        self._pause = NO_PAUSE
        self._problem = ""
        self._lost = ""
        self._news: list[Outcome] = []
        self._provisional: dict[str, Bill] = {}
        self._began_at = 0.0
        self._journalled: dict[str, float] = {}
        """When claims without a bill were in the journal last: the usage that is read next may have their machines."""
        self._unproven: dict[str, str] = {}
        """Names of deleted machines that may be this cluster's or another's, by machine; not billed."""
        self._others: set[str] = set()
        """Other clusters of HTAS whose machines the cloud has listed."""
        self._billed: set[str] = set()
        """Claims that have a bill."""
        self._closed: dict[str, Bill] = {}
        """The last closed bill of machines that are still listed, by the machine's id."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What people must know of the bills."""
        ends = f"the ends of {len(self._provisional)} bills are not confirmed: {self._problem}" if self._problem else ""
        return tuple(filter(None, (self._lost, ends, _not_billed(self._unproven.values()))))

    @property
    def unconfirmed(self) -> int:
        """How many closed bills end when HTAS believes so."""
        return len(self._provisional)

    def remember(self) -> None:
        """Look once at what is on record, before anything is added to it."""
        if self._known is not None:
            return
        store = self._ports.store
        bills, claims = store.bills(), store.claims()
        known = [claim.since for claim in claims if claim.since]
        known += [bill.started_at if bill.ended_at is None else bill.ended_at for bill in bills]
        with suppress(HTASError):  # history is away: bills and claims tell nearly as well
            known += [cycle.at for cycle in store.cycles(limit=1)]
        self._provisional = {bill.id: bill for bill in bills if bill.is_provisional}
        self._billed = {bill.claim for bill in bills}
        self._known = known

    def begin(self, ours: Sequence[Instance]) -> None:
        """With the first look at the cloud: since when its usage is to be read. `ours` are its machines of ours."""
        if self._has_begun:
            return
        self.remember()
        now, known = self._ports.clock.now(), self._known
        self._began_at = now
        bills = self._ports.store.bills(now)
        there = {each.id for each in ours} | {each.claim for each in ours}
        owed = [bill for bill in bills if bill.ended_at is None and not _ids(bill) & there]
        owed += self._provisional.values()
        if known:
            self._since = min([now, max(known) - SLACK_S, *(bill.started_at for bill in owed)])
            self._is_due = True
        elif any(each.launched_at is not None and each.launched_at < now for each in ours):
            self._since = min([now, *(each.launched_at for each in ours if each.launched_at is not None)])
            self._is_due = True
            self._lost = (
                f"the store was empty when HTAS started, and machines of cluster {self.policy.cluster} ran"
                f" ({len(ours)}): their past and earlier bills are lost; restore a backup: htas store restore"
            )
            self._news = [Outcome(Action.RECONCILE, CLUSTER, OutcomeStatus.FAILED, self._lost)]
        else:
            self._since = now - SLACK_S
        self._has_begun = True

    def settle(
        self,
        before: Mapping[str, NodeClaim],
        after: Mapping[str, NodeClaim],
        ours: Sequence[Instance],
        instances: Sequence[Instance],
    ) -> list[Outcome]:
        """Bring the bills to what the cloud shows.

        `before` and `after` are the claims as this look found and left them, `ours` our machines of `instances`. A
        machine that bears another cluster's name by now is billed on as it was while the cloud lists it.
        """
        now, under_way = self._ports.clock.now(), self._calls.under_way
        elsewhere = {each.id for each in instances if each.ended_at is None}
        self._others |= {each.cluster for each in instances if each.cluster} - {self.policy.cluster}
        bills = {bill.id: bill for bill in self._ports.store.bills(now) if bill.ended_at is None}
        self._billed |= {bill.claim for bill in bills.values()}
        numbers = self._look_up(ours, bills, after)
        of_machines = {bill.instance: bill for bill in bills.values()}
        for machine in ours:
            claim = after.get(machine.claim or "")
            bill = of_machines.get(machine.id) or _legacy(machine, claim, bills)
            number = numbers.get(machine.claim or "", -1) + 1
            made = of_machine(bill, self._closed.get(machine.id), machine, claim, self.policy.catalogue, now, number)
            for each in made:
                self._put(each, now)
                numbers[each.claim] = max(numbers.get(each.claim, -1), each.part)
            if bill is not None:
                del bills[bill.id]
        for bill in bills.values():
            if bill.claim not in under_way and bill.instance not in elsewhere:
                closed = of_missing(bill, before.get(bill.claim), after.get(bill.claim), now)
                if closed is not None:
                    self._put(closed, now)
        # A claim that ends without a bill may have had a machine that no list showed.
        unbilled = before.keys() - after.keys() - self._billed
        self._journalled |= dict.fromkeys((before.keys() | after.keys()) - self._billed, now)
        self._billed &= before.keys() | after.keys()
        self._is_due |= bool(self._provisional or unbilled)
        self._ask(now)
        news, self._news = self._news, []
        return news + self._compare(instances, now)

    def _look_up(
        self, ours: Sequence[Instance], bills: Mapping[str, Bill], claims: Mapping[str, NodeClaim]
    ) -> dict[str, int]:
        """Learn of closed bills of machines without an open one; returns the highest bill's number by claim."""
        listed = {machine.id for machine in ours}
        self._closed = {key: bill for key, bill in self._closed.items() if key in listed}
        numbers: dict[str, int] = {}
        have_bills = {bill.instance for bill in bills.values()} | self._closed.keys()
        new = [each for each in ours if each.launched_at is not None and each.id not in have_bills]
        found: Iterable[Bill] = (*bills.values(), *self._closed.values())
        if new:
            since = min(_earliest(each, claims.get(each.claim or "")) for each in new)
            found = (*found, *self._ports.store.bills(since))
        wanted = {each.id for each in new}
        for bill in found:
            numbers[bill.claim] = max(numbers.get(bill.claim, -1), bill.part)
            if bill.ended_at is not None and bill.instance in wanted:
                known = self._closed.get(bill.instance)
                if known is None or bill.started_at >= known.started_at:
                    self._closed[bill.instance] = bill
        return numbers

    def _put(self, bill: Bill, now: float) -> None:
        self._ports.store.put_bill(bill)
        self._billed.add(bill.claim)
        if bill.ended_at is not None:
            self._closed[bill.instance] = bill
            if bill.ended_at < now - SETTLED_S / 2:
                self.revisions += 1
        if bill.is_provisional:
            self._provisional[bill.id] = bill
        else:
            was = self._provisional.pop(bill.id, None)
            if was is not None and (was.ended_at or now) < now - SETTLED_S / 2:
                self.revisions += 1

    # The cloud's own usage.

    def _ask(self, now: float) -> None:
        """Have the cloud's usage read, where an end is not confirmed or machines may have come and gone unseen."""
        if not self._is_due or self._is_asking or self._answer is not None or now < self._pause.until:
            return
        if not self._tells_usage:
            self._answer = _Answer(now, None)
            return
        self._is_asking, since = True, self._since

        def read() -> Outcome | None:
            try:
                told = self._ports.provider.usage(since, self._ports.clock.now() + SLACK_S)
                self._answer = _Answer(now, plausible(told) if told is not None else None)
            except HTASError as error:
                self._complain(str(error) or type(error).__name__)
            finally:
                self._is_asking = False
            return None

        self._calls.ask(read)

    def _complain(self, problem: str) -> None:
        if not self._problem:
            log.warning("the cloud does not report its usage: the ends of bills are not confirmed", error=problem)
        self._problem = problem
        self._pause = self._pause.after(self._ports.clock.now(), FIRST_PAUSE_S, LONGEST_PAUSE_S)

    def _compare(self, instances: Sequence[Instance], now: float) -> list[Outcome]:
        """Bring the bills to what the cloud's usage says, once it has answered."""
        answer, self._answer = self._answer, None
        if answer is None:
            return []
        self._is_due, self._problem = False, ""
        if answer.told is None:
            self._tells_usage = False
            for bill in tuple(self._provisional.values()):
                self._put(msgspec.structs.replace(bill, is_provisional=False), now)
            return []
        listed = {each.id: each for each in instances}
        bills = self._ports.store.bills(self._since)
        added: list[Bill] = []
        reported = frozenset(self._unproven)
        left: list[float] = []
        for machine, told in by_machine(answer.told).items():
            parts = _parts_of(machine, told[0].name, bills)
            if parts:
                self._confirm(parts, told, now)
                if parts[-1].ended_at is None:
                    left += [each.ended_at for each in told[-1:] if each.ended_at is not None]
            else:
                added += self._add(told, listed.get(machine), bills, now)
        seen = {each.instance for each in answer.told}
        names = {each.name for each in answer.told}
        for bill in tuple(self._provisional.values()):
            # The cloud has forgotten it, as where deleted servers are archived: what HTAS saw counts.
            if bill.instance not in seen and bill.claim not in names and (bill.ended_at or now) <= answer.asked_at:
                self._put(msgspec.structs.replace(bill, is_provisional=False), now)
        self._since = min([answer.asked_at, *left]) - SLACK_S
        self._pause = self._pause.after(now, FIRST_PAUSE_S, LONGEST_PAUSE_S) if self._provisional else NO_PAUSE
        self._journalled = {claim: at for claim, at in self._journalled.items() if at >= self._since}
        outcomes = [_told(added)] if added else []
        if self._unproven.keys() - reported:
            unknown = _not_billed(self._unproven.values())
            outcomes.append(Outcome(Action.RECONCILE, CLUSTER, OutcomeStatus.FAILED, unknown))
        return outcomes

    def _confirm(self, parts: list[Bill], told: Sequence[Usage], now: float) -> None:
        number = max(part.part for part in parts) + 1
        for each in confirmed(parts, told, self.policy.catalogue, number):
            self._put(each, now)

    def _add(self, told: Sequence[Usage], machine: Instance | None, bills: Sequence[Bill], now: float) -> list[Bill]:
        """The bills of a machine that nobody knew, if it was ours. One that runs is told of by the list.

        What was launched since HTAS began is ours only if the journal knew it: an order is journalled before it is
        made. Of what was launched before, as where an older store was restored, the name alone can tell: it must fit a
        group of ours, and no other cluster whose machines the cloud has listed.
        """
        name = told[0].name
        groups = [*(group.name for group in self.policy.groups), *dict.fromkeys(bill.group for bill in bills)]
        group = group_of(name, self.policy.cluster, groups)
        if group is None or any(each.ended_at is None for each in told):
            return []
        if machine is not None and machine.cluster != self.policy.cluster:
            return []
        if name not in self._journalled and all(bill.claim != name for bill in bills):
            if min(each.started_at for each in told) >= self._began_at:
                return []
            if may_be_of(name, self._others):
                self._unproven[told[0].instance] = name
                return []
        number = max((bill.part for bill in bills if bill.claim == name), default=-1) + 1
        found = found_later(told, group, self.policy.catalogue, number)
        for bill in found:
            self._put(bill, now)
            self.revisions += 1
        return found


def _ids(bill: Bill) -> set[str | None]:
    return {bill.instance or bill.claim}


def _earliest(machine: Instance, claim: NodeClaim | None) -> float:
    """Since when a machine's claim may have bills; of a claim's second machine, or a stranger, nobody knows."""
    if claim is None or claim.instance != machine.id:
        return 0.0
    return min(claim.created_at, machine.launched_at or claim.created_at)


def _legacy(machine: Instance, claim: NodeClaim | None, bills: Mapping[str, Bill]) -> Bill | None:
    """The open bill that an older htas wrote for a machine's claim."""
    bill = bills.get(machine.claim or "")
    is_its = claim is None or claim.instance in (None, machine.id)
    return bill if bill is not None and not bill.instance and is_its else None


def _parts_of(machine: str, name: str, bills: Sequence[Bill]) -> list[Bill]:
    parts = [bill for bill in bills if bill.instance == machine or (not bill.instance and bill.claim == name)]
    return sorted(parts, key=lambda bill: bill.started_at)


def _not_billed(unproven: Iterable[str]) -> str:
    names = sorted(unproven)
    if not names:
        return ""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    what = f"{len(names)} deleted machines may be of this cluster or of another whose names begin alike"
    return f"{what}, and are not billed: {', '.join(names[:NAMED])}{more}; compare them with the cloud's invoice"


def _told(added: Sequence[Bill]) -> Outcome:
    names = list(dict.fromkeys(bill.claim for bill in added))
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    what = f"bills of {len(names)} machines that HTAS did not know are added: {', '.join(names[:NAMED])}{more}"
    return Outcome(Action.RECONCILE, CLUSTER, OutcomeStatus.DONE, what)


def plausible(told: Iterable[Usage]) -> tuple[Usage, ...]:
    """The cloud's usage without repeats (a page that moved tells a server twice), and with no end before its start."""
    found: dict[tuple[str, str, float], Usage] = {}
    for each in told:
        if each.ended_at is not None and each.ended_at < each.started_at:
            each = msgspec.structs.replace(each, ended_at=each.started_at)
        found.setdefault((each.instance, each.flavour, each.started_at), each)
    return tuple(found.values())
