"""A what-if releases no node of which it is not known what runs there."""

from __future__ import annotations

import msgspec

from htas.model.reasons import Kept
from htas.planning.what_if.adopting import adopt
from tests.builders import NOW, make_policy, make_snapshot, owned_node


def test_a_node_with_a_pod_that_is_not_understood_stays() -> None:
    view = make_snapshot([owned_node(name, flavour="m3.small") for name in ("n1", "n2")]).cluster
    unread = msgspec.structs.replace(view, unread={"n1": "default/odd"})
    policy = make_policy()
    fixed = adopt(unread, policy, NOW).fixed
    assert {name: stays.rule for name, stays in fixed.items()} == {"n1": Kept.UNREADABLE_POD}
    assert not adopt(view, policy, NOW).fixed
