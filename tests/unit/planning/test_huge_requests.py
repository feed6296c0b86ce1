"""Pods that ask for more than a column can hold: their sum must not turn into room that is not there."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.adapters.sqlite.store import SqliteStore
from htas.model.pods import Pod
from htas.model.quantity import MAX_AMOUNT
from htas.model.resources import Resources
from htas.planning.cluster.classes import MOST, ResourceAxis
from htas.planning.planner import plan
from htas.profiler.rows import profile_rows
from tests.builders import NOW, make_flavour, make_node, make_pod, make_policy, make_snapshot, running

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


MOST_MEMORY = ("200Ti", "16Ei", str(2**47), str(2**47 - 1))


@pytest.mark.parametrize("offered", MOST_MEMORY)
@pytest.mark.parametrize("asked", ["5Ei", "16Ei", "201Ti"])
def test_who_asks_for_more_than_columns_hold_is_not_bound(offered: str, asked: str) -> None:
    """5 Ei and 200 Ti once were the same amount, the most that a column counts, so that the pod was bound."""
    snapshot = make_snapshot([make_node("large", memory=offered)], [make_pod("larger", "1", asked)])
    policy = make_policy(flavours=[make_flavour("large", "8", offered, "1")])
    made = plan(snapshot, policy, NOW)
    assert made.bind == () and made.launch == ()


@pytest.mark.parametrize("offered", MOST_MEMORY)
@pytest.mark.parametrize("asked", ["1Gi", "127Ti"])
def test_a_node_of_more_than_columns_hold_takes_what_they_count(offered: str, asked: str) -> None:
    snapshot = make_snapshot([make_node("large", memory=offered)], [make_pod("small", "1", asked)])
    assert [item.node for item in plan(snapshot, make_policy(), NOW).bind] == ["large"]


AMOUNTS = st.integers(0, 40) | st.integers(2**47 - 3, 2**47 + 3) | st.integers(0, MAX_AMOUNT)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.tuples(AMOUNTS, AMOUNTS), min_size=5, max_size=5))
def test_law_what_fits_in_columns_fits(amounts: list[tuple[int, int]]) -> None:
    """Whatever is asked for and offered; and what a column counts in full fits if it does, too."""
    asked, offered = (
        Resources(cpu, memory, ephemeral, pods, ((GPU, gpus),))
        for cpu, memory, ephemeral, pods, gpus in zip(*amounts, strict=True)
    )
    axis = ResourceAxis([GPU])
    in_columns = bool((axis.vector(asked) <= axis.room(offered)).all())
    assert not in_columns or asked.fits_in(offered)
    if all(amount < MOST for amount, _ in amounts):
        assert in_columns == asked.fits_in(offered)
