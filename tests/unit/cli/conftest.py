"""Commands are told what they are told, whatever the developer's own environment names."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _without_a_configuration_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HTAS_CONFIG", raising=False)
