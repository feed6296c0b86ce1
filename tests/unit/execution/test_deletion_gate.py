"""The gate before a delete: how long a node has been silent, to a daemon that runs and to one that has just started."""

from __future__ import annotations

import msgspec
import pytest

from htas.execution.deletion_gate import DeletionGate
from htas.model.claims import ClaimState, NodeClaim
from htas.model.nodes import Node
from htas.model.pods import Phase
from htas.model.policy import Timeouts
from tests.builders import make_node, make_pod, make_policy
from tests.stories.play import Story

READY, SILENT = make_node("c"), make_node("c", is_ready=False)
CLAIM = NodeClaim("c", "any", "m", ClaimState.FAILED, 0.0, 0.0, instance="vm", node="c")


def gate() -> tuple[DeletionGate, Story]:
    story = Story(make_policy())
    return DeletionGate(story.ports, Timeouts(ready_s=900.0)), story


def holds(gate: DeletionGate, story: Story, node: Node) -> bool:
    pods = (make_pod("work", node="c", phase=Phase.RUNNING),)
    view = msgspec.structs.replace(story.world.cluster.observe(), nodes=(node,), pods=pods)
    return gate.runs_on(view, "vm", "c", "c") is not None


@pytest.mark.parametrize(
    ("state", "age_s", "is_held"),
    [
        pytest.param(ClaimState.FAILED, 900.0, False, id="failed for long"),
        pytest.param(ClaimState.FAILED, 899.0, True, id="failed just now"),
        pytest.param(ClaimState.REGISTERED, 900.0, False, id="waited for"),
        pytest.param(ClaimState.READY, 900.0, True, id="Ready as far as the journal knows"),
    ],
)
def test_a_daemon_that_starts_knows_by_the_journal_how_long_a_node_has_been_silent(
    state: ClaimState, age_s: float, is_held: bool
) -> None:
    the_gate, story = gate()
    claim = msgspec.structs.replace(CLAIM, state=state, since=story.world.clock.now() - age_s)
    the_gate.look([SILENT], [claim], [])
    assert holds(the_gate, story, SILENT) is is_held


def test_a_node_that_was_seen_ready_is_silent_only_since_then() -> None:
    the_gate, story = gate()
    claim = msgspec.structs.replace(CLAIM, since=story.world.clock.now() - 5000)
    the_gate.look([READY], [claim], [])
    the_gate.look([SILENT], [claim], [])
    assert holds(the_gate, story, SILENT)
    story.world.advance_to(story.world.clock.now() + 900)
    the_gate.look([SILENT], [claim], [])
    assert not holds(the_gate, story, SILENT)
