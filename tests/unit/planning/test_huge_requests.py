"""Pods that ask for more than a column can hold: their sum must not turn into room that is not there."""

from __future__ import annotations

import msgspec
import pytest

from htas.adapters.sqlite.store import SqliteStore
from htas.model.pods import Pod
from htas.model.quantity import MAX_AMOUNT
from htas.model.resources import Resources
from htas.planning.planner import plan
from htas.profiler.rows import profile_rows
from tests.builders import NOW, make_node, make_pod, make_policy, make_snapshot, running

GPU = "nvidia.com/gpu"


def placed_by_hand(name: str, node: str, cpu_m: int = 1, memory_bytes: int = 1, gpus: int = 0) -> Pod:
    """Its author wrote the node's name into it."""
    extended = ((GPU, gpus),) if gpus else ()
    pod = make_pod(name, namespace="hostile", requests=Resources(cpu_m, memory_bytes, 0, 1, extended))
    return msgspec.structs.replace(pod, node=node)


@pytest.mark.parametrize("pods", [2, 3, 4, 50])
@pytest.mark.parametrize("less", [0, 4_000, 2**33, 2**60])
def test_a_full_node_stays_full(pods: int, less: int) -> None:
    full = [running(make_pod(f"web-{i}", "2", "4Gi"), "full") for i in range(2)]
    amount = MAX_AMOUNT - less
    huge = [placed_by_hand(f"huge-{i}", "full", amount, amount) for i in range(pods)]
    snapshot = make_snapshot([make_node("full")], [*full, *huge, make_pod("quiet", "1", "2Gi")])
    assert plan(snapshot, make_policy(), NOW).bind == ()


@pytest.mark.parametrize("pods", [1, 2, 3])
def test_a_node_without_gpus_gets_none_from_those_who_ask_for_all_there_are(pods: int) -> None:
    """A kubelet passes over what its node does not know, so that such pods go on running."""
    nodes = [make_node("plain"), make_node("fast", extended={"nvidia__com/gpu": 1})]
    huge = [running(placed_by_hand(f"huge-{i}", "plain", gpus=MAX_AMOUNT), "plain") for i in range(pods)]
    busy, training = (make_pod(name, requests=Resources(1000, 2**30, 0, 1, ((GPU, 1),))) for name in ("busy", "next"))
    made = plan(make_snapshot(nodes, [*huge, running(busy, "fast"), training]), make_policy(), NOW)
    assert made.bind == ()


def test_the_profile_can_be_written() -> None:
    huge = [placed_by_hand(f"huge-{i}", "full", MAX_AMOUNT, MAX_AMOUNT) for i in range(3)]
    rows = profile_rows(None, make_snapshot([make_node("full")], huge), make_policy())
    store = SqliteStore(":memory:")
    store.add_profile(rows)
    assert list(store.profile()) == rows
    assert min(row.ramavailable for row in rows) == -MAX_AMOUNT
    store.close()
