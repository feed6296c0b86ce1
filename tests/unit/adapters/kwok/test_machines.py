"""Simulated machines: what becomes of them, and the nodes they turn into."""

from __future__ import annotations

from collections import Counter

import pytest

from htas.adapters.kwok.machines import Fate, Faults, fate_of, node_manifest
from htas.planning.cluster.machines import machine_node
from tests.builders import NECTAR, make_policy

POLICY = make_policy()


def test_without_faults_every_machine_comes_up() -> None:
    assert {fate_of(f"c{i}", Faults()) for i in range(200)} == {Fate.WELL}


def test_shares_are_kept_and_a_claim_has_one_fate() -> None:
    faults = Faults(seed=3, out_of_stock=0.2, never_registers=0.3, registers_late=0.1)
    fates = [fate_of(f"claim-{i}", faults) for i in range(5000)]
    counts = Counter(fates)
    for fate, share in (
        (Fate.OUT_OF_STOCK, 0.2),
        (Fate.NEVER_REGISTERS, 0.3),
        (Fate.REGISTERS_LATE, 0.1),
        (Fate.WELL, 0.4),
    ):
        assert counts[fate] / 5000 == pytest.approx(share, abs=0.03)
    assert fates == [fate_of(f"claim-{i}", faults) for i in range(5000)]
    assert fates != [fate_of(f"claim-{i}", Faults(4, 0.2, 0.3, 0.1)) for i in range(5000)]


def test_a_node_is_as_the_plan_said_and_kwok_is_told_to_keep_it() -> None:
    flavour = NECTAR[0]
    node = machine_node(POLICY, POLICY.groups[0], flavour, "z1", "c1")
    made = node_manifest(node, flavour, "kwok-c1")
    labels = made["metadata"]["labels"]
    assert made["metadata"]["annotations"] == {"kwok.x-k8s.io/node": "fake"}
    assert (labels["kubernetes.io/hostname"], labels["node.kubernetes.io/instance-type"]) == ("c1", flavour.name)
    assert (labels["topology.kubernetes.io/zone"], labels["htas.io/claim"], labels["htas.io/cluster"]) == (
        "z1",
        "c1",
        "test",
    )
    assert made["spec"]["providerID"] == "kwok://kwok-c1"
    assert made["status"]["allocatable"]["cpu"] == f"{flavour.allocatable.cpu_m}m"
