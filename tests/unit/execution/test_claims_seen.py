"""Claims as nodes and machines alone show them, and what a new leader drops of an old journal."""

from __future__ import annotations

from htas.execution.claims_seen import claims_seen
from htas.model.claims import ClaimState, Instance, InstanceState, NodeClaim
from htas.model.disruptions import Drain
from tests.builders import NOW, make_move, make_node, make_policy, owned_node
from tests.stories.play import Story, job

POLICY = make_policy()


def machine(claim: str, state: InstanceState = InstanceState.ACTIVE, cluster: str = "test") -> Instance:
    return Instance(f"i-{claim}", claim, "medium", state, NOW - 60, None, cluster, claim, "any")


def states(*args: object) -> dict[str, ClaimState]:
    return {claim.id: claim.state for claim in claims_seen(*args, POLICY, NOW)}  # type: ignore[arg-type] # nodes and instances


def test_nodes_and_machines_of_ours_are_claims_and_others_are_not() -> None:
    nodes = (owned_node("ready"), owned_node("unready", is_ready=False), make_node("foreign"))
    instances = (
        machine("ready"),
        machine("unready"),
        machine("starting", InstanceState.BUILDING),
        machine("x", cluster="y"),
    )
    assert states(nodes, instances) == {
        "ready": ClaimState.READY,
        "unready": ClaimState.REGISTERED,
        "starting": ClaimState.REQUESTED,
    }


def test_a_machine_on_its_way_is_not_bought_again_by_a_plan_without_a_journal() -> None:
    story = Story(None, job("a"), startup_s=120.0).play(30)
    view, instances = story.world.cluster.observe(), story.world.cloud.instances()
    (seen,) = claims_seen(view.nodes, instances, story.policy, story.world.clock.now())
    (journalled,) = story.store.claims()
    assert (seen.id, seen.flavour, seen.state) == (journalled.id, journalled.flavour, journalled.state)


def test_a_new_leader_drops_what_its_old_journal_still_intends() -> None:
    story = Story(None, job("a"), startup_s=10.0).play(60)
    (ready,) = story.store.claims()
    wanted = NodeClaim("never-asked", ready.group, ready.flavour, ClaimState.WANTED, NOW, story.world.clock.now())
    story.store.put_claim(wanted)
    story.store.put_disruption(
        Drain(ready.id, ready.id, "Underutilized", NOW, (make_move("default/a-1", ready.id, "x"),))
    )
    story.crash()
    outcomes = story.daemon.take_over()
    assert {(o.action, o.subject, o.status.value) for o in outcomes} == {
        ("launch", "never-asked", "dropped"),
        ("drain", ready.id, "dropped"),
    }
    story.play(4000).assert_over(1)
    assert len(story.store.bills()) == 1, "the machine that was never asked for was not bought"
