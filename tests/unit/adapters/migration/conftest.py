"""The engine's pauses, cut to a tenth: what it waits for is here at once, since nothing lies between it and the cluster."""

from __future__ import annotations

import pytest

from htas.adapters.migration import engine, steps, switching

TENTH = ((steps, "PAUSE_S"), (steps, "REPLACED_S"), (switching, "SEEN_S"), (engine, "LOOK_S"))


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in TENTH:
        monkeypatch.setattr(module, name, getattr(module, name) / 10)
