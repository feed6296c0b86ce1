"""A digest of each of many plans, to compare two versions of the planner that must decide alike.

The bench's clusters (`tools.bench.plan`), those of the recorded searches and simulations (`tools.corpus.clusters`), and
crowds: dozens to hundreds of waiting pods, most of a class of their own, some with wishes, beside machines that are
rented and will end. A plan's JSON is digested, so that the order of what it holds counts as well.

    python -m tools.bench.digests 200 > before     # in one checkout; crowds of 200 seeds
    python -m tools.bench.digests 200 | diff before -
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from hashlib import blake2b
from random import Random

import msgspec

from htas.model.claims import ClaimState, NodeClaim
from htas.model.nodes import CLAIM_LABEL, CLUSTER_LABEL, GROUP_LABEL, HOSTNAME_LABEL, ZONE_LABEL, Node
from htas.model.packing import Packing, PackingAlgorithm
from htas.model.pods import Owner, Phase, Pod, RunLength, RunLengthSource, WorkKind
from htas.model.policy import Fallback, FallbackMode, Limits, NodeGroup, Policy, Workload
from htas.model.resources import Resources
from htas.model.snapshot import ClusterSnapshot, ClusterView
from htas.model.stages import ALL_STAGES, Stage
from htas.planning.planner import plan
from tools.bench import plan as bench
from tools.corpus.clusters import altered, crowded, grown

NOW = bench.NOW
BENCHES = [(1000, 500), (4000, 200), (6000, 1000)]


def crowd(seed: int) -> tuple[ClusterSnapshot, Policy]:
    random = Random(seed)
    groups = (
        NodeGroup("services", Workload.SERVICE),
        NodeGroup("batch", Workload.BATCH, packing=Packing(random.choice(list(PackingAlgorithm)))),
        NodeGroup("any", Workload.ANY, min_nodes=random.choice((0, 3)), limits=Limits(random.choice((2, 8, None)))),
    )
    policy = msgspec.structs.replace(
        bench.policy(),
        groups=groups,
        max_rental_lengthening=random.choice((None, 1.0, 4.0)),
        look_ahead_s=random.choice((0.0, 120.0)),
        fallback=Fallback(mode=random.choice(list(FallbackMode))),
    )
    nodes, claims, pods = [], [], list[Pod]()
    for number in range(random.randint(3, 60)):
        flavour, group = random.choice(policy.catalogue.flavours), random.choice(("services", "batch", "any", ""))
        name = f"node-{number}"
        labels = {HOSTNAME_LABEL: name, ZONE_LABEL: random.choice(("east", "west"))}
        if group:
            labels |= {CLUSTER_LABEL: "bench", GROUP_LABEL: group, CLAIM_LABEL: name}
            since = NOW - random.randint(100, 9000)
            claims.append(NodeClaim(name, group, flavour.name, ClaimState.READY, since, since, node=name))
        is_closed = random.random() < 0.05
        nodes.append(Node(name, flavour.allocatable, labels=labels, is_unschedulable=is_closed))
        pods += [_pod(random, f"run-{number}-{each}", name) for each in range(random.randint(0, 4))]
    pods += [_pod(random, f"wait-{each}", None) for each in range(random.choice((20, 100, 400)))]
    view = ClusterView(tuple(nodes), tuple(pods))
    return ClusterSnapshot(NOW, view, claims=tuple(claims), expects_more=random.random() < 0.7), policy


def _pod(random: Random, name: str, node: str | None) -> Pod:
    app = random.choice(("front", "cart", "search"))
    size = random.choice((random.randint(50, 4000), 0, 1000)), random.choice((random.randint(1, 2**33), 2**30))
    started = NOW - random.choice((30.0, 900.0, 7200.0))
    pod = Pod(
        "shop",
        name,
        Resources(*size, random.choice((0, 0, 0, 2**30)), 1),
        uid=name,
        labels={"app": app},
        owner=Owner("ReplicaSet", app, f"{app}-uid", 5),
        scheduler="htas",
        priority=random.choice((0, 0, 0, 5)),
        node=node,
        phase=Phase.PENDING if node is None else Phase.RUNNING,
        created_at=NOW - random.choice((3.0, 10.0, 90.0)) if node is None else started - 5,
        started_at=None if node is None else started,
    )
    if random.random() < 0.5:
        length = RunLength(random.choice((random.randint(60, 36000) * 1.0, 300.0)), RunLengthSource.ANNOTATION)
        job = Owner("Job", name, f"{name}-job")
        pod = msgspec.structs.replace(pod, kind=WorkKind.BATCH, owner=job, run_length=length)
    pod = altered(random, pod, 0.15)
    alone = node is None and not pod.is_mirror
    return msgspec.structs.replace(pod, deleted_at=None, node=None) if alone else pod


def cases(crowds: int) -> Iterator[tuple[str, ClusterSnapshot, Policy, frozenset[Stage]]]:
    for pods, nodes in BENCHES:
        for form in ("200", "unique"):
            yield f"bench {pods} {nodes} {form}", bench.snapshot(pods, nodes, form), bench.policy(), ALL_STAGES
    for seed in range(crowds):
        due = ALL_STAGES if seed % 5 else frozenset({Stage.CLEANING})
        for made in (crowd, crowded, grown):
            yield f"{made.__name__} {seed}", *made(seed), due


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("crowds", type=int, help="so many random clusters of each kind")
    for name, snapshot, policy, due in cases(parser.parse_args().crowds):
        made = plan(snapshot, policy, NOW, due)
        digest = blake2b(msgspec.json.encode(made), digest_size=8).hexdigest()
        sys.stdout.write(f"{name:<24} {digest} {len(made.bind)} {len(made.launch)} {len(made.unplaced)}\n")


if __name__ == "__main__":
    main()
