"""What an attack is, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """What happened, and what of it must not: without faults the attack was withstood."""

    happened: str
    faults: tuple[str, ...] = ()

    @property
    def is_withstood(self) -> bool:
        return not self.faults


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack. One that `is_long` takes more than 3 s, or a process of its own."""

    name: str
    run: Callable[[], Verdict]
    is_long: bool = False

    def carried_out(self) -> Verdict:
        """The attack's verdict; whatever it makes HTAS raise is a fault of HTAS's."""
        try:
            return self.run()
        except Exception as error:
            return Verdict("stopped", (f"{type(error).__name__}: {error}"[:300],))


def verdict(happened: str, faults: Mapping[str, bool]) -> Verdict:
    """A verdict whose faults are the sentences that are true."""
    return Verdict(happened, tuple(sentence for sentence, is_true in faults.items() if is_true))
