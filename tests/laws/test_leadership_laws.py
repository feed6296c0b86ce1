"""Whatever happens to processes and connections, no two lead at one instant."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from htas.daemon.loops.leadership import Leadership, LeaseTiming
from htas.ports import HTASError
from tests.unit.daemon.in_memory_lease import InMemoryLease

TIMING = LeaseTiming(lease_s=15.0, renew_s=10.0, retry_s=2.0)
WHO = st.integers(0, 2)
INSISTING = 2
"""This one is a command: it asks whoever leads to make way."""
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("attempt"), WHO),
        st.tuples(st.just("pass"), st.floats(0.0, 40.0, allow_nan=False)),
        st.tuples(st.just("lose request"), st.integers(1, 2)),
        st.tuples(st.just("lose answer"), st.just(1)),
        st.tuples(st.just("end"), WHO),
    ),
    max_size=60,
)


class Candidates:
    """Three of them, each with a clock of its own; one that ended comes back as a new process."""

    def __init__(self, ahead_s: list[float]) -> None:
        self.now = 1000.0
        self.lease = InMemoryLease()
        self._ahead_s = ahead_s
        self._born = 0
        self.them = [self._born_anew(i) for i in range(len(ahead_s))]

    def _born_anew(self, i: int) -> Leadership:
        self._born += 1
        return Leadership(
            self.lease,
            f"{i}_{self._born}",
            TIMING,
            clock=lambda: self.now + self._ahead_s[i],
            wall=lambda: self.now,
            insists=i == INSISTING,
        )

    def take(self, step: tuple[str, float]) -> None:
        verb, amount = step
        match verb:
            case "attempt":
                with suppress(HTASError):
                    self.them[int(amount)].attempt()
            case "pass":
                self.now += amount
            case "lose request":
                self.lease.lose_requests = int(amount)
            case "lose answer":
                self.lease.lose_answers = int(amount)
            case "end":
                self.them[int(amount)].stop()
                self.them[int(amount)] = self._born_anew(int(amount))


@given(STEPS, st.lists(st.floats(-1e6, 1e6, allow_nan=False), min_size=3, max_size=3))
def test_never_do_two_lead_at_one_instant(steps: list[tuple[str, float]], ahead_s: list[float]) -> None:
    candidates = Candidates(ahead_s)
    for step in steps:
        candidates.take(step)
        assert sum(each.is_leader for each in candidates.them) <= 1


@given(st.integers(0, 2))
def test_whoever_is_alone_leads_in_the_end(survivor: int) -> None:
    candidates = Candidates([0.0, 0.0, 0.0])
    for step in (("attempt", 0.0), ("attempt", 1.0), ("attempt", 2.0)):
        candidates.take(step)
    for _ in range(12):
        candidates.now += 2.0
        candidates.take(("attempt", float(survivor)))
    assert candidates.them[survivor].is_leader
