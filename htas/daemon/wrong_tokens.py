"""Wrong tokens: who shows many of them is answered ever more slowly."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from htas.model.pauses import doubled_s

FREE = 5
"""Wrong tokens in a row without a pause: a Secret that was just replaced, a mistake while typing."""
FIRST_S, LONGEST_S = 0.25, 4.0
FORGOTTEN_S = 300.0
MOST_SOURCES = 1_000


class WrongTokens:
    """Counts wrong tokens by source address, in memory, of the last `MOST_SOURCES` sources. `on_wrong` hears of each.

    The pause comes before the token is judged, so that it bounds reviews by the API server, too. People behind the same
    proxy share its address: they wait `LONGEST_S` at most while somebody there guesses.
    """

    def __init__(
        self, on_wrong: Callable[[], None] = lambda: None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._on_wrong = on_wrong
        self._clock = clock
        self._known: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def pause_s(self, source: str) -> float:
        """How long to wait before a token of this source is judged: doubled with each wrong one after `FREE`."""
        count, last = self._known.get(source, (0, 0.0))
        if count <= FREE or self._clock() - last > FORGOTTEN_S:
            return 0.0
        return doubled_s(count - FREE, FIRST_S, LONGEST_S)

    def wrong(self, source: str) -> None:
        count, last = self._known.pop(source, (0, 0.0))
        now = self._clock()
        self._known[source] = (count + 1 if now - last <= FORGOTTEN_S else 1, now)
        while len(self._known) > MOST_SOURCES:
            self._known.popitem(last=False)
        self._on_wrong()

    def right(self, source: str) -> None:
        self._known.pop(source, None)
