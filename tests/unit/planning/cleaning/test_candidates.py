"""Which nodes may go, and why the others stay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from htas.model.billing import Billing
from htas.model.claims import ClaimState
from htas.model.disruptions import Drain
from htas.model.flavours import Catalogue
from htas.model.machine_times import MachineTimes
from htas.model.moves import MigrationMethod
from htas.model.nodes import (
    CLUSTER_LABEL,
    DO_NOT_DISRUPT,
    DRAINING_TAINT,
    KARPENTER_DO_NOT_DISRUPT,
    SCALE_DOWN_DISABLED,
    Node,
)
from htas.model.plan import KeptNode, NodeRemoval, Plan
from htas.model.pods import Owner, Pod
from htas.model.policy import EmptyRelease, Policy
from htas.model.reasons import Kept, ProposalReason
from htas.model.resources import Resources
from htas.model.snapshot import Memory
from tests.builders import NOW, make_move, make_node, make_pod, owned_node, ready_claim, running
from tests.unit.planning.cleaning.world import (
    LARGE,
    LONG_AGO,
    MEDIUM,
    cleaned,
    full_node,
    job_on,
    kept,
    message,
    policy_with,
    quiet_snapshot,
    removed,
)

HOURLY = Catalogue((MEDIUM, LARGE), "USD", Billing(3600, 3600))


def alone(node: Node, pods: tuple[Pod, ...] = (), policy: Policy | None = None, **fields: Any) -> Plan:
    """What becomes of one node beside a half-empty one, to which small things could move."""
    spare = owned_node("spare", annotations={SCALE_DOWN_DISABLED: "true"})
    return cleaned(quiet_snapshot([node, spare], pods, **fields), policy)


def test_an_empty_node_goes_at_once_and_saves_its_price() -> None:
    cleaning = alone(owned_node("n1"))
    assert cleaning.remove == (NodeRemoval("n1", "n1", ProposalReason.EMPTY, 200_000_000, "empty"),)
    assert not cleaning.migrate


def test_an_empty_node_does_not_wait_for_the_queue() -> None:
    snapshot = quiet_snapshot([owned_node("n1")])
    assert removed(cleaned(snapshot, work_is_waiting=True)) == ["n1"]


def test_daemons_do_not_make_a_node_used() -> None:
    daemon = running(make_pod("logs-1", "3", owner=Owner("DaemonSet", "logs")), "n1")
    assert removed(alone(owned_node("n1"), (daemon,))) == ["n1"]


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        pytest.param(make_node("n1"), Kept.NOT_AUTOSCALED, id="not bought by HTAS"),
        pytest.param(owned_node("n1", labels={CLUSTER_LABEL: "other"}), Kept.NOT_AUTOSCALED, id="another cluster's"),
        pytest.param(
            owned_node("n1", annotations={SCALE_DOWN_DISABLED: "true"}),
            Kept.SCALE_DOWN_DISABLED,
            id="annotated to stay",
        ),
        pytest.param(
            owned_node("n1", annotations={DO_NOT_DISRUPT: "true"}), Kept.DO_NOT_DISRUPT, id="htas.io/do-not-disrupt"
        ),
        pytest.param(
            owned_node("n1", annotations={KARPENTER_DO_NOT_DISRUPT: "true"}),
            Kept.DO_NOT_DISRUPT,
            id="karpenter.sh/do-not-disrupt",
        ),
        pytest.param(owned_node("n1", is_ready=False), Kept.NOT_READY, id="not Ready"),
        pytest.param(
            owned_node("n1", taints=(DRAINING_TAINT,)), Kept.CURRENTLY_BEING_DELETED, id="tainted as draining"
        ),
    ],
)
def test_the_nodes_state_keeps_it(node: Node, reason: Kept) -> None:
    cleaning = cleaned(quiet_snapshot([node]))
    assert kept(cleaning) == {"n1": reason}
    assert not cleaning.remove


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        pytest.param(
            ClaimState.REGISTERED, Kept.NOT_READY, id="just registered: still counted as a machine on its way"
        ),
        pytest.param(ClaimState.DRAINING, Kept.CURRENTLY_BEING_DELETED, id="draining"),
        pytest.param(ClaimState.FAILED, Kept.CURRENTLY_BEING_DELETED, id="given up"),
    ],
)
def test_the_claims_state_keeps_it(state: ClaimState, reason: Kept) -> None:
    node = owned_node("n1")
    claim = msgspec.structs.replace(ready_claim(node), state=state)
    assert kept(cleaned(quiet_snapshot([node], claims=(claim,)))) == {"n1": reason}


def test_a_node_registered_under_another_name_than_its_claim_is_kept() -> None:
    node = msgspec.structs.replace(owned_node("n1"), name="vm-7.example.org")
    claim = msgspec.structs.replace(ready_claim(node), id="n1", state=ClaimState.REGISTERED)
    assert kept(cleaned(quiet_snapshot([node], claims=(claim,)))) == {"vm-7.example.org": Kept.NOT_READY}


def test_a_pod_that_is_not_understood_keeps_its_node_and_when_it_is_read_the_waiting_begins() -> None:
    cleaning = alone(owned_node("n1"), unread={"n1": "default/odd"})
    assert kept(cleaning)["n1"] is Kept.UNREADABLE_POD
    assert message(cleaning, "n1").startswith("default/odd ")
    assert "n1" not in cleaning.memory.empty_since | cleaning.memory.underutilized_since


def test_a_node_with_a_gpu_is_judged_by_it_and_says_so() -> None:
    """The job takes a quarter of the cores, and the one GPU."""
    node = owned_node("n1", extended={"nvidia.com/gpu": 1})
    job = job_on("n1", "train", requests=Resources.of({"cpu": 1000, "pods": 1, "nvidia.com/gpu": 1}))
    cleaning = cleaned(quiet_snapshot([node, owned_node("n2")], [job]))
    assert message(cleaning, "n1") == "utilisation 100% of nvidia.com/gpu > 50%"


def test_without_a_claim_nothing_is_released() -> None:
    cleaning = cleaned(quiet_snapshot([owned_node("n1")], claims=()))
    assert cleaning.kept == (KeptNode("n1", Kept.NOT_AUTOSCALED, "no claim n1 is known for it"),)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(
            {"drains": (Drain("n2", "n2", "Empty", NOW, (make_move("default/p", "n2", "n1"),)),)}, id="evicted"
        ),
        pytest.param({"moves": (make_move("default/p", "n2", "n1", MigrationMethod.CHECKPOINT),)}, id="restored"),
    ],
)
def test_a_node_that_a_pod_is_moving_to_is_kept(fields: Mapping[str, Any]) -> None:
    assert kept(cleaned(quiet_snapshot([owned_node("n1")], **fields))) == {"n1": Kept.NEEDED}


def test_a_node_this_plan_uses_is_kept() -> None:
    cleaning = cleaned(quiet_snapshot([owned_node("n1")]), needed=frozenset({"n1"}))
    assert kept(cleaning) == {"n1": Kept.NEEDED}


@pytest.mark.parametrize(
    ("rules", "group", "reason", "text"),
    [
        pytest.param({"enabled": False}, {}, Kept.CLEANING_DISABLED, "group any", id="cleaning is off"),
        pytest.param(
            {"delay_after_launch_s": 4000.0},
            {},
            Kept.TOO_YOUNG,
            "Ready for 60m00s of 66m40s",
            id="launched an hour ago",
        ),
        pytest.param(
            {"empty_for_s": 3700.0},
            {},
            Kept.NOT_EMPTY_LONG_ENOUGH,
            "empty for 60m00s of 61m40s",
            id="empty for an hour",
        ),
        pytest.param({}, {"min_nodes": 1}, Kept.MIN_SIZE_REACHED, "has 1 node and keeps at least 1", id="the last one"),
        pytest.param({"max_nodes_at_once": 0}, {}, Kept.TOO_MANY_AT_ONCE, "at most 0 at once", id="none at a time"),
    ],
)
def test_the_groups_rules_keep_an_empty_node(
    rules: dict[str, Any], group: dict[str, Any], reason: Kept, text: str
) -> None:
    cleaning = cleaned(quiet_snapshot([owned_node("n1")]), policy_with(rules, group))
    assert kept(cleaning) == {"n1": reason}
    assert text in message(cleaning, "n1")


def test_cycles_that_take_longer_than_meant_look_further_ahead() -> None:
    """With cycles of 90 s and none nearer, 91 s before the hour's end is the last look that comes in time."""
    node = owned_node("n1")
    for left_s, before_s, goes in (
        (100.0, 90.0, True),
        (100.0, 20.0, False),
        (130.0, 90.0, False),
        (100.0, 3000.0, False),
    ):
        snapshot = quiet_snapshot([node], claims=(ready_claim(node, 3600.0 - left_s),))
        memory = msgspec.structs.replace(snapshot.memory, cleaned_at=snapshot.taken_at - before_s)
        snapshot = msgspec.structs.replace(snapshot, memory=memory)
        assert (removed(cleaned(snapshot, policy_with({}, catalogue=HOURLY))) == ["n1"]) is goes, (left_s, before_s)


@pytest.mark.parametrize(
    ("held_s", "goes"),
    [
        pytest.param(3600.0 - 1200.0, False, id="20 minutes are paid for"),
        pytest.param(3600.0 - 51.0, False, id="one more cycle of 20 s still comes 30 s before the end"),
        pytest.param(3600.0 - 50.0, True, id="the next cycle would be too late"),
        pytest.param(3600.0 - 5.0, True, id="late, but not too late"),
        pytest.param(3600.0 + 5.0, False, id="the next hour is paid for"),
    ],
)
def test_before_the_next_billing_period(held_s: float, goes: bool) -> None:
    """By default, as measured: a scheduling cycle of 20 s and a release of 10 s at least."""
    node = owned_node("n1")
    policy = policy_with({}, catalogue=HOURLY)
    cleaning = cleaned(quiet_snapshot([node], claims=(ready_claim(node, held_s),)), policy)
    assert (removed(cleaning) == ["n1"]) is goes
    assert goes or kept(cleaning) == {"n1": Kept.PAID_UNTIL_PERIOD_ENDS}


@pytest.mark.parametrize(
    ("rules", "times", "rented_ago_s", "goes"),
    [
        pytest.param({}, MachineTimes(), 3600.0 - 60.0, False, id="a minute is more than a release takes"),
        pytest.param({}, MachineTimes((), (25.0,)), 3600.0 - 60.0, True, id="releases were seen to take 25 s"),
        pytest.param(
            {}, MachineTimes((), (7200.0, *[8.0] * 19)), 600.0, False, id="one of twenty took two hours: an outlier"
        ),
        pytest.param(
            {}, MachineTimes((), (7200.0,)), 600.0, False, id="the only one did: 5 minutes at most are believed"
        ),
        pytest.param({"release_ahead_s": 40.0}, MachineTimes(), 3600.0 - 60.0, True, id="a stated time counts alone"),
        pytest.param(
            {"release_ahead_s": 15.0}, MachineTimes((), (25.0,)), 3600.0 - 60.0, False, id="whatever was measured"
        ),
        pytest.param({"empty_release": EmptyRelease.AT_ONCE}, MachineTimes(), 60.0, True, id="at once, as stated"),
        pytest.param({}, MachineTimes(), 3600.0 + 60.0, False, id="the next hour is paid for"),
    ],
)
def test_hours_are_counted_from_the_bills_own_start(
    rules: dict[str, Any], times: MachineTimes, rented_ago_s: float, goes: bool
) -> None:
    """The claim was journalled long before the cloud began to charge."""
    node = owned_node("n1")
    claim = msgspec.structs.replace(ready_claim(node, 9999.0), rented_at=NOW - rented_ago_s)
    snapshot = quiet_snapshot([node], claims=(claim,), machine_times=times)
    assert (removed(cleaned(snapshot, policy_with(rules, catalogue=HOURLY))) == ["n1"]) is goes


@pytest.mark.parametrize(
    ("pods", "rules", "held_s", "goes"),
    [
        # 20 s to decide, 10 s to release, 20 s to the next cycle, 30 s of grace, 120 s of margin; a pod's move is 10 s.
        pytest.param(1, {}, 3600.0 - 220.0, False, id="a pod: 210 s before the hour is full is soon enough"),
        pytest.param(1, {}, 3600.0 - 205.0, True, id="and then it goes"),
        pytest.param(3, {}, 3600.0 - 220.0, True, id="three pods may go one after another"),
        pytest.param(1, {}, 3600.0 + 5.0, False, id="the next hour is paid for"),
        pytest.param(1, {"empty_release": EmptyRelease.AT_ONCE}, 60.0, True, id="at once, as stated"),
        pytest.param(1, {"migration_seconds": 400.0}, 3600.0 - 590.0, True, id="moves that take long begin sooner"),
    ],
)
def test_a_hardly_used_node_is_emptied_just_before_it_is_paid_for_again(
    pods: int, rules: dict[str, Any], held_s: float, goes: bool
) -> None:
    node, room = owned_node("n1"), owned_node("room", annotations={SCALE_DOWN_DISABLED: "true"})
    work = [job_on("n1", f"job-{i}", "300m", left_s=9000.0, ran_s=1.0) for i in range(pods)]
    snapshot = quiet_snapshot([node, room], work, claims=(ready_claim(node, held_s), ready_claim(room)))
    cleaning = cleaned(snapshot, policy_with(rules, catalogue=HOURLY))
    assert (removed(cleaning) == ["n1"]) is goes
    assert goes or kept(cleaning)["n1"] is Kept.DRAINS_BEFORE_PERIOD_ENDS
    assert goes or "but paid for until " in message(cleaning, "n1")


def test_a_node_that_a_pod_holds_is_not_promised_to_be_emptied_before_the_hour_is_full() -> None:
    """By the hour it was told "emptied shortly before (40m left)" hour after hour, and nothing of the rule."""
    node, room = owned_node("n1"), owned_node("room", annotations={SCALE_DOWN_DISABLED: "true"})
    held = msgspec.structs.replace(
        job_on("n1", "job", "300m", left_s=9000.0, ran_s=1.0), disruption={DO_NOT_DISRUPT: "true"}
    )
    snapshot = quiet_snapshot([node, room], [held], claims=(ready_claim(node, 1200.0), ready_claim(room)))
    cleaning = cleaned(snapshot, policy_with({}, catalogue=HOURLY))
    assert kept(cleaning)["n1"] is Kept.BLOCKED_BY_POD
    assert DO_NOT_DISRUPT in message(cleaning, "n1")


@pytest.mark.parametrize(
    ("cpu", "fields", "circumstances", "reason", "text"),
    [
        pytest.param("2100m", {}, {}, Kept.NOT_UNDERUTILIZED, "utilisation 52.5% > 50%", id="just above the threshold"),
        pytest.param(
            "1",
            {"memory": Memory({"n1": NOW - 130.0}, {}, LONG_AGO)},
            {},
            Kept.NOT_UNDERUTILIZED_LONG_ENOUGH,
            "utilisation 25%, under-utilised for 2m10s of 5m00s",
            id="not for long",
        ),
        pytest.param(
            "1",
            {"memory": Memory({}, {}, LONG_AGO)},
            {},
            Kept.NOT_UNDERUTILIZED_LONG_ENOUGH,
            "under-utilised for 0s of 5m00s",
            id="since now",
        ),
        pytest.param("1", {}, {"work_is_waiting": True}, Kept.QUEUE_NOT_EMPTY, "pods are pending", id="a queue"),
        pytest.param(
            "1",
            {"memory": Memory({"n1": LONG_AGO}, {}, NOW - 45.0)},
            {},
            Kept.QUEUE_NOT_EMPTY,
            "empty for only 45s of 5m00s",
            id="a queue until just now",
        ),
        pytest.param("1", {}, {"is_due": False}, Kept.CLEANING_NOT_DUE, "next cleaning cycle", id="not due"),
        pytest.param("3", {}, {"is_due": False}, Kept.NOT_UNDERUTILIZED, "75% > 50%", id="not due, and well used"),
    ],
)
def test_use_keeps_a_node(
    cpu: str, fields: Mapping[str, Any], circumstances: Mapping[str, Any], reason: Kept, text: str
) -> None:
    spare = owned_node("spare", annotations={SCALE_DOWN_DISABLED: "true"})
    snapshot = quiet_snapshot([owned_node("n1"), spare], [job_on("n1", "job", cpu)], **fields)
    cleaning = cleaned(snapshot, **circumstances)
    assert kept(cleaning)["n1"] is reason
    assert text in message(cleaning, "n1")


def test_exactly_at_the_threshold_is_under_used() -> None:
    assert removed(alone(owned_node("n1"), (job_on("n1", "job", "2"),))) == ["n1"]


def test_every_node_goes_or_says_why_not() -> None:
    n1, filling = full_node("n1")
    nodes = [n1, owned_node("n2"), make_node("control"), owned_node("n3", is_ready=False)]
    cleaning = cleaned(quiet_snapshot(nodes, [filling]))
    assert sorted([*removed(cleaning), *kept(cleaning)]) == sorted(node.name for node in nodes)
    assert all(keeping.message for keeping in cleaning.kept)


class TestMemory:
    """What one plan hands to the next."""

    def test_since_is_kept_while_it_holds_and_begins_now_otherwise(self) -> None:
        before = Memory({"old": NOW - 100.0}, {"old": NOW - 50.0}, NOW - 200.0)
        snapshot = quiet_snapshot([owned_node("old"), owned_node("new")], memory=before)
        memory = cleaned(snapshot, is_due=False).memory
        assert memory.underutilized_since == {"new": NOW, "old": NOW - 100.0}
        assert memory.empty_since == {"new": NOW, "old": NOW - 50.0}
        assert memory.queue_empty_since == NOW - 200.0

    def test_a_node_that_is_used_again_loses_its_since(self) -> None:
        memory = cleaned(quiet_snapshot([owned_node("n1")], [job_on("n1", "job", "3")])).memory
        assert not memory.underutilized_since
        assert not memory.empty_since

    def test_nodes_that_are_gone_are_forgotten(self) -> None:
        memory = cleaned(quiet_snapshot([], memory=Memory({"n1": LONG_AGO}, {"n1": LONG_AGO}, None))).memory
        assert memory == Memory({}, {}, NOW, cleaned_at=NOW)

    def test_nodes_of_others_are_not_remembered(self) -> None:
        assert not cleaned(quiet_snapshot([make_node("control")])).memory.empty_since

    def test_waiting_work_ends_the_quiet(self) -> None:
        assert cleaned(quiet_snapshot([]), work_is_waiting=True).memory.queue_empty_since is None

    def test_a_pod_being_bound_counts_as_there(self) -> None:
        pod = make_pod("job", "3")
        snapshot = quiet_snapshot([owned_node("n1")], [pod], expected_binds={pod.key: "n1"})
        assert not cleaned(snapshot).memory.empty_since
