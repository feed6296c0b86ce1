"""The bench of real peers: the same day for a seed, the same pods for all, and books that a third party keeps."""

from __future__ import annotations

from typing import Any

from htas.model.billing import Billing
from htas.model.flavours import Catalogue, Flavour
from htas.model.resources import Resources
from tools.bench.peers.day import DEFAULT, DEPLOYMENTS, HTAS, day, manifest
from tools.bench.peers.watching import Seen

Json = dict[str, Any]
CATALOGUE = Catalogue((Flavour("small", Resources(2000, 2**32, 0, 110), 3600),), billing=Billing(1, 1))


def node(name: str, *, is_ready: bool, flavour: str = "small") -> Json:
    status = {"conditions": [{"type": "Ready", "status": str(is_ready)}]}
    labels = {"node.kubernetes.io/instance-type": flavour}
    return {"metadata": {"name": name, "labels": labels}, "status": status}


def pod(uid: str, phase: str, **metadata: str) -> Json:
    return {"metadata": {"uid": uid, **metadata}, "status": {"phase": phase}}


def test_a_machine_is_paid_for_from_its_order_until_it_is_gone() -> None:
    """Ready at 100 after a start of 20 s, gone at 160: 80 s at 3,600 billionths an hour; the other one still runs."""
    seen = Seen(CATALOGUE, start_s=20.0)
    seen.node("ADDED", node("a", is_ready=False), 90.0)
    seen.node("MODIFIED", node("a", is_ready=True), 100.0)
    seen.node("MODIFIED", node("a", is_ready=True), 110.0)
    seen.node("ADDED", node("b", is_ready=True), 150.0)
    seen.node("ADDED", node("somebody's", is_ready=True, flavour="other"), 0.0)
    seen.node("DELETED", node("a", is_ready=True), 160.0)
    assert seen.bill(200.0) == 3600 * 80 + 3600 * 70
    assert seen.bill(120.0) == 3600 * 40


def test_waits_and_evictions_are_told_by_what_pods_become() -> None:
    seen = Seen(CATALOGUE, start_s=20.0)
    for uid in ("ends", "leaves", "waits"):
        seen.pod("ADDED", pod(uid, "Pending"), 0.0)
    seen.pod("MODIFIED", pod("ends", "Running"), 3.0)
    seen.pod("MODIFIED", pod("leaves", "Running"), 5.0)
    seen.pod("MODIFIED", pod("ends", "Succeeded"), 9.0)
    seen.pod("DELETED", pod("ends", "Succeeded"), 10.0)
    seen.pod("MODIFIED", pod("leaves", "Running", deletionTimestamp="now"), 11.0)
    seen.pod("DELETED", pod("waits", "Pending"), 12.0)
    assert (seen.waits(), seen.evicted) == ([3.0, 5.0], 1)


def test_the_day_is_the_same_for_a_seed_and_as_long_as_asked_for() -> None:
    work = day(1, 12.0)
    assert work == day(1, 12.0) != day(2, 12.0)
    assert len(work.arrivals) == 450 + DEPLOYMENTS
    assert all(arrival.at_s <= 720 for arrival in work.arrivals)


def test_every_peer_is_sent_the_same_pods_but_for_who_binds_them() -> None:
    for arrival in day(1, 1.0).arrivals:
        ours, theirs = (manifest(arrival, scheduler) for scheduler in (HTAS, DEFAULT))
        for each, scheduler in ((ours, HTAS), (theirs, DEFAULT)):
            assert each["spec"]["template"]["spec"].pop("schedulerName") == scheduler
            each["spec"]["template"]["metadata"].get("annotations", {}).pop("karpenter.sh/do-not-disrupt", None)
        assert ours == theirs
