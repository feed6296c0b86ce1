"""What machines join by: ended once they have joined or never will, once each, and never while they may still need it."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from htas.execution.calls import DirectCalls
from htas.execution.cloud_calls import CloudCalls
from htas.execution.joined import Joined
from htas.model.claims import ClaimState, NodeClaim
from htas.model.outcomes import Action, OutcomeStatus
from htas.ports import TransientError
from tests.builders import owned_node, ready_claim
from tests.stories.play import Story


class Tokens:
    """JoinPort whose tokens end ten minutes after the claim was made."""

    def __init__(self) -> None:
        self.revoked: list[str] = []
        self.is_away = False

    def ends_at(self, claim: NodeClaim) -> float:
        return claim.created_at + 600

    def revoke(self, claim: NodeClaim) -> None:
        if self.is_away:
            raise TransientError("no answer")
        self.revoked.append(claim.id)


class Setting:
    def __init__(self) -> None:
        self.story, self.tokens = Story(), Tokens()
        self.clock = self.story.world.clock
        self.cloud = CloudCalls(DirectCalls(), self.clock)
        self.joined = Joined(replace(self.story.ports, join=self.tokens), self.cloud)

    def claim(self, state: ClaimState = ClaimState.READY, age_s: float = 60.0, name: str = "n") -> NodeClaim:
        at = self.clock.now() - age_s
        return msgspec.structs.replace(ready_claim(owned_node(name)), state=state, created_at=at, since=at)


@pytest.fixture
def setting() -> Setting:
    return Setting()


@pytest.mark.parametrize(
    ("state", "is_revoked"),
    [
        (ClaimState.WANTED, False),
        (ClaimState.REQUESTED, False),
        (ClaimState.ACTIVE, False),
        (ClaimState.REGISTERED, True),
        (ClaimState.READY, True),
        (ClaimState.DRAINING, True),
        (ClaimState.FAILED, True),
    ],
    ids=lambda value: value.value if isinstance(value, ClaimState) else None,
)
def test_a_token_ends_with_the_registration_and_with_the_end_of_hope(
    setting: Setting, state: ClaimState, is_revoked: bool
) -> None:
    setting.joined.revoke([setting.claim(state)], frozenset())
    assert setting.tokens.revoked == (["n"] if is_revoked else [])


def test_it_is_ended_once(setting: Setting) -> None:
    for _ in range(3):
        setting.joined.revoke([setting.claim()], frozenset())
    assert setting.tokens.revoked == ["n"]
    assert [(each.action, each.status) for each in setting.cloud.answers()] == [
        (Action.REVOKE_TOKEN, OutcomeStatus.DONE)
    ]


def test_what_has_ended_by_itself_costs_no_call(setting: Setting) -> None:
    setting.joined.revoke([setting.claim(age_s=600.0, name="old"), setting.claim(age_s=599.0, name="new")], frozenset())
    assert setting.tokens.revoked == ["new"]


@pytest.mark.parametrize("subject", ["n", "n/token"], ids=["the machine", "its token"])
def test_nothing_is_ended_while_the_cloud_is_asked_about(setting: Setting, subject: str) -> None:
    setting.joined.revoke([setting.claim()], frozenset({subject}))
    assert setting.tokens.revoked == []


def test_what_could_not_be_ended_is_ended_later(setting: Setting) -> None:
    setting.tokens.is_away = True
    setting.joined.revoke([setting.claim()], frozenset())
    (failed,) = setting.cloud.answers()
    assert (failed.status, failed.message) == (OutcomeStatus.FAILED, "tried again soon: no answer")
    setting.tokens.is_away = False
    setting.story.world.advance_to(setting.clock.now() + 1)
    setting.joined.revoke([setting.claim()], frozenset())
    assert setting.tokens.revoked == ["n"]


def test_without_tokens_there_is_nothing_to_end() -> None:
    story = Story()
    cloud = CloudCalls(DirectCalls(), story.world.clock)
    Joined(story.ports, cloud).revoke([ready_claim(owned_node("n"))], frozenset())
    assert cloud.answers() == []


def test_a_token_is_not_revoked_again_while_and_after_the_cloud_is_asked_about_its_machine(setting: Setting) -> None:
    claim = setting.claim(ClaimState.DRAINING)
    for under_way in (frozenset[str](), frozenset({claim.id}), frozenset[str]()):
        setting.joined.revoke([claim], under_way)
    assert setting.tokens.revoked == ["n"]
