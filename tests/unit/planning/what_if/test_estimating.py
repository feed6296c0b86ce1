"""Estimates of what work costs on a choice of flavours: no purchase of these costs less."""

from __future__ import annotations

from typing import Any

import pytest

from htas.model.nodes import INSTANCE_TYPE_LABEL, Node
from htas.model.pods import Owner, Pod
from htas.model.policy import NodeGroup
from htas.model.snapshot import ClusterView
from htas.planning.what_if.adopting import adopt
from htas.planning.what_if.arranging import bought_anew
from htas.planning.what_if.estimating import Estimates
from htas.planning.what_if.lifting import holding, pinned
from tests.builders import NOW, make_node, make_pod, make_policy, running

CHOICE = frozenset(("m3.small", "m1.medium"))


def there(name: str, flavour: str, cpu: str, memory: str, **how: Any) -> Node:
    return make_node(name, cpu, memory, labels={INSTANCE_TYPE_LABEL: flavour}, **how)


def on(node: str, name: str, cpu: str, memory: str, **how: Any) -> Pod:
    return running(make_pod(name, cpu, memory, owner=Owner("ReplicaSet", name), **how), node)


SMALL = there("small", "m1.medium", "2", "8Gi")
LARGE = there("large", "m1.xlarge", "8", "32Gi")
GPU = there("large", "m1.xlarge", "8", "32Gi", extended={"nvidia.com/gpu": 1})


@pytest.mark.parametrize(
    ("large", "pod"),
    [
        pytest.param(LARGE, on("large", "huge", "6", "20Gi"), id="a pod on it is too large for the choice"),
        pytest.param(LARGE, on("large", "static", "1", "1Gi", is_mirror=True), id="a static pod is on it alone"),
        pytest.param(GPU, on("large", "huge", "6", "20Gi"), id="it has a device that no flavour has"),
    ],
)
def test_work_that_moves_to_a_node_which_stays_needs_no_machine(large: Node, pod: Pod) -> None:
    """The work of the small node was counted in full, and a cheaper purchase was not tried."""
    view = ClusterView(nodes=(large, SMALL), pods=(pod, on("small", "w", "1", "6Gi")))
    present = adopt(view, make_policy([NodeGroup("any")]), NOW)
    estimates = Estimates(present)
    found = bought_anew(present, pinned(present, holding(present)), CHOICE, estimates.too_large_for(CHOICE))
    assert (set(found.kept), found.bought) == ({"large"}, 0)
    assert estimates.least(CHOICE) <= found.nanos_per_hour
