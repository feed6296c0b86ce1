"""Which methods are carried on whatever groups say, and how long a pod is given to end, once its twin has its place."""

from __future__ import annotations

from typing import Any

import pytest

from htas.daemon.wiring.migration import grace_s, set_up
from htas.model.migrations import Commands, ImageRegistry, MigrationSettings, SecureCopy
from htas.model.moves import MigrationMethod
from htas.model.policy import CleaningRules, NodeGroup
from tests.builders import make_policy, owned_node

POLICY = make_policy([NodeGroup("any", cleaning=CleaningRules(max_grace_s=60.0))])


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"terminationGracePeriodSeconds": 25}, 25, id="its own"),
        pytest.param({"terminationGracePeriodSeconds": 0}, 0, id="none at all"),
        pytest.param({"terminationGracePeriodSeconds": 3600}, 60, id="no more than its group allows"),
        pytest.param({}, 30, id="the usual one"),
        pytest.param({"terminationGracePeriodSeconds": 3600, "nodeName": "gone"}, 3600, id="of a node that is gone"),
    ],
)
def test_a_source_is_given_its_own_grace_within_its_groups(spec: dict[str, Any], expected: int) -> None:
    nodes = {"n": owned_node("n")}
    assert grace_s(POLICY, nodes.get, {"spec": {"nodeName": "n", **spec}}) == expected


@pytest.mark.parametrize(
    ("settings", "methods"),
    [
        pytest.param(MigrationSettings(), set(), id="nothing"),
        pytest.param(MigrationSettings(secure_copy=SecureCopy(identity_file="id")), {MigrationMethod.KUBELET_CHECKPOINT}, id="a key"),
        pytest.param(MigrationSettings(registry=ImageRegistry(agent_token_file="t")), {MigrationMethod.KUBELET_CHECKPOINT}, id="a token"),
        pytest.param(MigrationSettings(commands=Commands("c", "t", "r", "a")), {MigrationMethod.COMMAND}, id="commands"),
    ],
)  # fmt: skip
def test_a_method_with_its_keys_is_carried_on_whatever_groups_say(
    settings: MigrationSettings, methods: set[MigrationMethod]
) -> None:
    assert set_up(settings) == methods
