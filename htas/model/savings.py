"""Savings: what a cluster has cost, beside what it would have cost had HTAS been in charge of it."""

from __future__ import annotations

import msgspec

from htas.model.resources import LackingRequests


class Waits(msgspec.Struct, frozen=True):
    """How long pods waited from their creation until they ran: how many, and for how long together."""

    pods: int = 0
    seconds: float = 0.0

    @property
    def mean_s(self) -> float:
        return self.seconds / self.pods if self.pods else 0.0

    def plus(self, seconds: float, pods: int = 1) -> Waits:
        return Waits(self.pods + pods, self.seconds + seconds)


class Course(msgspec.Struct, frozen=True):
    """One course of events: the real one, or that with HTAS.

    `nano_seconds` is price × billed seconds of the machines in question since the beginning, those that run billed as
    if given back now; `nanos_per_hour` what they cost now.
    """

    nano_seconds: int = 0
    nanos_per_hour: int = 0
    machines: int = 0
    waits: Waits = Waits()


class Savings(msgspec.Struct, frozen=True):
    """Both courses from `since` until `at`. Of that with HTAS also what it would have disturbed.

    `evicted` pods would have been started anew elsewhere and `moved` ones have kept their progress; `overrun_s` is for
    how long batch work was counted beyond its end, since in reality it waited longer and its length was known late:
    that much is held against HTAS.
    """

    since: float
    at: float
    real: Course = Course()
    with_htas: Course = Course()
    evicted: int = 0
    moved: int = 0
    overrun_s: float = 0.0
    lacking: LackingRequests = LackingRequests()
    """Pods without requests by now: the savings rest on an assumption about them."""

    @property
    def saved_nano_seconds(self) -> int:
        """Negative: HTAS would have cost more."""
        return self.real.nano_seconds - self.with_htas.nano_seconds

    @property
    def share(self) -> float:
        """Of what was spent; 0 while nothing was."""
        return self.saved_nano_seconds / self.real.nano_seconds if self.real.nano_seconds else 0.0
