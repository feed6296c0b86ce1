"""Which days hold rows of a kind: so that nobody asks for days on which there was nothing."""

from __future__ import annotations

from collections.abc import Iterable
from time import time

from htas.adapters.cassandra.rows import date_of, day_of
from htas.adapters.cassandra.session import Session
from htas.model.record import DAY_S

_NOTE = "INSERT INTO KEYSPACE.days (cluster, kind, day) VALUES (?, ?, ?) USING TTL ?"
_SINCE = "SELECT day FROM KEYSPACE.days WHERE cluster = ? AND kind = ? AND day >= ?"


class Days:
    """The days of one kind of rows, which are kept for `kept_s`."""

    def __init__(self, session: Session, kind: str, kept_s: float) -> None:
        self._session = session
        self._kind = kind
        self._ttl = int(kept_s + 2 * DAY_S)  # outlives the rows of a day on which it was noted
        self._noted: set[tuple[int, int]] = set()

    def note(self, days: Iterable[int]) -> None:
        """Before rows of these days are written. Noted once on each day on which they are written, for its end."""
        today = day_of(time())
        for day in {each for each in days if (each, today) not in self._noted}:
            values = (self._session.settings.cluster, self._kind, date_of(day), self._ttl)
            self._session.write(f"noting a day of {self._kind}", _NOTE, values)
            self._noted.add((day, today))

    def since(self, instant: float) -> list[int]:
        """Days at or after that of an instant, newest first."""
        first = date_of(max(day_of(instant), 0))
        values = (self._session.settings.cluster, self._kind, first)
        found = self._session.rows(f"reading the days of {self._kind}", _SINCE, values)
        return [day.days_from_epoch for (day,) in found]
