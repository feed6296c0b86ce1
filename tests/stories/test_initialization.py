"""A launched machine counts once it is initialized: Ready, without start-up taints, with all that its flavour promises."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.constraints import Toleration
from htas.model.policy import NodeGroup, Policy, Timeouts
from htas.model.reasons import Unplaced
from htas.sandbox.cloud import Shows
from htas.sandbox.workload import Workload
from tests.builders import constrained, make_flavour, make_policy, no_schedule
from tests.stories.play import Story, job, service

HOUR = 3600.0
GPU = "nvidia.com/gpu"
AGENT = no_schedule("node.cilium.io/agent-not-ready")
GPUS = make_flavour("gpu", "8", "32Gi", "2", extended={GPU: 1})
PLAIN = make_flavour("plain", "4", "16Gi", "0.2")


def gpu_job(name: str = "train", **fields: Any) -> Any:
    requests = msgspec.structs.replace(job(name).task.requests, extended=((GPU, 1),))
    return job(name, requests=requests, **fields) if False else _with(job(name, **fields), requests)


def _with(arrival: Any, requests: Any) -> Any:
    return msgspec.structs.replace(arrival, task=msgspec.structs.replace(arrival.task, requests=requests))


def policy(**group: Any) -> Policy:
    return make_policy([NodeGroup("any", **group)], (GPUS, PLAIN))


def launched(story: Story) -> int:
    return len(story.world.ledger.rentals)


@pytest.mark.parametrize("after_s", [0.0, 30.0, 90.0, 180.0, 300.0, 600.0, 850.0])
def test_a_gpu_that_comes_late_takes_one_machine(after_s: float) -> None:
    story = Story(policy(), gpu_job())
    story.world.cloud.shows = Shows(devices_after_s=after_s)
    story.play(2 * HOUR).assert_over(1)
    assert launched(story) == 1
