"""How often machines are launched for the same pods, and what is remembered of launches."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.claims import ClaimState, NodeClaim
from htas.model.constraints import Constraints, Toleration
from htas.model.launches import FlavourPause, Launches, OpenLaunch, UnusedLaunches
from htas.model.plan import Plan
from htas.model.pods import Owner, Pod
from htas.model.policy import Policy
from htas.model.reasons import Unplaced
from htas.model.resources import DefaultRequests
from htas.model.snapshot import ClusterSnapshot, ClusterView, Ended, Memory
from htas.planning.cluster.owners import Owners
from htas.planning.planner import plan
from tests.builders import NOW, constrained, make_flavour, make_pod, make_policy, owned_node, running

CHEAP, DEAR = make_flavour("cheap", "4", "8Gi", "0.10"), make_flavour("dear", "4", "8Gi", "0.20")
GIB = 2**30
NO_LAUNCHES = Launches()
POLICY = make_policy(flavours=[CHEAP, DEAR])


def web(name: str = "web-1", **overrides: Any) -> Pod:
    return make_pod(name, "3", "4Gi", **{"owner": Owner("ReplicaSet", "web", "web-uid"), **overrides})


def mark(pod: Pod, policy: Policy = POLICY) -> str:
    return Owners(policy).of(pod)


def planned(*pods: Pod, launches: Launches = NO_LAUNCHES, policy: Policy = POLICY, **snapshot: Any) -> Plan:
    view = ClusterView(nodes=snapshot.pop("nodes", ()), pods=pods)
    return plan(ClusterSnapshot(NOW, view, memory=Memory(launches=launches), **snapshot), policy, NOW)


def claim(state: ClaimState, **fields: Any) -> NodeClaim:
    return NodeClaim("c", "any", "cheap", state, NOW - 100, NOW - 100, instance="vm", **fields)


def unused(*ages_s: float, flavours: dict[str, FlavourPause] | None = None) -> UnusedLaunches:
    return UnusedLaunches(tuple(NOW - age for age in ages_s), flavours or {}, "cheap: it vanished", NOW - 60)


# The delay that a pod asks for.


@pytest.mark.parametrize(("age_s", "launched"), [(299.0, False), (300.0, True)])
def test_no_machine_is_launched_for_a_pod_younger_than_its_delay(age_s: float, launched: bool) -> None:
    made = planned(web(created_at=NOW - age_s, launch_delay_s=300.0))
    assert bool(made.launch) == launched
    assert [item.reason for item in made.unplaced] == ([] if launched else [Unplaced.SCALE_UP_DELAYED])


def test_a_delayed_pod_is_placed_where_there_is_room() -> None:
    made = planned(web(created_at=NOW, launch_delay_s=300.0), nodes=(owned_node("n", flavour="cheap"),))
    assert [(bind.pod, bind.node) for bind in made.bind] == [("default/web-1", "n")]


# What became of launches.


def test_a_launch_is_remembered_by_owner_and_pod() -> None:
    made = planned(web())
    [launch] = made.launch
    assert made.memory.launches.open == {launch.claim: OpenLaunch(NOW, "cheap", {mark(web()): ("web-1",)})}
    assert made.memory.launches.owners_of(launch.claim) == (mark(web()),)


OPEN = Launches(open={"c": OpenLaunch(NOW - 100, "cheap", {mark(web()): ("web-1",)}, is_made=True)})


@pytest.mark.parametrize("claims", [(), (claim(ClaimState.FAILED),)], ids=["gone", "failed"])
def test_a_machine_that_ends_before_its_pod_ran_was_unused(claims: tuple[NodeClaim, ...]) -> None:
    record = planned(web(), launches=OPEN, claims=claims).memory.launches
    assert record.unused[mark(web())].launched_at == (NOW - 100,)
    assert record.unused[mark(web())].flavours == {"cheap": FlavourPause(1, NOW, NOW - 100)}


def test_what_the_cloud_refused_was_no_launch() -> None:
    refused = Launches(open={"c": OpenLaunch(NOW - 100, "cheap", {mark(web()): ("web-1",)})})
    assert planned(web(), launches=refused).memory.launches.unused == {}


NODE = owned_node("c", flavour="cheap", cpu="4", memory="8Gi")
PAUSED = {"cheap": FlavourPause(5, NOW - 150, NOW - 1800)}
TRIED = msgspec.structs.replace(OPEN, unused={mark(web()): unused(2000, 1900, 1800, flavours=PAUSED)})
"""Three launches were unused; a fourth machine is there."""
PART_S = 1200.0
"""A third of an hour, of three launches within it."""


def in_use(record: Launches = TRIED, since_s: float = 0.0) -> Launches:
    """The record with the fourth in use, since so long."""
    since = {mark(web()): NOW - since_s}
    return msgspec.structs.replace(
        record, open={"c": OpenLaunch(NOW - 100 - since_s, "cheap", is_made=True, is_initialized=True, in_use=since)}
    )


def test_a_launch_is_in_use_once_another_pod_of_the_owner_runs_there_and_forgives_older_ones() -> None:
    ready = claim(ClaimState.READY, node="c")
    ran = msgspec.structs.replace(running(web("web-2"), "c"), started_at=NOW - 7)
    made = planned(web(), ran, launches=TRIED, nodes=(NODE,), claims=(ready,))
    assert made.memory.launches.open["c"].in_use == {mark(web()): NOW - 7}
    assert [launch.flavour for launch in made.launch] == ["cheap"], "its pause is over, too"
    assert made.memory.launches.unused == TRIED.unused, "they are kept"
    assert made.memory.launches.counted() == {}


@pytest.mark.parametrize("claims", [(), (claim(ClaimState.FAILED, node="c"),)], ids=["gone unseen", "failed"])
def test_where_its_machine_fails_soon_the_older_ones_count_again(claims: tuple[NodeClaim, ...]) -> None:
    before = in_use(since_s=70)
    if not claims:  # as a restart finds it in the journal
        before = msgspec.structs.replace(before, open={"c": msgspec.structs.replace(before.open["c"], failure="panic")})
    claims = tuple(msgspec.structs.replace(each, since=NOW, message="panic") for each in claims)
    made = planned(web(), launches=before, claims=claims)
    known = made.memory.launches.unused[mark(web())]
    assert known.launched_at == (NOW - 2000, NOW - 1900, NOW - 1800, NOW - 170)
    assert known.flavours == {"cheap": FlavourPause(6, NOW, NOW - 170)}
    [item] = made.unplaced
    assert item.reason is Unplaced.TOO_MANY_LAUNCHES
    told = "its machine failed 70 s after its pod started: panic" if claims else "panic"
    assert f"(the last: cheap: {told})" in item.message


@pytest.mark.parametrize(
    ("since_s", "state", "is_settled"),
    [
        pytest.param(PART_S, ClaimState.READY, True, id="it has served for its part of the hour"),
        pytest.param(PART_S - 1, ClaimState.READY, False, id="not yet"),
        pytest.param(PART_S + 99, ClaimState.REGISTERED, False, id="its node is not Ready"),
        pytest.param(PART_S + 100, ClaimState.REGISTERED, True, id="its node was Ready long enough"),
        pytest.param(PART_S + 100, ClaimState.FAILED, False, id="it has failed, who knows when"),
        pytest.param(70, ClaimState.DRAINING, True, id="it is drained"),
        pytest.param(70, None, True, id="it was deleted"),
    ],
)
def test_a_launch_is_settled_once_its_machine_has_served_or_ends_without_failing(
    since_s: float, state: ClaimState | None, is_settled: bool
) -> None:
    ran = msgspec.structs.replace(running(web("web-2"), "c"), started_at=NOW - since_s)
    claims = (claim(state, node="c"),) if state is not None else ()
    node = msgspec.structs.replace(NODE, is_ready=state is not ClaimState.REGISTERED)
    pods, nodes = ((ran,), (node,)) if claims else ((), ())
    record = planned(*pods, launches=in_use(since_s=since_s), nodes=nodes, claims=claims).memory.launches
    assert (record.unused == {}) == is_settled


@pytest.mark.parametrize("state", [ClaimState.READY, ClaimState.FAILED])
@pytest.mark.parametrize("was_seen", [True, False])
def test_a_pod_that_has_succeeded_on_its_node_settles_it(state: ClaimState, was_seen: bool) -> None:
    """Also one that started and ended between two plans, and however soon its machine fails then."""
    ended = (Ended("web-1", True, NOW - 1, "c", "default/ReplicaSet/web"),)
    view = ClusterView(nodes=(NODE,), ended=ended)
    before, known = in_use() if was_seen else TRIED, claim(state, node="c")
    snapshot = ClusterSnapshot(NOW, view, claims=(known,), memory=Memory(launches=before))
    record = plan(snapshot, POLICY, NOW).memory.launches
    assert (record.open, record.unused) == ({}, {})
    failed = msgspec.structs.replace(view, ended=(msgspec.structs.replace(ended[0], succeeded=False),))
    record = plan(msgspec.structs.replace(snapshot, cluster=failed), POLICY, NOW).memory.launches
    assert record.unused != {}


def test_machines_in_use_forgive_no_more_than_as_many_launches_for_each_of_them() -> None:
    """Two machines whose pods bring them down by turns would forgive each other for ever."""
    tried = [unused(*(200.0 + 10 * i for i in range(count))) for count in (5, 6)]
    for known, is_held in zip(tried, (False, True), strict=True):
        before = in_use(msgspec.structs.replace(TRIED, unused={mark(web()): known}), since_s=50)
        ran = msgspec.structs.replace(running(web("web-2"), "c"), started_at=NOW - 50)
        made = planned(web(), ran, launches=before, nodes=(NODE,), claims=(claim(ClaimState.READY, node="c"),))
        assert [item.reason for item in made.unplaced] == ([Unplaced.TOO_MANY_LAUNCHES] if is_held else [])


def test_a_daemon_that_ended_before_it_could_remember_left_the_owners_in_the_journal() -> None:
    coming = claim(ClaimState.REQUESTED, launched_for=(mark(web()),))
    record = planned(web(), claims=(coming,)).memory.launches
    assert record.open == {"c": OpenLaunch(NOW - 100, "cheap", {mark(web()): ()}, is_made=True)}
    assert planned(web(), launches=record).memory.launches.unused[mark(web())].launched_at == (NOW - 100,)


@pytest.mark.parametrize("since_s", [0.0, PART_S], ids=["in use", "settled"])
def test_a_machine_that_fails_among_others_that_are_used_counts_for_its_own_pods_alone(since_s: float) -> None:
    """Of hundreds launched together some always fail, and the owner's next pods are launched for all the same."""
    other = OpenLaunch(NOW - 100, "cheap", {mark(web()): ("web-2",)}, is_made=True)
    first = Launches(open={**OPEN.open, "d": other})
    ready, coming = claim(ClaimState.READY, node="c"), claim(ClaimState.REQUESTED)
    coming = msgspec.structs.replace(coming, id="d", instance="vm-d")
    web_1, web_2 = running(web("web-1"), "c"), web("web-2")
    web_1 = msgspec.structs.replace(web_1, started_at=NOW - 100)
    record = planned(web_1, web_2, launches=first, nodes=(NODE,), claims=(ready, coming)).memory.launches
    later = NOW + since_s
    view = ClusterView(nodes=(NODE,), pods=(web_1, web_2))
    memory = Memory(launches=record)
    if since_s:
        settling = ClusterSnapshot(later - 1, view, claims=(ready, coming), memory=memory)
        memory = plan(settling, POLICY, later - 1).memory
    made = plan(ClusterSnapshot(later, view, claims=(ready,), memory=memory), POLICY, later)
    assert made.memory.launches.counted() == {}
    assert made.memory.launches.tries == {f"web-2 {mark(web())}": (NOW - 100,)}
    assert made.launch


# What follows.


@pytest.mark.parametrize(
    ("ages_s", "reasons"),
    [
        pytest.param((600, 300, 100), [Unplaced.TOO_MANY_LAUNCHES], id="three within an hour"),
        pytest.param((600, 300), [], id="two"),
        pytest.param((3700, 300, 100), [], id="one of three is older"),
    ],
)
def test_pods_of_an_owner_have_three_machines_launched_within_an_hour(
    ages_s: tuple[float, ...], reasons: list[Unplaced]
) -> None:
    made = planned(web("web-9"), launches=Launches(unused={mark(web()): unused(*ages_s)}))
    assert [item.reason for item in made.unplaced] == reasons
    assert bool(made.launch) == (not reasons)


def test_a_paused_flavour_gives_way_to_another() -> None:
    paused = Launches(unused={mark(web()): unused(100, flavours={"cheap": FlavourPause(1, NOW - 10)})})
    made = planned(web(), web("api-1", owner=Owner("ReplicaSet", "api")), launches=paused)
    assert {launch.pods: launch.flavour for launch in made.launch} == {
        ("default/web-1",): "dear",
        ("default/api-1",): "cheap",
    }


@pytest.mark.parametrize(
    ("times", "ago_s", "is_paused"),
    [(1, 19, True), (1, 20, False), (2, 39, True), (2, 40, False), (20, 1799, True), (20, 1800, False)],
)
def test_a_pause_doubles_from_backoff_initial_to_backoff_max(times: int, ago_s: float, is_paused: bool) -> None:
    only = make_policy(flavours=[CHEAP])
    known = unused(100, flavours={"cheap": FlavourPause(times, NOW - ago_s)})
    made = planned(web(), launches=Launches(unused={mark(web(), only): known}), policy=only)
    assert [item.reason for item in made.unplaced] == ([Unplaced.BACKING_OFF] if is_paused else [])


def test_where_every_flavour_pauses_the_pod_is_told_the_cause() -> None:
    only = make_policy(flavours=[CHEAP])
    known = unused(100, flavours={"cheap": FlavourPause(1, NOW)})
    [item] = planned(web(), launches=Launches(unused={mark(web(), only): known}), policy=only).unplaced
    assert item.message.startswith("a machine launched for it was not used (cheap: it vanished); cheap again from ")


# Whose pods are alike.

STATED = Toleration("k", "Equal", "v")
LEFT_OUT = msgspec.json.decode(b'{"key": "k", "value": "v"}', type=Toleration)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        pytest.param(
            constrained(tolerations=(STATED,)), constrained(tolerations=(LEFT_OUT,)), True, id="Equal is the default"
        ),
        pytest.param(
            constrained(tolerations=(STATED,)),
            msgspec.json.decode(msgspec.json.encode(constrained(tolerations=(STATED,))), type=Constraints),
            True,
            id="written down and read again",
        ),
        pytest.param(constrained(claims=("data-1",)), constrained(claims=("data-2",)), True, id="claims of their own"),
        pytest.param(constrained(), constrained(node_selector=(("disk", "ssd"),)), False, id="another selector"),
    ],
)
def test_marks_of_owners_are_made_of_values(one: Constraints, other: Constraints, alike: bool) -> None:
    assert (mark(web("a", constraints=one)) == mark(web("b", constraints=other))) == alike


def test_pods_that_ask_for_more_are_other_pods() -> None:
    assert mark(web()) != mark(msgspec.structs.replace(web(), requests=CHEAP.capacity))


def test_jobs_of_a_cron_job_are_of_one_owner() -> None:
    first, second = (web(f"b-{i}", owner=Owner("Job", f"b-{i}"), template="CronJob/b") for i in (1, 2))
    assert mark(first) == mark(second)


# A clock that was ahead.

DAY = 86_400.0


@pytest.mark.parametrize("ahead_s", [0.5, 3 * DAY])
def test_launches_that_a_clock_ahead_noted_hold_pods_back_for_an_hour_at_most(ahead_s: float) -> None:
    known = unused(-ahead_s, -ahead_s - 1, -ahead_s - 2, flavours={"cheap": FlavourPause(3, NOW + ahead_s)})
    before = Launches(
        unused={mark(web()): msgspec.structs.replace(known, at=NOW + ahead_s)},
        used={mark(web()): NOW + ahead_s},
        tries={f"web-1 {mark(web())}": (NOW + ahead_s,)},
        open={"c": OpenLaunch(NOW + ahead_s, "cheap", {mark(web("other")): ("other",)}, is_made=True)},
        of_nobody={mark(web("nobody")): (NOW + ahead_s,)},
    )
    first = planned(web(), launches=before, claims=(claim(ClaimState.ACTIVE),))
    record = first.memory.launches
    instants = [*record.unused[mark(web())].launched_at, record.unused[mark(web())].at, record.open["c"].at]
    instants += [pause.at for pause in record.unused[mark(web())].flavours.values()]
    instants += [at for each in (record.tries, record.of_nobody) for ats in each.values() for at in ats]
    instants += record.used.values()
    assert set(instants) == {NOW}
    later = NOW + 3601
    view = ClusterView(pods=(web(),))
    second = plan(ClusterSnapshot(later, view, memory=Memory(launches=record)), POLICY, later)
    assert ([launch.flavour for launch in second.launch], second.unplaced) == (["cheap"], ())


# Pods that state no requests.

SMALL, LARGE = make_flavour("small", "4", "8Gi", "0.10"), make_flavour("large", "16", "32Gi", "0.40")


@pytest.mark.parametrize(
    ("paused", "reason"), [("large", Unplaced.BACKING_OFF), ("small", None)], ids=["what holds it", "what does not"]
)
def test_pauses_judge_pods_without_requests_as_launching_does(paused: str, reason: Unplaced | None) -> None:
    """By `scheduling.defaultRequests` of 8 cores only the large flavour holds the pod."""
    policy = make_policy(flavours=[SMALL, LARGE], default_requests=DefaultRequests(8000, GIB))
    bare = make_pod("web-1", "0", "0", owner=Owner("ReplicaSet", "web", "web-uid"))
    known = unused(100, flavours={paused: FlavourPause(5, NOW)})
    made = planned(bare, launches=Launches(unused={mark(bare, policy): known}), policy=policy)
    assert [item.reason for item in made.unplaced] == ([reason] if reason else [])
    assert [launch.flavour for launch in made.launch] == ([] if reason else ["large"])
