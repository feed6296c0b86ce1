"""Steps of a cycle that binding can do without: one that raises costs no bind, and is reported."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from traceback import walk_tb
from typing import TypeVar

import structlog

from htas.model.defects import Defect, Step
from htas.model.outcomes import Outcome
from htas.planning.cluster.optional_searches import error_text
from htas.ports import HTASError

log = structlog.get_logger()

Done = TypeVar("Done")
MOST_OF_AN_ERROR = 300
"""Characters of an error that the status shows; the log has all of it."""


class Steps:
    """Runs steps, and remembers which failed on a defect. For the thread that runs cycles, but for `note`."""

    def __init__(self) -> None:
        self.on_defect: Callable[[Step], None] = lambda step: None
        self._failed: dict[Step, Defect] = {}
        self._known: set[tuple[Step, str, str]] = set()
        self._lock = Lock()

    def attempt(self, step: Step, do: Callable[[], Done], otherwise: Done) -> Done:
        """What `do` returns; `otherwise` where it raises. An HTASError is no defect, and passes through."""
        try:
            return do()
        except HTASError:
            raise
        except Exception as error:  # whatever it is: pods are bound all the same
            self.note(step, error)
        return otherwise

    def outcomes(self, step: Step, do: Callable[[], list[Outcome]]) -> list[Outcome]:
        """The outcomes of a step; none where it fails."""
        return self.attempt(step, do, [])

    @property
    def failed(self) -> tuple[Defect, ...]:
        """The steps that have failed since `taken`, each with its last error."""
        return tuple(self._failed.values())

    @property
    def missing(self) -> tuple[Defect, ...]:
        """Those of them that a plan rests on."""
        return tuple(each for each in self.failed if each.step.is_fact)

    def taken(self) -> tuple[Defect, ...]:
        """`failed`, from then on none."""
        with self._lock:
            failed, self._failed = self.failed, {}
        return failed

    def note(self, step: Step, error: Exception) -> None:
        """Log each defect once: its words may differ each time, its kind and line do not. From any thread."""
        self.on_defect(step)
        *_, (frame, line) = walk_tb(error.__traceback__)
        defect = step, type(error).__name__, f"{frame.f_code.co_filename}:{line}"
        with self._lock:
            self._failed[step] = Defect(step, error_text(error)[:MOST_OF_AN_ERROR])
            is_known = defect in self._known
            self._known.add(defect)
        if is_known:
            return
        log.error(
            "a step of the cycle failed, it goes on without; htas_step_failures_total counts, this is logged once",
            step=step.value,
            exc_info=error,
        )
