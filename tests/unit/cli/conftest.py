"""Commands are told what they are told, whatever the developer's own environment names; prices for small clusters."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.clusters import TWO_FLAVOURS


@pytest.fixture(autouse=True)
def _without_a_configuration_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HTAS_CONFIG", raising=False)


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "prices.yaml"
    path.write_text(TWO_FLAVOURS)
    return path
