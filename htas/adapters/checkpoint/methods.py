"""What a method of moving pods has to do; the engine does the rest, the same for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import msgspec

from htas.adapters.checkpoint.documents import Json
from htas.model.migrations import MigrationRecord
from htas.model.policy import MigrationMethod


class Dump(msgspec.Struct, frozen=True):
    """Where a checkpoint lies on the source's node; several paths are separated by blanks."""

    archive: str
    dumped_at: float


class Delivered(msgspec.Struct, frozen=True):
    """A checkpoint at its target: the images to restore from, in the order of the containers, and what they weigh.

    `detour`: why it came another way than it was to.
    """

    images: tuple[str, ...]
    digests: tuple[str, ...] = ()
    size: int = 0
    detour: str = ""


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
