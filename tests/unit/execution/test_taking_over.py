"""Beginning to lead after another daemon: what was told to go is not taken back."""

from __future__ import annotations

import msgspec
import pytest

from htas.execution.taking_over import take_over
from htas.model.claims import ClaimState
from htas.model.snapshot import Drain
from tests.builders import NOW, make_policy, owned_node, ready_claim
from tests.stories.play import Story


@pytest.mark.parametrize(
    ("leaving_since", "state", "drains"),
    [
        pytest.param(None, ClaimState.READY, [], id="it still serves: open to work again"),
        pytest.param(NOW, ClaimState.DRAINING, ["n1"], id="the cloud was told to delete its machine"),
    ],
)
def test_a_drain_is_forgotten_unless_its_machine_goes(
    leaving_since: float | None, state: ClaimState, drains: list[str]
) -> None:
    story = Story(make_policy())
    claim = msgspec.structs.replace(
        ready_claim(owned_node("n1")), state=ClaimState.DRAINING, leaving_since=leaving_since
    )
    story.store.put_claim(claim)
    story.store.put_drain(Drain("n1", "n1", "Empty", NOW))
    take_over(story.ports, story.daemon._machines)
    assert [known.state for known in story.store.claims()] == [state]
    assert [drain.node for drain in story.store.drains()] == drains
