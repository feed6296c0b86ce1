"""When which stages are due: one rule for real and for virtual time. Pure: it is told the time, and waits for nothing.

Placing what has come costs nobody anything, so the first change after a rest is acted on at once. Buying waits a
moment for more to be bought together: until nothing has come for `idle_s`, or `longest_s` have passed.

    change ─> placing, at once ─> all placed: done
                               └> room is lacking: buying, at the end of the window

Under a stream of changes a placing cycle is followed by a rest of a quarter of its length, in which more work gathers.

A cycle that failed is run again after 0.5 s, then 1, 2, 4 … 10 s; nothing else is due before. Its news is not lost, and
an API server that is away is not asked five times a second because a cloud's answer waits to be told.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from htas.model.pauses import doubled_s
from htas.model.stages import EVENT_STAGES, Stage

REST = 0.25
"""Of a cycle's length: so long nothing is placed after it. With 1.0 a burst on a crowded machine had a cycle in 2 s."""
AT_ONCE = frozenset({Stage.SCHEDULING})
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 10.0
"""After a cycle that failed; twice as long after each more, to a half of the default period."""


class Agenda:
    """Told of news and cycles, asked for what is due. `longest_s` 0: changes bring nothing forward, answers do at once.

    `every_s` are the periodic cycles, of which each stage is due at first; `event_stages` what the window ends with.
    """

    def __init__(
        self,
        every_s: Mapping[Stage, float],
        idle_s: float,
        longest_s: float,
        now: float,
        *,
        event_stages: frozenset[Stage] = EVENT_STAGES,
    ) -> None:
        self._event_stages = event_stages
        self._asked: set[Stage] = set()
        self._first: float | None = None
        self._last = now
        self._place_at: float | None = None
        self._rest_until = -math.inf
        self._again: frozenset[Stage] = frozenset()
        self._pause_until = -math.inf
        self._failures = 0
        self._every_s = dict(every_s)
        self._next = dict.fromkeys(every_s, now)
        self._idle_s, self._longest_s = idle_s, longest_s

    def adopt(self, every_s: Mapping[Stage, float], idle_s: float, longest_s: float, now: float) -> None:
        """Go on with other periods; what comes sooner by them does so from now on."""
        self._idle_s, self._longest_s = idle_s, longest_s
        for stage, period_s in every_s.items():
            self.follow(stage, period_s, now)

    def follow(self, stage: Stage, every_s: float | None, now: float) -> None:
        """Run a stage periodically, first after one period; None: no more."""
        if every_s is None:
            self._every_s.pop(stage, None)
            self._next.pop(stage, None)
        else:
            self._every_s[stage] = every_s
            self._next[stage] = min(self._next.get(stage, math.inf), now + every_s)

    # What happens.

    def ask(self, stages: frozenset[Stage]) -> None:
        """Stages that somebody wants at once."""
        self._asked |= stages

    def changed(self, now: float) -> None:
        """Work has come, or room has."""
        if self._longest_s <= 0:
            return
        self._last = now
        if self._first is None:
            self._first = now
        if self._place_at is None and self._event_stages >= AT_ONCE:
            self._place_at = now

    def answered(self, now: float) -> None:
        """A call that was not waited for has ended: it is told, and gone on from, with whatever else has come."""
        if self._first is None:
            self._first = self._last = now

    def began(self, stages: frozenset[Stage], now: float) -> None:
        """A cycle begins: what it sees has been acted on."""
        for stage in stages & self._every_s.keys():
            self._next[stage] = now + self._every_s[stage]
        self._asked -= stages
        self._again -= stages
        self._place_at = None
        if stages >= self._event_stages:
            self._first = None

    def ended(self, began: float, now: float, *, waits_to_buy: bool) -> None:
        """It has ended; `waits_to_buy`: it left pods without room, and was not to buy for them."""
        self._failures, self._pause_until = 0, -math.inf
        self._rest_until = now + REST * (now - began)
        if not waits_to_buy and self._last <= began:
            self._first = None

    def failed(self, stages: frozenset[Stage], now: float) -> None:
        """It has failed: what it should have seen to is due again, after a pause that grows with each failure."""
        self._again |= stages
        self._failures += 1
        self._pause_until = now + doubled_s(self._failures, FIRST_PAUSE_S, LONGEST_PAUSE_S)

    # What is due.

    @property
    def expects(self) -> bool:
        """Whether news is acted on soon: more of it changes little."""
        return self._place_at is not None or self._first is not None or bool(self._again)

    def news_at(self) -> float | None:
        """When news is acted on next; None: there is none."""
        again = self._pause_until if self._again else None
        due = [instant for instant in (self._placing_at(), self._window_ends(), again) if instant is not None]
        return max(min(due), self._pause_until) if due else None

    def periodic_at(self) -> float:
        """When the next periodic cycle runs."""
        return max(min(self._next.values()), self._pause_until)

    def upcoming(self) -> dict[Stage, float]:
        """When each stage runs next, if no news brings it forward; in the order in which they do."""
        due = {stage: max(at, self._pause_until) for stage, at in self._next.items()}
        return dict(sorted(due.items(), key=lambda item: (item[1], item[0])))

    def next_at(self) -> float:
        """When something is due, as far as is known; it may be past."""
        if self._asked:
            return self._pause_until
        news = self.news_at()
        return self.periodic_at() if news is None else min(news, self.periodic_at())

    def due(self, now: float, *, with_periodic: bool = True) -> frozenset[Stage]:
        """The stages to run now."""
        if now < self._pause_until:
            return frozenset()
        due = self._asked | self._again
        if with_periodic:
            due |= {stage for stage, at in self._next.items() if at <= now}
        placing, window = self._placing_at(), self._window_ends()
        if placing is not None and placing <= now:
            due |= AT_ONCE
        if window is not None and window <= now:
            due |= self._event_stages
        return frozenset(due)

    def _placing_at(self) -> float | None:
        return None if self._place_at is None else max(self._place_at, self._rest_until)

    def _window_ends(self) -> float | None:
        """When what has gathered is bought for: after a pause, or after the longest wait. None: no window is open."""
        return None if self._first is None else min(self._first + self._longest_s, self._last + self._idle_s)
