"""Why a node is told to stay or go where plan and deed are not one: a word is waited for, or nothing is carried out."""

from __future__ import annotations

import msgspec
import pytest

from htas.cli.ui import serve
from htas.documents.explain import explain_node
from htas.execution.approvals import Approvals
from htas.model.modes import Approval
from htas.model.plan import KeptNode, Plan
from htas.model.proposals import Launch, Proposal, Release
from htas.model.reasons import Kept, ProposalReason
from htas.model.stages import ALL_STAGES, Stage
from htas.web.reports.cluster import cluster_report
from htas.web.reports.nodes import node_detail
from htas.web.seat import Seat, Seen
from tests.builders import NOW, make_snapshot, ready_claim
from tests.unit.web.conftest import POLICY, SNAPSHOT
from tests.unit.web.test_approvals import PROPOSED as PROPOSED_AND_KEPT

ASKING = msgspec.structs.replace(POLICY, approval=Approval())
PROPOSED = msgspec.structs.replace(PROPOSED_AND_KEPT, kept=())
KEPT = KeptNode("a", Kept.NO_PLACE_TO_MOVE_PODS, "its pods have no place")
REPLACED = msgspec.structs.replace(
    PROPOSED,
    kept=(KEPT,),
    proposals=(
        Proposal(
            ProposalReason.CONSOLIDATED,
            launches=(Launch("new", "any", "small", None, 50_000_000, (), replaces=("a",)),),
            releases=(Release("a", "a"),),
        ),
    ),
)


def seat_of(mode: str, made: Plan, said: bool | None = None) -> Seat:
    """After a cycle that judged the nodes, a word, and a cycle that judged none."""
    seat = Seat(mode, lambda: ASKING, None, lambda: NOW)
    if mode == "live":
        approvals = Approvals(Approval(), lambda: NOW)
        approvals.gate(made, SNAPSHOT, "USD")
        seat.approvals = approvals
        if said is not None:
            approvals.say((), "alice", is_approved=said, currency="USD")
    seat.observe(Seen(SNAPSHOT, made, stages=ALL_STAGES))
    return seat


@pytest.mark.parametrize("made", [PROPOSED, REPLACED], ids=["to be emptied", "to be replaced"])
@pytest.mark.parametrize("is_judged", [True, False], ids=["in the cycle that judged it", "in one that judges none"])
@pytest.mark.parametrize(
    ("said", "why"),
    [(None, "PendingApproval"), (False, "Rejected"), (True, "Approved")],
    ids=["no word", "a no", "a yes"],
)
def test_a_node_with_a_proposal_tells_of_it(said: bool | None, why: str, is_judged: bool, made: Plan) -> None:
    """It was told to be unjudged, or to be leaving, beside a proposal that waits."""
    seat = seat_of("live", made, said)
    if not is_judged:
        seat.observe(Seen(SNAPSHOT, Plan(NOW), stages=frozenset({Stage.SCHEDULING})))
    found = node_detail(seat.picture(), "a")
    expected = "Leaving" if said and is_judged and made is PROPOSED else why
    assert (found.item.why, bool(found.item.message), bool(found.meaning.says)) == (expected, True, True)


def test_what_is_proposed_no_more_is_told_as_it_was_judged_since() -> None:
    seat = seat_of("live", PROPOSED)
    later = msgspec.structs.replace(SNAPSHOT, taken_at=NOW + 20.0)
    seat.renew()
    seat.observe(Seen(later, Plan(NOW + 20.0, kept=(KEPT,)), stages=ALL_STAGES))
    assert node_detail(seat.picture(), "a").item.why == Kept.NO_PLACE_TO_MOVE_PODS


def test_a_machine_that_waits_for_a_word_is_not_on_its_way() -> None:
    seat = seat_of("live", REPLACED)
    assert cluster_report(seat, seat.picture()).coming == []


@pytest.mark.parametrize("mode", ["recommend", "dump"])
def test_where_nothing_is_carried_out_nothing_is_told_as_done(mode: str) -> None:
    """A node was told to be leaving, and a machine to be on its way, where HTAS only looks on."""
    seat = seat_of(mode, REPLACED)
    told = cluster_report(seat, seat.picture())
    assert (told.acts, [each.state for each in told.coming]) == (False, ["WouldBeLaunched"])
    assert node_detail(seat_of(mode, PROPOSED).picture(), "a").item.why == "WouldLeave"
    acting = seat_of("demo", REPLACED)
    assert cluster_report(acting, acting.picture()).coming[0].state == "Wanted"


def test_who_came_by_a_link_is_not_shown_the_way_out() -> None:
    """Log out was shown in the demo of mode recommend, and locked people out for good: the link works once."""
    seat = seat_of("recommend", PROPOSED)
    assert not cluster_report(seat, seat.picture()).is_entered_once
    listener, _ = serve(seat, 0)
    listener.start()
    listener.stop()
    assert cluster_report(seat, seat.picture()).is_entered_once


def test_a_reason_is_told_once_though_the_plan_is_of_a_moment_ago() -> None:
    """Under-utilised for 38s of 1m00s, it said, and also for 41s of 1m00s."""
    node = SNAPSHOT.cluster.nodes[0]
    snapshot = make_snapshot([node], SNAPSHOT.cluster.pods, claims=(ready_claim(node),))
    kept = KeptNode("a", Kept.NOT_UNDERUTILIZED, "cpu 74% > 50%")
    lines = explain_node("a", snapshot, Plan(NOW, kept=(kept,)), POLICY)
    assert [line for line in lines if "NotUnderutilized" in line] == ["kept: NotUnderutilized: cpu 74% > 50%"]
