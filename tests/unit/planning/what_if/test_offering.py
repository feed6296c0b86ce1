"""Work bought anew is no dearer than on machines of one flavour alone, whatever holds the rest."""

from __future__ import annotations

import pytest

from htas.planning.what_if.adopting import adopt
from htas.planning.what_if.answer import what_if
from htas.planning.what_if.arranging import bought_anew
from htas.planning.what_if.lifting import holding, pinned
from tools.corpus.clusters import NOW, grown


@pytest.mark.parametrize("seed", [3, 52])
def test_what_is_bought_anew_is_no_dearer_than_one_flavour_alone(seed: int) -> None:
    """Of cluster 52 the greedy purchase of both flavours comes to 0.4368, of the small one alone to 0.3484."""
    snapshot, policy = grown(seed)
    present = adopt(snapshot.cluster, policy, NOW)
    pins = pinned(present, holding(present))
    alone = [bought_anew(present, pins, (flavour.name,)).nanos_per_hour for flavour in policy.catalogue.flavours]
    answer = what_if(snapshot.cluster, policy, NOW)
    assert answer.anew.nanos_per_hour <= min(alone)
    if seed == 52:
        assert (answer.anew.nanos_per_hour, answer.few) == (348_400_000, ("small",))
