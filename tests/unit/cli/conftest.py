"""Commands are told what they are told, whatever the developer's own environment names; prices for small clusters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from htas.model.policy import Policy
from htas.model.snapshot import ClusterView
from htas.planning.what_if.answer import WhatIfAnswer, what_if
from tests.unit.cli.clusters import TWO_FLAVOURS

ANSWERS: dict[tuple[bytes, float, bool], WhatIfAnswer] = {}


@pytest.fixture(autouse=True)
def _without_a_configuration_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HTAS_CONFIG", raising=False)


@pytest.fixture(autouse=True)
def _what_was_asked_is_not_worked_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second or two for each question of `htas simulate`, and many tests look at one answer in several forms.

    To the letter the same, the order of objects included: who asks in another order has it worked out.
    """

    def remembered(
        view: ClusterView, policy: Policy, now: float, *, as_annotated: bool = False, **telling: Any
    ) -> WhatIfAnswer:
        key = msgspec.json.encode((view, policy)), now, as_annotated
        if key not in ANSWERS:
            ANSWERS[key] = what_if(view, policy, now, as_annotated=as_annotated, **telling)
        return ANSWERS[key]

    monkeypatch.setattr("htas.cli.simulate.what_if", remembered)


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "prices.yaml"
    path.write_text(TWO_FLAVOURS)
    return path
