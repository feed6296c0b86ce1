"""Pods whose volumes no machine could have: nothing is launched, and the reason names volume, zone, node or number."""

from __future__ import annotations

from typing import Any

import pytest

from htas.model.constraints import Constraints, NodeSelectorTerm
from htas.model.contradictions import out_of_reach
from htas.model.nodes import HOSTNAME_LABEL, ZONE_LABEL
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import Fallback, FallbackMode, NodeGroup
from htas.model.reasons import Unplaced
from htas.model.selectors import Operator, Requirement
from htas.model.volumes import PersistentVolume, StorageClass, VolumeClaim, VolumeRules, Volumes
from htas.planning.planner import plan
from tests.builders import NOW, make_flavour, make_node, make_pod, make_policy, make_snapshot, owned_node, running

CINDER = "cinder.csi.openstack.org"
FLAVOUR = make_flavour("medium", "4", "8Gi", "0.2", zones=("az-1", "az-2", "az-3"))
ONE = [owned_node("n", labels={ZONE_LABEL: "az-1"}, attach_limits=((CINDER, 25),))]


def volume(name: str, key: str = "", *values: str) -> PersistentVolume:
    terms = (NodeSelectorTerm((Requirement(key, Operator.IN, values),)),) if key else None
    return PersistentVolume(name, {}, terms, CINDER)


def bound(*volumes: PersistentVolume, **claim: Any) -> Volumes:
    claims = tuple(VolumeClaim("default", f"claim-{each.name}", each.name, **claim) for each in volumes)
    return Volumes(volumes, claims, (StorageClass("fast", CINDER, True),))


def using(volumes: Volumes, name: str = "p", **constraints: Any) -> Pod:
    claims = tuple(sorted(claim.name for claim in volumes.claims))
    return make_pod(name, "1", "1Gi", constraints=Constraints(claims=claims, **constraints))


def planned(store: Volumes, *pods: Pod, nodes: Any = ONE, **how: Any) -> Plan:
    fallback = Fallback(mode=FallbackMode.OPTIMIZE, after_s=0.0)
    policy = make_policy([NodeGroup("any")], [FLAVOUR], fallback=fallback, **how)
    return plan(make_snapshot(nodes, pods or [using(store)], volumes=store), policy, NOW)


@pytest.mark.parametrize(
    ("volumes", "parts"),
    [
        pytest.param(
            bound(*(volume(f"pv-{i}", ZONE_LABEL, f"az-{i}") for i in (1, 2, 3))),
            [
                "no machine would reach all of",
                f"volume pv-1 of claim claim-pv-1: {ZONE_LABEL} In (az-1)",
                f"volume pv-2 of claim claim-pv-2: {ZONE_LABEL} In (az-2)",
                f"volume pv-3 of claim claim-pv-3: {ZONE_LABEL} In (az-3)",
            ],
            id="three volumes in three zones",
        ),
        pytest.param(
            Volumes(
                (PersistentVolume("old-1", {ZONE_LABEL: "az-1"}), PersistentVolume("old-2", {ZONE_LABEL: "az-2"})),
                (VolumeClaim("default", "c1", "old-1"), VolumeClaim("default", "c2", "old-2")),
            ),
            ["volume old-1 of claim c1: zone az-1 by its labels", "volume old-2 of claim c2: zone az-2 by its labels"],
            id="their zones by labels",
        ),
        pytest.param(
            bound(volume("disk", HOSTNAME_LABEL, "w-1")),
            ["volume disk of claim claim-disk can be reached from w-1 alone: no new machine can help"],
            id="a local volume, by the node that has it",
        ),
        pytest.param(
            bound(*(volume(f"pv-{i:02}") for i in range(28))),
            [f"it has 28 volumes of {CINDER}, and a machine attaches 25"],
            id="more volumes than a node attaches",
        ),
    ],
)
def test_nothing_is_launched_and_the_reason_names_the_volumes(volumes: Volumes, parts: list[str]) -> None:
    made = planned(volumes)
    assert not made.launch
    assert not made.optimize
    (item,) = made.unplaced
    assert item.reason is Unplaced.NO_FLAVOUR_FITS
    for part in parts:
        assert part in item.message
    assert "searched for" not in item.message
    assert "zones: [" not in item.message


def test_as_many_volumes_as_a_node_attaches_are_no_obstacle() -> None:
    volumes = bound(*(volume(f"pv-{i:02}") for i in range(25)))
    full = running(make_pod("full", "4", "8Gi"), "n")
    made = planned(volumes, full, using(volumes))
    assert [launch.pods for launch in made.launch] == [("default/p",)]


def test_the_configured_limit_counts_where_no_node_shows_one() -> None:
    volumes = bound(*(volume(f"pv-{i:02}") for i in range(3)))
    made = planned(volumes, nodes=[], volumes=VolumeRules(attach_limits=((CINDER, 2),)))
    assert not made.launch
    assert f"it has 3 volumes of {CINDER}, and a machine attaches 2" in made.unplaced[0].message


# Generic ephemeral volumes.


@pytest.mark.parametrize(
    ("owner", "launched"),
    [
        pytest.param("p", True, id="its own"),
        pytest.param("", False, id="somebody made a claim of that name"),
        pytest.param("other", False, id="another pod's, such as an earlier one's of the same name"),
    ],
)
def test_a_claim_that_was_made_for_somebody_else_is_refused_as_by_kube_scheduler(owner: str, launched: bool) -> None:
    volumes = Volumes((volume("pv"),), (VolumeClaim("default", "p-scratch", "pv", owner=owner),))
    pod = using(volumes, own_claims=(("p-scratch", "p"),))
    made = planned(volumes, running(make_pod("full", "4", "8Gi"), "n"), pod)
    assert bool(made.launch) == launched
    if not launched:
        assert "PVC default/p-scratch was not created for pod default/p (pod is not owner)" in made.unplaced[0].message


# Volumes that contradict the nodes of running pods.


@pytest.mark.parametrize(
    ("volumes", "contradicts"),
    [
        pytest.param(bound(volume("pv", ZONE_LABEL, "az-1")), False, id="in its zone"),
        pytest.param(bound(volume("pv", ZONE_LABEL, "az-2")), True, id="in another zone"),
        pytest.param(bound(volume("pv", HOSTNAME_LABEL, "m")), True, id="on another node"),
        pytest.param(bound(volume("pv")), False, id="anywhere"),
        pytest.param(
            Volumes((PersistentVolume("pv", {ZONE_LABEL: "az-2__az-3"}),), (VolumeClaim("default", "c", "pv"),)),
            True,
            id="in other zones by its label",
        ),
    ],
)
def test_a_running_pod_whose_node_its_volume_does_not_reach_is_a_contradiction(
    volumes: Volumes, contradicts: bool
) -> None:
    view = make_snapshot(ONE, [running(using(volumes), "n")], volumes=volumes).cluster
    assert out_of_reach(view) == (
        {"default/p": "default/p runs on n, which volume pv does not reach"} if contradicts else {}
    )


def test_a_pod_on_a_node_that_is_not_there_contradicts_nothing() -> None:
    volumes = bound(volume("pv", ZONE_LABEL, "az-2"))
    assert out_of_reach(make_snapshot([make_node("m")], [running(using(volumes), "n")], volumes=volumes).cluster) == {}
