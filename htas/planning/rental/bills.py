"""What a machine costs until it is given back: one by itself, and those that are there by their rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from htas.model.billing import Alignment, Billing, Cap, Price
from htas.model.nodes import Node
from htas.model.pods import Pod, WorkKind
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.classes import Ints
from htas.planning.cluster.machines import owned_machines, price_paid

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RunningBill:
    """The bill of a machine that is charged for since an instant; a price is billionths of the currency an hour."""

    price: int
    since: float
    billing: Billing
    cap: Cap | None = None

    def seconds_in(self, now: float, s: float) -> int | Fraction:
        """What is billed of a machine given back in so many seconds; nothing is taken back if it is not rented yet.

        With a monthly cap only so many seconds as its price makes of its bill: those beyond the cap cost nothing.
        """
        held_s = now - self.since + s
        if self.cap is None or not self.price:
            return self.billing.seconds(self.since, held_s)
        return Fraction(self.billing.bill(Price(self.price, self.cap), self.since, held_s), self.price)

    def until(self, instant: float) -> int:
        """The bill of a machine given back at an instant: price × billed seconds.

        10 a second by the minute, charged for since 0: 600 until 1, 1,200 until 61.
        """
        return int(self.price * self.seconds_in(instant, 0.0))

    def longer(self, until: float, later: float) -> int:
        """What it costs to give it back later: 0 within what is paid for anyway, and where `later` is not later."""
        return max(0, self.until(later) - self.until(until))


def billed_until(billing: Billing, since: Floats, until: Floats) -> Floats:
    """Seconds that machines are billed for which are rented from `since` to `until`: of many at once."""
    period, held = billing.granularity_s, np.maximum(until - since, 0.0)
    if billing.alignment is Alignment.CLOCK:
        whole = np.ceil((since + held) / period) * period - np.floor(since / period) * period
    else:
        whole = np.ceil(held / period) * period
    billed: Floats = np.maximum(whole, billing.minimum_s)
    return billed


@dataclass(frozen=True, slots=True)
class Rentals:
    """By row the price (billionths an hour) and the start of the rental. Price 0: work there adds nothing to a bill.

    So it is of rows that are not given back once they are empty: machines of others, of groups that are not cleaned or
    at their minimum size, and those that a service holds, which has no end. Rows added since are not known.
    """

    price: Floats
    since: Floats
    billing: Billing
    caps: Mapping[int, Cap] = field(default_factory=dict)
    """By row, where a month has a most."""

    @classmethod
    def of(
        cls, nodes: Sequence[Node], snapshot: ClusterSnapshot, policy: Policy, running: Mapping[int, Sequence[Pod]]
    ) -> Rentals:
        claims = {claim.id: claim for claim in snapshot.claims}
        sizes: dict[str, int] = {}
        for group, _, _ in owned_machines(policy, snapshot):
            sizes[group] = sizes.get(group, 0) + 1
        price, since = np.zeros(len(nodes)), np.zeros(len(nodes))
        caps: dict[int, Cap] = {}
        for row, node in enumerate(nodes):
            claim = claims.get(node.claim or "")
            if claim is not None and _goes_when_empty(node, policy, sizes) and not _serves(running.get(row, ())):
                paid = price_paid(node, claim, policy)
                price[row] = paid.nanos_per_hour
                since[row] = claim.rented_since
                if paid.cap is not None:
                    caps[row] = paid.cap
        return cls(price, since, policy.catalogue.billing, caps)

    def without(self, rows: Sequence[int]) -> Rentals:
        """The same, but that work on these rows adds nothing: what they are rented for is decided."""
        price = self.price.copy()
        price[list(rows)] = 0.0
        return Rentals(price, self.since, self.billing, self.caps)

    def prices(self, rows: Ints) -> Floats:
        """What rows cost an hour that a service would hold from now on; 0 where that adds nothing to a bill."""
        prices: Floats = np.zeros(len(rows))
        known = rows < len(self.price)
        prices[known] = self.price[rows[known]]
        return prices

    def longer_s(self, rows: Ints, until: Floats, later: Floats) -> Floats:
        """Seconds that rows are billed for more if they are given back at `later` instead of `until`; 0 at least."""
        since = self.since[rows]
        more: Floats = billed_until(self.billing, since, later) - billed_until(self.billing, since, until)
        for i, row in enumerate(rows.tolist()) if self.caps else ():
            if row in self.caps and self.price[row]:
                more[i] = self._bill(row).longer(float(until[i]), float(later[i])) / self.price[row]
        return np.maximum(more, 0.0)

    def added_by(self, length_s: float, rows: Ints, run_until: Floats, now: float) -> Floats:
        """Price × seconds that work of a length adds to each row, whose other work ends at `run_until` by row.

        Nothing, to rows that have been added since.
        """
        added: Floats = np.zeros(len(rows))
        known = rows < len(self.price)
        there = rows[known]
        longer_s = self.longer_s(there, np.maximum(run_until[there], now), np.full(len(there), now + length_s))
        added[known] = self.price[there] * longer_s
        return added

    def added(self, rows: Iterable[int], before: Floats, after: Floats, now: float) -> int:
        """What rows cost more with the ends of their work after than before, neither earlier than now; exact."""
        return sum(
            self._bill(row).longer(max(float(before[row]), now), max(float(after[row]), now))
            for row in rows
            if row < len(self.price) and self.price[row]
        )

    def _bill(self, row: int) -> RunningBill:
        return RunningBill(int(self.price[row]), float(self.since[row]), self.billing, self.caps.get(row))


def _goes_when_empty(node: Node, policy: Policy, sizes: Mapping[str, int]) -> bool:
    """Whether a node is given back once it is empty."""
    group = policy.group(node.group)
    return (
        group is not None
        and node.cluster == policy.cluster
        and group.is_elastic
        and group.cleaning.enabled
        and sizes.get(group.name, 0) > group.min_nodes
        and node.held_by is None
    )


def _serves(pods: Iterable[Pod]) -> bool:
    """Whether a service holds a node: that has no end, and batch work beside it lengthens nothing."""
    return any(pod.kind is WorkKind.SERVICE and pod.is_work for pod in pods)
