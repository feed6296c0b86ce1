"""How a good operator sets the other autoscalers."""

from __future__ import annotations

import pytest

from htas.model.billing import Billing
from tools.lab.baselines.well_set import tuned


@pytest.mark.parametrize(
    ("billing", "unneeded_s"),
    [
        pytest.param(Billing(1, 60), 60.0, id="by the second: a minute"),
        pytest.param(Billing(60, 60), 60.0, id="by the minute: a minute"),
        pytest.param(Billing(600, 600), 300.0, id="by ten minutes: five"),
        pytest.param(Billing(3600, 3600), 1800.0, id="by the hour: half an hour"),
    ],
)
def test_unneeded_nodes_stay_for_half_of_what_is_paid_for(billing: Billing, unneeded_s: float) -> None:
    assert tuned(billing).unneeded_s == unneeded_s
