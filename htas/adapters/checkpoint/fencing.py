"""Effects on nodes only while this daemon leads. The API server's calls have the same fence of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from htas.adapters.checkpoint.documents import Json
from htas.adapters.checkpoint.methods import Checkpointing, Delivered, Dump, Method
from htas.model.migrations import MigrationRecord
from htas.ports import TransientError

_M = TypeVar("_M", bound=Method)


def fenced(method: Method, may_act: Callable[[], bool]) -> Method:
    """The same method, each step of which raises TransientError once `may_act` says no."""
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
