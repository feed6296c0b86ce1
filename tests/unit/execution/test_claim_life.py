import msgspec
import pytest

from htas.execution.backoff import Backoffs
from htas.execution.claim_life import ClaimStep, Lacks, Then, in_state, next_step, not_ahead
from htas.execution.expectations import PATIENCE_S, Expectations
from htas.model.claims import TRANSITIONS, ClaimState, Instance, InstanceState, NodeClaim
from htas.model.nodes import Node
from htas.model.policy import Timeouts
from htas.ports import TransientError
from tests.builders import NOW, make_node, make_pod

T = Timeouts()


def claim(state: ClaimState, age_s: float = 10.0, missing_s: float = 61.0) -> NodeClaim:
    return NodeClaim("c", "g", "f", state, NOW - age_s, NOW - age_s, instance="vm", missing_since=NOW - missing_s)


def vm(state: InstanceState = InstanceState.ACTIVE, fault: str = "") -> Instance:
    return Instance("vm", "c", "f", state, NOW - 10, cluster="test", claim="c", fault=fault)


READY, NOT_READY = make_node("c"), make_node("c", is_ready=False)
S, I = ClaimState, InstanceState  # noqa: E741 - the table reads best with the shortest names


@pytest.mark.parametrize(
    ("was", "age_s", "machine", "node", "state", "then"),
    [
        pytest.param(S.WANTED, 10, None, None, S.WANTED, Then.ASK_AGAIN, id="the answer was lost: ask again"),
        pytest.param(S.WANTED, 301, None, None, S.FAILED, Then.CLEAN_UP, id="never an answer"),
        pytest.param(S.WANTED, 10, vm(I.BUILDING), None, S.REQUESTED, Then.NOTHING, id="the first create is found"),
        pytest.param(S.REQUESTED, 10, vm(I.BUILDING), None, S.REQUESTED, Then.NOTHING, id="it builds"),
        pytest.param(S.REQUESTED, 301, vm(I.BUILDING), None, S.FAILED, Then.CLEAN_UP, id="it builds for too long"),
        pytest.param(S.REQUESTED, 10, vm(), None, S.ACTIVE, Then.NOTHING, id="it runs"),
        pytest.param(S.REQUESTED, 10, vm(), READY, S.READY, Then.NOTHING, id="states may be slept through"),
        pytest.param(S.REQUESTED, 10, vm(I.ERROR, "no disk"), None, S.FAILED, Then.CLEAN_UP, id="the cloud failed"),
        pytest.param(S.REQUESTED, 10, None, None, S.FAILED, Then.CLEAN_UP, id="it vanished while building"),
        pytest.param(S.ACTIVE, 10, vm(), NOT_READY, S.REGISTERED, Then.NOTHING, id="its node registers"),
        pytest.param(S.ACTIVE, 901, vm(), None, S.FAILED, Then.CLEAN_UP, id="its node never registers"),
        pytest.param(S.REGISTERED, 901, vm(), NOT_READY, S.FAILED, Then.CLEAN_UP, id="its node is never Ready"),
        pytest.param(S.REGISTERED, 10, vm(), READY, S.READY, Then.NOTHING, id="Ready"),
        pytest.param(S.READY, 10, vm(), READY, S.READY, Then.NOTHING, id="all is well"),
        pytest.param(S.READY, 10, vm(), NOT_READY, S.REGISTERED, Then.NOTHING, id="it was Ready and is not"),
        pytest.param(S.READY, 10, vm(), None, S.REGISTERED, Then.NOTHING, id="its node is gone: given time"),
        pytest.param(S.READY, 10, None, READY, S.READY, Then.NOTHING, id="not listed, but its node is Ready"),
        pytest.param(S.READY, 10, None, NOT_READY, S.FAILED, Then.CLEAN_UP, id="its machine broke down"),
        pytest.param(S.DRAINING, 10, vm(), READY, S.DRAINING, Then.NOTHING, id="it drains"),
        pytest.param(S.DRAINING, 10, None, READY, S.DRAINING, Then.NOTHING, id="it drains, not listed but Ready"),
        pytest.param(S.DRAINING, 10, None, NOT_READY, S.RELEASED, Then.CLEAN_UP, id="so is its node"),
        pytest.param(S.DRAINING, 10, vm(I.DELETING), READY, S.DRAINING, Then.NOTHING, id="it is being deleted"),
        pytest.param(S.FAILED, 10, vm(), None, S.FAILED, Then.CLEAN_UP, id="a failed one is removed"),
        pytest.param(S.FAILED, 10, None, NOT_READY, S.FAILED, Then.CLEAN_UP, id="its node too"),
        pytest.param(S.FAILED, 10, vm(), READY, S.FAILED, Then.CLEAN_UP, id="its node is Ready and runs nothing"),
        pytest.param(S.READY, 10, vm(I.ERROR), READY, S.READY, Then.NOTHING, id="in error, but it works"),
        pytest.param(
            S.READY, 10, vm(I.ERROR), NOT_READY, S.REGISTERED, Then.NOTHING, id="in error, silent: given time"
        ),
        pytest.param(S.READY, 10, vm(I.ERROR), None, S.FAILED, Then.CLEAN_UP, id="in error, and its node is gone"),
        pytest.param(S.REGISTERED, 10, vm(I.ERROR), NOT_READY, S.FAILED, Then.CLEAN_UP, id="in error, never Ready"),
        pytest.param(S.FAILED, 10, None, None, S.RELEASED, Then.NOTHING, id="nothing of it is left"),
    ],
)
def test_next_step(
    was: ClaimState, age_s: float, machine: Instance | None, node: Node | None, state: ClaimState, then: Then
) -> None:
    step = next_step(claim(was, age_s), machine, node, NOW, T)
    assert (step.state, step.then) == (state, then)
    assert in_state(claim(was, age_s), step, NOW).state is state


GPU = Lacks(("nvidia.com/gpu",), may_fail=True)
IN_USE = Lacks(("nvidia.com/gpu",))


@pytest.mark.parametrize(
    ("was", "ready_s", "node", "lacks", "state", "message"),
    [
        pytest.param(S.ACTIVE, None, READY, GPU, S.REGISTERED, "", id="Ready, and its GPU is not there"),
        pytest.param(S.REGISTERED, 899, READY, GPU, S.REGISTERED, "", id="it is given 15 minutes"),
        pytest.param(S.REGISTERED, 899, READY, Lacks(), S.READY, "", id="its GPU has come"),
        pytest.param(
            S.REGISTERED, 900, READY, GPU, S.FAILED, "not initialized within 900 s, without nvidia.com/gpu", id="never"
        ),
        pytest.param(
            S.REGISTERED, 900, READY, IN_USE, S.READY, "taken as it is after 900 s, without nvidia.com/gpu", id="in use"
        ),
        pytest.param(S.REGISTERED, 600, NOT_READY, GPU, S.REGISTERED, "", id="it flaps: not Ready for the moment"),
        pytest.param(
            S.REGISTERED,
            900,
            NOT_READY,
            GPU,
            S.FAILED,
            "not initialized within 900 s, without Ready, nvidia.com/gpu",
            id="it flaps, and has no time left",
        ),
    ],
)
def test_a_ready_node_is_given_time_to_be_initialized(
    was: ClaimState, ready_s: float | None, node: Node, lacks: Lacks, state: ClaimState, message: str
) -> None:
    before = msgspec.structs.replace(claim(was), node_ready_at=NOW - ready_s if ready_s is not None else None)
    step = next_step(before, vm(), node, NOW, T, lacks)
    assert (step.state, step.message) == (state, message)


def test_a_node_that_was_initialized_once_is_waited_for_as_one_that_is_not_ready() -> None:
    before = msgspec.structs.replace(claim(S.REGISTERED), ready_at=NOW - 5000, node_ready_at=NOW - 5100)
    assert next_step(before, vm(), NOT_READY, NOW, T).state is S.REGISTERED
    assert next_step(before, vm(), READY, NOW, T).state is S.READY


def test_a_machine_in_error_fails_with_its_fault_once_its_node_was_not_ready_for_long() -> None:
    before = msgspec.structs.replace(claim(S.REGISTERED, 901), ready_at=NOW - 5000)
    step = next_step(before, vm(I.ERROR, "resize failed"), NOT_READY, NOW, T)
    assert (step.state, step.message) == (S.FAILED, "the node was not Ready within 900 s: resize failed")


@pytest.mark.parametrize("machine", [pytest.param(vm(), id="listed"), pytest.param(None, id="not listed")])
@pytest.mark.parametrize(
    ("node", "state"), [pytest.param(READY, S.READY, id="Ready"), pytest.param(NOT_READY, S.FAILED, id="silent")]
)
def test_a_failed_machine_whose_ready_node_runs_pods_is_in_use_again(
    machine: Instance | None, node: Node, state: ClaimState
) -> None:
    before = claim(S.FAILED)
    step = next_step(before, machine, node, NOW, T, held="pod a/b runs on its node n")
    assert in_state(before, step, NOW).state is state
    assert (step.then is Then.NOTHING) == (state is S.READY)


def test_every_state_has_its_edges_and_the_last_has_none() -> None:
    assert set(TRANSITIONS) == set(ClaimState)
    assert TRANSITIONS[ClaimState.RELEASED] == frozenset()
    reachable = {ClaimState.WANTED}
    for _ in ClaimState:
        reachable |= {after for state in reachable for after in TRANSITIONS[state]}
    assert reachable == set(ClaimState)


def test_a_new_state_is_dated_an_old_one_is_not() -> None:
    before = claim(ClaimState.ACTIVE)
    assert in_state(before, ClaimStep(ClaimState.ACTIVE), NOW) is before
    assert in_state(before, ClaimStep(ClaimState.READY), NOW).since == NOW


def test_backing_off_doubles_after_each_wait_and_ends_with_success() -> None:
    backoffs = Backoffs(T)
    backoffs.failed("f", None, "no host", 0)
    assert [b.until for b in backoffs.current(1)] == [20]
    backoffs.failed("f", None, "again within the wait", 10)
    assert [b.until for b in backoffs.current(11)] == [20]
    waits = ((21, 61), (62, 142), (143, 303), (304, 624), (625, 1265), (1266, 2546), (2547, 4347), (4348, 6148))
    for at, until in waits:
        backoffs.failed("f", None, "no host", at)
        assert [b.until for b in backoffs.current(at)] == [until]
    backoffs.worked("f", None)
    assert backoffs.current(4400) == ()


def test_expectations_hold_until_seen_or_too_old() -> None:
    expectations = Expectations()
    waiting = [make_pod("a"), make_pod("b"), make_pod("c")]
    for pod in waiting:
        expectations.expect_bind(pod.key, "n", NOW)
    seen = [msgspec.structs.replace(waiting[0], node="n"), waiting[1]]
    expectations.settle(seen, NOW + 1)
    assert expectations.binds == {"default/b": "n"}
    expectations.settle(seen, NOW + PATIENCE_S)
    assert expectations.binds == {}


@pytest.mark.parametrize("state", [S.REQUESTED, S.ACTIVE, S.REGISTERED, S.READY, S.DRAINING])
def test_a_list_without_the_machine_proves_little_at_first(state: ClaimState) -> None:
    for missing in (claim(state, missing_s=59.0), msgspec.structs.replace(claim(state), missing_since=None)):
        assert next_step(missing, None, READY, NOW, T) == ClaimStep(state)


@pytest.mark.parametrize(
    ("age_s", "then"),
    [pytest.param(299.0, Then.NOTHING, id="given time"), pytest.param(300.0, Then.CLEAN_UP, id="asked for again")],
)
def test_a_machine_that_does_not_go_is_asked_for_its_end_again(age_s: float, then: Then) -> None:
    leaving = msgspec.structs.replace(claim(S.DRAINING), leaving_since=NOW - age_s)
    step = next_step(leaving, vm(I.DELETING), None, NOW, T)
    assert (step.state, step.then) == (S.DRAINING, then)


def test_a_machine_that_was_seen_leaving_and_is_not_listed_is_released_whatever_its_node_says() -> None:
    leaving = msgspec.structs.replace(claim(S.DRAINING, missing_s=0.0), leaving_since=NOW - 5)
    assert next_step(leaving, None, READY, NOW, T).state is S.RELEASED


def test_a_failure_of_every_flavour_ends_when_a_machine_is_well() -> None:
    backoffs = Backoffs(T)
    backoffs.failed(None, None, "no image", NOW)
    backoffs.failed("other", None, "no host", NOW)
    assert {each.flavour for each in backoffs.current(NOW + 1)} == {None, "other"}
    backoffs.worked("small", None)
    assert {each.flavour for each in backoffs.current(NOW + 1)} == {"other"}


def test_a_wait_that_a_clock_ahead_began_is_over_once_the_clock_is_right() -> None:
    backoffs = Backoffs(T)
    backoffs.failed("small", None, "no host", NOW + 3 * 86_400)
    assert backoffs.current(NOW + 3 * 86_400 + 1)
    assert not backoffs.current(NOW)
    backoffs.failed("small", None, "no host", NOW)
    assert backoffs.current(NOW + 1)


@pytest.mark.parametrize(
    "ahead_s", [pytest.param(3 * 86_400.0, id="three days"), pytest.param(0.5, id="half a second")]
)
def test_instants_that_a_clock_ahead_noted_count_from_now(ahead_s: float) -> None:
    later = NOW + ahead_s
    instants = ("since", "missing_since", "leaving_since", "ready_at", "node_ready_at")
    noted = msgspec.structs.replace(claim(S.ACTIVE), **dict.fromkeys(instants, later))
    assert not_ahead(noted, NOW) == msgspec.structs.replace(claim(S.ACTIVE), **dict.fromkeys(instants, NOW))


def test_instants_of_the_past_stay() -> None:
    known = claim(S.ACTIVE)
    assert not_ahead(known, NOW) is known


def test_half_a_surrogate_pair_in_anothers_words_can_be_journalled() -> None:
    assert str(TransientError("no \ud800 host")).encode() == b"no \\ud800 host"
