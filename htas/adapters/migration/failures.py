"""A step of a move that failed, with its kind."""

from __future__ import annotations

from htas.model.migrations import Failure
from htas.ports import HTASError


class StepFailedError(HTASError):
    """An attempt to move a pod failed; whether there is another depends on what is left of its attempts.

    `is_final`: another attempt would be of no use, since there is nothing left to move.
    """

    def __init__(self, reason: Failure, detail: str, *, is_final: bool = False) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
        self.is_final = is_final


_DUMP_ERRORS = (
    ("consider using --tcp-established", Failure.OPEN_CONNECTION),
    ("consider using --shell-job", Failure.CHECKPOINT_FAILED),
    ("file locks are hold by dumping tasks", Failure.FILE_LOCK),
    ("fsnotify", Failure.WATCHES_FILES),
    ("no space left on device", Failure.NO_SPACE),
)
"""Words of CRIU's log, and what they mean."""

LONGEST_DETAIL = 300


def dump_failure(words: str) -> StepFailedError:
    """What CRIU's complaints, or those of whoever called it, say of why a process could not be dumped."""
    spoken = words.lower()
    for sign, reason in _DUMP_ERRORS:
        if sign in spoken:
            return StepFailedError(reason, shortened(words))
    return StepFailedError(Failure.CHECKPOINT_FAILED, shortened(words))


_DAMAGE = ("content digest", "unexpected commit digest", "digest mismatch")
"""Words of containerd for an image that is not what its manifest says."""


def copy_failure(words: str, otherwise: Failure = Failure.TRANSFER_FAILED) -> StepFailedError:
    """What the ends of a copy say of why it failed."""
    spoken = words.lower()
    if "no space left on device" in spoken:
        return StepFailedError(Failure.NO_SPACE, shortened(words))
    if any(sign in spoken for sign in _DAMAGE):
        return StepFailedError(Failure.DIGEST_WRONG, shortened(words))
    return StepFailedError(otherwise, shortened(words))


def shortened(words: str) -> str:
    """The end of a long complaint, where tools put the reason."""
    told = " ".join(words.split())
    return told if len(told) <= LONGEST_DETAIL else f"… {told[-LONGEST_DETAIL:]}"
