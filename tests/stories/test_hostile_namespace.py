"""A hostile namespace beside a quiet one: that one is served as if alone, and the hostile one within its limit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from htas.model.constraints import Constraints, HostPort, PodAffinityTerm
from htas.model.nodes import HOSTNAME_LABEL
from htas.model.pods import DAEMONSET_POD, SAFE_TO_EVICT
from htas.model.policy import Limits, NamespaceLimit, NodeGroup
from htas.model.resources import Resources
from htas.model.selectors import LabelSelector
from htas.model.snapshot import ClusterSnapshot
from htas.planning.namespaces.charges import NamespaceCharge, by_namespace, charges
from htas.sandbox.workload import Arrival, ControllerKind
from tests.builders import labels_are, make_policy
from tests.stories.play import GIB, Story, job, service

CORES, NANOS = 6, 250_000_000
QUIET = 10
UNTIL_S, STEP_S = 360.0, 60.0
START_S, CYCLE_S = 60.0, 20.0
GREEDY = Resources(1000, GIB, 0, 1)
EVERYBODY = PodAffinityTerm(HOSTNAME_LABEL, LabelSelector(), namespace_selector=LabelSelector())


def quiet() -> list[Arrival]:
    return [job(f"quiet-{i}", 60.0 + 20.0 * i, runs_s=3000.0, namespace="quiet") for i in range(QUIET)]


def hostile() -> Iterable[Arrival]:
    """Whatever a tenant may write into pods to have more than others, or to keep them from having anything."""
    own = {"namespace": "hostile"}
    apart = Constraints(anti_affinity=(PodAffinityTerm(HOSTNAME_LABEL, labels_are(app="apart")),))
    yield service("greedy", 30, requests=GREEDY, **own)
    yield service("apart", 9, requests=Resources(1, 1, 0, 1), labels={"app": "apart"}, constraints=apart, **own)
    yield service("alone", 5, constraints=Constraints(anti_affinity=(EVERYBODY,)), **own)
    yield service("pinned", 5, requests=GREEDY, disruption={SAFE_TO_EVICT: "false"}, **own)
    yield service("daemons", 5, requests=GREEDY, disruption={DAEMONSET_POD: "true"}, **own)
    yield service("ports", 5, constraints=Constraints(host_ports=tuple(map(HostPort, range(8000, 8050)))), **own)
    yield service("invented", 5, requests=Resources(100, GIB, 0, 1, (("x.example/none", 1),)), **own)
    yield service("huge", 5, requests=Resources(10**9, GIB, 0, 1), **own)
    yield from (Arrival(0.0, job(f"bare-{i}", **own).task, ControllerKind.BARE) for i in range(5))
    yield from (job(f"late-{i}", 30.0 * i, runs_s=20.0, stated_s=10.0**9, **own) for i in range(5))


@dataclass
class Told:
    """How long each quiet pod waited, and the most that a namespace was ever charged."""

    waits: dict[str, float]
    most: dict[str, NamespaceCharge]


def played(*arrivals: Arrival) -> Told:
    limit = NamespaceLimit(("hostile",), CORES * 1000, NANOS)
    policy = make_policy([NodeGroup("any")], limits=Limits(max_nodes=25), namespaces=(limit,))
    story, most = Story(policy, *arrivals), defaultdict[str, NamespaceCharge](NamespaceCharge)
    for instant in range(int(STEP_S), int(UNTIL_S) + 1, int(STEP_S)):
        story.play(float(instant))
        view, now = story.world.cluster.observe(), story.world.clock.now()
        snapshot = ClusterSnapshot(now, view, claims=tuple(story.store.claims()))
        for name, charge in by_namespace(charges(snapshot, policy).items()).items():
            most[name] = NamespaceCharge(max(most[name].cpu_m, charge.cpu_m), max(most[name].nanos, charge.nanos))
    story.assert_whole()
    waits = {
        pod.name.rpartition("-")[0] or pod.name: pod.started_at - pod.created_at
        for pod in story.world.cluster.observe().pods
        if pod.namespace == "quiet" and pod.started_at is not None
    }
    return Told(waits, most)


def test_the_quiet_one_is_served_as_if_alone() -> None:
    alone, beside = played(*quiet()), played(*hostile(), *quiet())
    assert len(alone.waits) == len(beside.waits) == QUIET
    assert max(alone.waits.values()) <= START_S + 2
    assert (
        max(beside.waits.values()) <= START_S + CYCLE_S + 2
    )  # one cycle for room that a hostile job said it would free
    spent = beside.most["hostile"]
    assert 0 < spent.cpu_m <= CORES * 1000
    assert 0 < spent.nanos <= NANOS
    assert beside.most["quiet"].nanos <= alone.most["quiet"].nanos * 2  # no machine is shared with who keeps others off


def machines_kept(most: int | None) -> int:
    """How many machines small pinned jobs keep at the end, each of which came beside a large one that ended."""
    limit = NamespaceLimit(("hostile",), max_cpu_m=1_000_000, max_pins=most)
    pinned = {"namespace": "hostile", "disruption": {SAFE_TO_EVICT: "false"}}
    large = [job(f"large-{i}", 10.0 * i, runs_s=900.0, stated_s=20_000.0, cpu_m=3300) for i in range(6)]
    small = [job(f"small-{i}", 10.0 * i + 1.0, runs_s=20_000.0, cpu_m=300, **pinned) for i in range(6)]
    story = Story(make_policy([NodeGroup("any")], namespaces=(limit,)), *large, *small)
    story.play(6000.0)
    story.assert_whole()
    return len(story.nodes)


def test_pinned_jobs_beyond_the_limit_are_gathered_on_few_machines() -> None:
    assert machines_kept(0) == 1
    assert machines_kept(None) == machines_kept(9) > 1
