"""What no way was found for in this plan: whoever asks for as much need not be tried."""

from __future__ import annotations

from htas.planning.cluster.classes import Ints, PodClass


class HopelessClasses:
    """Classes there was no way for: nor is there for the next pod of them, nor for one that asks for more."""

    def __init__(self) -> None:
        self._known: dict[object, list[tuple[Ints, str]]] = {}

    def note(self, cls: PodClass, why: str) -> None:
        self._known.setdefault(self._kind(cls), []).append((cls.requests, why))

    def why(self, cls: PodClass) -> str | None:
        """Why there is no way for a class, as far as that is known."""
        known = self._known.get(self._kind(cls), ())
        return next((why for requests, why in known if (requests <= cls.requests).all()), None)

    @staticmethod
    def _kind(cls: PodClass) -> object:
        """Spread and affinity tell classes apart; without them what the node is asked for does."""
        return id(cls) if cls.is_dynamic else (cls.priority, cls.static_key)
