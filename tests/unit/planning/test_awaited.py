"""What is remembered of machines that were bought for those who wait."""

from __future__ import annotations

from htas.model.pods import Owner
from htas.model.snapshot import AwaitedMachine
from htas.planning.provision.not_let_in import MOST_CLAIMS, CameOf, with_bought
from tests.builders import make_pod, make_policy

WEB = [make_pod(f"web-{i}", owner=Owner("ReplicaSet", "web")) for i in range(MOST_CLAIMS + 5)]
ALONE = make_pod("alone", owner=None)


def remembered(came: CameOf, bought: dict[str, list[int]]) -> list[tuple[str, ...]]:
    machines = [(claim, [WEB[i] if i >= 0 else ALONE for i in pods]) for claim, pods in bought.items()]
    found = with_bought(came, machines, [*WEB, ALONE], make_policy())
    return sorted(each.claims for each in found.values())


def test_an_owner_awaits_each_of_its_machines_once() -> None:
    assert remembered(CameOf(), {"a": [0, 2], "b": [1, 3, -1]}) == [("a", "b"), ("b",)]


def test_what_came_before_is_kept_and_goes_on() -> None:
    (owner,) = with_bought(CameOf(), [("a", [WEB[0]])], WEB, make_policy())
    before = CameOf({owner: AwaitedMachine(("old", "a"), times=2)})
    assert remembered(before, {"a": [0], "b": [1]}) == [("old", "a", "b")]


def test_so_many_machines_are_followed_for_an_owner() -> None:
    [claims] = remembered(CameOf(), {f"c{i:02d}": [i] for i in range(MOST_CLAIMS + 5)})
    assert claims == tuple(f"c{i:02d}" for i in range(MOST_CLAIMS))


def test_nothing_is_awaited_where_nothing_is_bought() -> None:
    assert remembered(CameOf(), {}) == []
