"""What a method of moving pods has to do while this daemon leads, and how its steps fail. The engine does the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar, runtime_checkable

import msgspec

from htas.adapters.migration.documents import Json
from htas.model.migrations import Failure, MigrationRecord
from htas.model.moves import MigrationMethod
from htas.ports import HTASError, TransientError


class Dump(msgspec.Struct, frozen=True):
    """Where a checkpoint lies on the source's node; several paths are separated by blanks."""

    archive: str
    dumped_at: float


class Delivered(msgspec.Struct, frozen=True):
    """A checkpoint at its target: the images to restore from, in the order of the containers, and what they weigh."""

    images: tuple[str, ...]
    digests: tuple[str, ...] = ()
    size: int = 0


class Method(Protocol):
    """The steps that differ. Each raises StepFailedError, or what the API server answers; each may be repeated.

    One that is no Checkpointing starts a fresh copy: its moves go from Prepared to Restored.
    """

    name: MigrationMethod

    def restore(self, record: MigrationRecord, source: Json, within_s: float) -> str:
        """Have the twin made, unless it is there; returns its name."""
        ...

    def clean(self, record: MigrationRecord, source: Json | None, *, keep_image: bool) -> None:
        """Remove what the present attempt has left on both nodes; `keep_image`: the twin lives of it."""
        ...

    def clean_again(self, record: MigrationRecord, *, keep_image: bool) -> None:
        """Remove what `clean` could not, now that the source's node can be reached. The move is over."""
        ...

    def forget(self, node: str, move: str) -> None:
        """Remove the images of a move from a node where its twin runs no more."""
        ...

    def sweep(self, node: str, keep: Sequence[str]) -> None:
        """Remove what moves have left on a node, but for those whose ids are given."""
        ...


@runtime_checkable
class Checkpointing(Method, Protocol):
    """A method by which twins go on from a checkpoint."""

    def checkpoint(self, record: MigrationRecord, source: Json, within_s: float) -> Dump:
        """Write the pod's processes down on its node; they run on."""
        ...

    def deliver(self, record: MigrationRecord, source: Json, within_s: float) -> Delivered:
        """Bring the checkpoint to where the target can restore it."""
        ...

    def discard(self, record: MigrationRecord) -> None:
        """Remove what the twin was restored from, unless it is needed later: it runs."""
        ...


class LeavesNothing:
    """What is removed after a method whose moves make nothing but the twin, which the engine removes itself."""

    def clean(self, record: MigrationRecord, source: Json | None, *, keep_image: bool) -> None:
        """Nothing: there are neither archives nor images."""

    def clean_again(self, record: MigrationRecord, *, keep_image: bool) -> None:
        """Nothing, as `clean`."""

    def forget(self, node: str, move: str) -> None:
        """Nothing, as `clean`."""

    def sweep(self, node: str, keep: Sequence[str]) -> None:
        """Nothing, as `clean`."""


_M = TypeVar("_M", bound=Method)


def fenced(method: Method, may_act: Callable[[], bool]) -> Method:
    """The same method, each step of which raises TransientError once `may_act` says no.

    The API server's calls have the same fence of their own.
    """
    return FencedCheckpointing(method, may_act) if isinstance(method, Checkpointing) else FencedMethod(method, may_act)


class FencedMethod(Generic[_M]):
    """Implements Method by another."""

    def __init__(self, method: _M, may_act: Callable[[], bool]) -> None:
        self.name = method.name
        self._fenced = method
        self._may_act = may_act

    def restore(self, record: MigrationRecord, source: Json, within_s: float) -> str:
        return self._method("restore").restore(record, source, within_s)

    def clean(self, record: MigrationRecord, source: Json | None, *, keep_image: bool) -> None:
        self._method("clean").clean(record, source, keep_image=keep_image)

    def clean_again(self, record: MigrationRecord, *, keep_image: bool) -> None:
        self._method("clean").clean_again(record, keep_image=keep_image)

    def forget(self, node: str, move: str) -> None:
        self._method("forget").forget(node, move)

    def sweep(self, node: str, keep: Sequence[str]) -> None:
        self._method("sweep").sweep(node, keep)

    def _method(self, step: str) -> _M:
        if not self._may_act():
            raise TransientError(f"{step}: not done, this daemon leads no more")
        return self._fenced


class FencedCheckpointing(FencedMethod[Checkpointing]):
    """Implements Checkpointing by another."""

    def checkpoint(self, record: MigrationRecord, source: Json, within_s: float) -> Dump:
        return self._method("checkpoint").checkpoint(record, source, within_s)

    def deliver(self, record: MigrationRecord, source: Json, within_s: float) -> Delivered:
        return self._method("deliver").deliver(record, source, within_s)

    def discard(self, record: MigrationRecord) -> None:
        self._method("discard").discard(record)


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
