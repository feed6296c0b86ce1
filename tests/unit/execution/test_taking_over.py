"""Beginning to lead after another daemon: what was told to go is not taken back."""

from __future__ import annotations

import msgspec
import pytest

from htas.execution.taking_over import take_over
from htas.model.claims import ClaimState
from htas.model.disruptions import Drain, drains_of
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
    story.store.put_disruption(Drain("n1", "n1", "Empty", NOW))
    take_over(story.ports, story.daemon._machines)
    assert [known.state for known in story.store.claims()] == [state]
    assert [drain.node for drain in drains_of(story.store.disruptions())] == drains


def test_one_that_goes_does_not_keep_the_others_from_being_opened_again() -> None:
    story = Story(make_policy())
    for name, leaving_since in (("n1", NOW), ("n2", None)):
        claim = ready_claim(owned_node(name))
        story.store.put_claim(msgspec.structs.replace(claim, state=ClaimState.DRAINING, leaving_since=leaving_since))
        story.store.put_disruption(Drain(name, name, "Empty", NOW))
    take_over(story.ports, story.daemon._machines)
    assert {claim.id: claim.state for claim in story.store.claims()} == {
        "n1": ClaimState.DRAINING,
        "n2": ClaimState.READY,
    }
    assert [drain.node for drain in drains_of(story.store.disruptions())] == ["n1"]
