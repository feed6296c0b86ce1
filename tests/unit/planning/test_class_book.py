"""Classes of pods that share their parts, as those of one template do: what else tells them apart is looked at."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.constraints import Constraints, PodAffinityTerm
from htas.model.nodes import DO_NOT_DISRUPT, HOSTNAME_LABEL
from htas.model.packing import Packing, PackingAlgorithm
from htas.model.pods import Pod, RunLength, RunLengthSource
from htas.model.policy import NodeGroup, Policy, Workload
from tests.builders import batch_group, labels_are, make_job, make_pod, make_policy, opened

JOB = make_job("job", 600.0)
SHY = make_pod("shy", constraints=Constraints(anti_affinity=(PodAffinityTerm(HOSTNAME_LABEL, labels_are(app="a")),)))
LENDING = make_policy([NodeGroup("services", Workload.SERVICE, lends_room=True), batch_group()])
SCORED = make_policy([NodeGroup("any", packing=Packing(PackingAlgorithm.SCORED))])
UNGROUPED_SCORED = make_policy(packing=Packing(PackingAlgorithm.SCORED))
MOUNTING = make_pod("data", constraints=Constraints(claims=("disk",)))


@pytest.mark.parametrize(
    ("pod", "change", "policy", "others"),
    [
        pytest.param(JOB, {"labels": {"app": "a"}}, LENDING, [SHY], id="a label that somebody keeps away from"),
        pytest.param(JOB, {"scoring_cpu_m": 700}, SCORED, [], id="what scores count of it"),
        pytest.param(JOB, {"scoring_cpu_m": 700}, UNGROUPED_SCORED, [], id="what scores of nodes of no group count"),
        pytest.param(JOB, {"disruption": {DO_NOT_DISRUPT: "true"}}, LENDING, [], id="it holds its node: none is lent"),
        pytest.param(MOUNTING, {"namespace": "other"}, LENDING, [], id="a claim of that name of another namespace"),
        pytest.param(JOB, {"priority": 1}, LENDING, [], id="its priority"),
        pytest.param(JOB, {"scheduler": "other"}, LENDING, [], id="its scheduler"),
        pytest.param(
            JOB, {"run_length": RunLength(601.0, RunLengthSource.ANNOTATION)}, LENDING, [], id="its run length"
        ),
        pytest.param(
            JOB, {"run_length": RunLength(600.0, RunLengthSource.DEFAULT)}, LENDING, [], id="who says its run length"
        ),
    ],
)
def test_pods_that_share_their_parts_are_told_apart(
    pod: Pod, change: dict[str, Any], policy: Policy, others: list[Pod]
) -> None:
    twin, other = (msgspec.structs.replace(pod, name=name, **how) for name, how in (("twin", {}), ("other", change)))
    assert other.requests is pod.requests
    assert other.constraints is pod.constraints
    book = opened([], [*others, pod, twin, other], policy).book
    assert book.class_of(twin) is book.class_of(pod)
    assert book.class_of(other) is not book.class_of(pod)
