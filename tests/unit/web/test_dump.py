"""The pages of a dump: what waits in it, what has no price, and rules lifted one after the other."""

from __future__ import annotations

import json
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import pytest

from htas.cli.ui import seat_of_dump
from htas.documents.what_if import Changes, NewFlavour, Simulated, simulated
from htas.planning.what_if.adopting import adopt
from htas.ports import GivenError
from htas.web.reports.cluster import ClusterReport, cluster_report
from htas.web.seat import Seat
from tests.unit.cli.clusters import TWO_FLAVOURS, machine, placed, three_large_nodes
from tests.unit.cli.dump import pod


def seat_of(folder: Path, objects: list[dict[str, Any]]) -> Seat:
    (folder / "prices.yaml").write_text(TWO_FLAVOURS)
    (folder / "dump.json").write_text(json.dumps({"kind": "List", "items": objects}))
    return seat_of_dump(folder / "dump.json", folder / "prices.yaml", None, None)


def told(folder: Path, *more: dict[str, Any]) -> ClusterReport:
    seat = seat_of(folder, three_large_nodes(*more))
    return cluster_report(seat, seat.picture())


def of_another(name: str, cpu: str) -> dict[str, Any]:
    return pod(name, cpu, "1Gi", spec={"schedulerName": "default-scheduler"})


def test_what_waits_in_a_dump_is_shown_with_its_reason(tmp_path: Path) -> None:
    found = told(tmp_path, of_another("too-large", "64"), of_another("fits", "1"), of_another("buys", "3500m"))
    assert found.totals.waiting == 3
    assert [(each.reason, each.pods, each.such_as) for each in found.waiting] == [
        ("NoFlavourFits", 1, "default/too-large")
    ]
    assert [(each.flavour, each.pods) for each in found.coming] == [("large", 1)]


def test_nodes_are_judged_as_if_nothing_waited(tmp_path: Path) -> None:
    waits = told(tmp_path, of_another("fits", "1"))
    assert waits.reasons == told(tmp_path).reasons


def test_nodes_without_a_price_are_counted_and_have_a_reason(tmp_path: Path) -> None:
    found = told(tmp_path, machine("d", "unknown", "4", "8Gi"), machine("e", "unknown", "4", "8Gi"))
    assert (found.totals.nodes, found.totals.unpriced, found.totals.price_per_hour) == (5, 2, "1.20")
    reason = next(each for each in found.reasons if each.reason == "NoPrice")
    assert (reason.nodes, "price file" in reason.meaning.remedy) == (2, True)


RULES = ("LocalStorageRequested", "NotSafeToEvictAnnotation", "ServiceNotOptedIn")


def held_in_three_ways() -> list[dict[str, Any]]:
    """With the second and the third rule lifted 0.95 is found; with all three, what is bought anew comes to 1.00."""
    safe = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    scratch = [placed("scratch-b", "b", "1300m", "2600Mi"), placed("scratch-c", "c", "300m", "600Mi")]
    for each in scratch:
        each["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}]
    plain = {"a": (1700,), "b": (1300,), "c": (500, 2300)}
    return [
        *(machine(name, "large", "4", "8Gi") for name in plain),
        *(placed(f"web-{name}-{m}", name, f"{m}m", f"{2 * m}Mi") for name, sizes in plain.items() for m in sizes),
        placed("unsafe-a", "a", "900m", "1800Mi", annotations=safe),
        placed("unsafe-b", "b", "1300m", "2600Mi", annotations=safe),
        *scratch,
    ]


def test_another_rule_lifted_never_costs_more(tmp_path: Path) -> None:
    picture = seat_of(tmp_path, held_in_three_ways()).picture()
    view, policy, now = picture.snapshot.cluster, picture.policy, picture.at
    choices = [rules for size in range(4) for rules in combinations(RULES, size)]
    costs = {rules: Decimal(simulated(view, policy, now, Changes(lift=rules)).best.price_per_hour) for rules in choices}
    dearer = [(few, more) for few in choices for more in choices if set(few) < set(more) and costs[more] > costs[few]]
    assert (dearer, costs[RULES]) == ([], Decimal("0.95"))


def batch_work(*nodes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Jobs of so many milli-cores on nodes of 4 cores, each with 2 MiB for every one of them."""
    jobs = [(f"n{i}", f"job-{i}-{j}", m) for i, on in enumerate(nodes) for j, m in enumerate(on)]
    return [
        *(machine(f"n{i}", "large", "4", "8Gi") for i in range(len(nodes))),
        *(placed(name, node, f"{m}m", f"{2 * m}Mi", "Job/j") for node, name, m in jobs),
    ]


def best(folder: Path, objects: list[dict[str, Any]], **change: Any) -> str:
    picture = seat_of(folder, objects).picture()
    found = simulated(picture.snapshot.cluster, picture.policy, picture.at, Changes(**change))
    return found.best.price_per_hour


def test_work_that_came_a_moment_ago_is_bought_for_as_well(tmp_path: Path) -> None:
    """The daemon would wait for company; of a dump nobody comes, and one large flavour for all is the best there is."""
    work, roomy = batch_work((1300, 700, 700), (1300,)), NewFlavour("roomy", "7", "13Gi", "0.08")
    assert best(tmp_path, work, flavours=(roomy,)) == "0.08"


@pytest.mark.parametrize(
    ("nodes", "change"),
    [
        pytest.param(
            ((700, 1300, 700), (1300,), (500, 1300)),
            {"flavours": (NewFlavour("new", "1", "7Gi", "0.83"),)},
            id="a flavour that nobody would buy: 0.55 was found where there was 0.45",
        ),
        pytest.param(
            ((1300,), (900, 500, 900), (1100, 700)),
            {"flavours": (NewFlavour("new", "5", "5Gi", "0.16"), NewFlavour("dear", "1", "7Gi", "0.83"))},
            id="one that looks cheap, and another: 0.47",
        ),
        pytest.param(
            ((500,), (1100,), (500, 1300, 1100)), {"prices": {"large": "0.33"}}, id="a lower price: 0.48 where 0.45"
        ),
        pytest.param(
            ((900,), (700, 1100, 1300), (1300,)), {"prices": {"large": "0.31", "small": "0.15"}}, id="and one as it is"
        ),
    ],
)
def test_more_to_choose_from_never_costs_more(nodes: Any, change: dict[str, Any], tmp_path: Path) -> None:
    work = batch_work(*nodes)
    assert Decimal(best(tmp_path, work, **change)) <= Decimal(best(tmp_path, work))


def test_what_waits_makes_the_least_possible_no_dearer_where_no_figure_has_it(tmp_path: Path) -> None:
    """With ten pods waiting the least was told to be 1.20, which is what the nodes cost; so it was with room kept."""
    waiting = [of_another(f"w{i}", "3500m") for i in range(10)]
    found = [seat_of(tmp_path, three_large_nodes(*more)).picture() for more in ((), waiting)]
    views = [each.snapshot.cluster for each in found]
    nominated = [msgspec.structs.replace(pod, nominated_node=pod.node or "a") for pod in views[1].pods]
    views.append(msgspec.structs.replace(views[1], pods=tuple(nominated)))
    policy, at = found[0].policy, found[0].at
    alone, beside, kept = (simulated(view, policy, at, Changes()) for view in views)
    assert (beside.least_per_hour, beside.best) == (alone.least_per_hour, alone.best)
    assert (kept.least_per_hour, kept.best) == (alone.least_per_hour, alone.best)
    assert beside.bought, "what waits is bought for"


def test_flavours_that_are_added_have_names_of_their_own(tmp_path: Path) -> None:
    seat = seat_of(tmp_path, three_large_nodes()).picture()
    twice = (NewFlavour("x", "4", "8Gi", "0.01"), NewFlavour("x", "64", "256Gi", "5"))
    with pytest.raises(GivenError, match="there is a flavour 'x' already"):
        simulated(seat.snapshot.cluster, seat.policy, seat.at, Changes(flavours=twice))


@pytest.mark.parametrize(
    "change",
    [Changes(prices={"small": "9223372037"}), Changes(flavours=(NewFlavour("x", "4", "8Gi", "1000000.1"),))],
    ids=["of a flavour", "of one that is added"],
)
def test_a_price_is_one_that_a_price_file_could_have(change: Changes, tmp_path: Path) -> None:
    """The planner's sums overflowed: an error of the server, and a traceback in its log."""
    seat = seat_of(tmp_path, three_large_nodes()).picture()
    with pytest.raises(GivenError, match="is above a million an hour"):
        simulated(seat.snapshot.cluster, seat.policy, seat.at, change)


def test_a_higher_price_is_paid(tmp_path: Path) -> None:
    """What is cheapest today is no answer at prices that went up."""
    nodes = ((500,), (1100,), (500, 1300, 1100))
    dearer = {"large": "0.80", "small": "0.30"}
    assert Decimal(best(tmp_path, batch_work(*nodes), prices=dearer)) == 2 * Decimal(best(tmp_path, batch_work(*nodes)))


def asked(folder: Path, objects: list[dict[str, Any]], **change: Any) -> Simulated:
    picture = seat_of(folder, objects).picture()
    return simulated(picture.snapshot.cluster, picture.policy, picture.at, Changes(**change))


ROOMY = NewFlavour("roomy", "80", "200Gi", "0.90")
WAITING = [of_another("too-large", "64"), of_another("buys", "3500m")]


@pytest.mark.parametrize(
    ("change", "waiting", "bought", "now"),
    [
        pytest.param({}, {"NoFlavourFits": 1}, {"large": 1}, "1.20", id="as it is: what waits is in no figure"),
        pytest.param(
            {"prices": {"small": "0.01"}}, {"NoFlavourFits": 1}, {"large": 1}, "1.20", id="nor where a price is lower"
        ),
        pytest.param({"flavours": (ROOMY,)}, {}, {"roomy": 1}, "2.10", id="a flavour that takes it in is paid for"),
        pytest.param(
            {"replicas": {"default/ReplicaSet/web": 4}}, {"NoFlavourFits": 1}, {"large": 1}, "1.60", id="so is growth"
        ),
    ],
)
def test_pods_that_wait_are_counted_where_the_change_decides_about_them(
    change: dict[str, Any], waiting: dict[str, int], bought: dict[str, int], now: str, tmp_path: Path
) -> None:
    """A pod of 64 cores was gone from the answer once a flavour held it: neither waiting nor paid for."""
    found = asked(tmp_path, three_large_nodes(*WAITING), **change)
    assert (found.waiting, found.bought, found.now.price_per_hour) == (waiting, bought, now)
    assert found.counts_bought == (now != "1.20")


def small_with_an_agent() -> list[dict[str, Any]]:
    """A machine of 2 cores with a pod of 1 core, and a DaemonSet's of 100m: one such pod fits on each machine."""
    on_each = placed("cni-a", "a", "100m", "128Mi", "DaemonSet/cni", namespace="kube-system")
    return [machine("a", "small", "2", "4Gi"), placed("web-a", "a", "1", "1Gi"), on_each]


def test_machines_that_are_bought_run_the_daemon_sets_too(tmp_path: Path) -> None:
    """Ten pods of one core were packed onto six machines of two, nine of which had been bought a moment before."""
    objects = small_with_an_agent()
    found = asked(tmp_path, objects, replicas={"default/ReplicaSet/web": 10}, prices={"large": "9"})
    assert (found.bought, found.now.nodes, found.best.nodes, found.best.moves) == ({"small": 9}, 10, 10, 0)
    assert found.best.price_per_hour == "1.50"


def test_a_flavour_that_holds_no_pod_makes_the_least_possible_no_lower(tmp_path: Path) -> None:
    tiny = NewFlavour("tiny", "1m", "1Mi", "0.00001")
    known = asked(tmp_path, three_large_nodes())
    assert asked(tmp_path, three_large_nodes(), flavours=(tiny,)).least_per_hour == known.least_per_hour


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    """Two flavours that made no sense were in the page's list, and it told of the first alone."""
    wrong = Changes(
        prices={"small": "-1", "none": "1"},
        flavours=(NewFlavour("neg", "96", "512Gi", "-1"), NewFlavour("vast", "1e30", "1Ei", "0.5")),
        replicas={"default/ReplicaSet/web": 20_001, "default/ReplicaSet/none": 1},
    )
    picture = seat_of(tmp_path, three_large_nodes()).picture()
    with pytest.raises(GivenError) as raised:
        simulated(picture.snapshot.cluster, picture.policy, picture.at, wrong)
    assert [line.partition(": ")[0] for line in str(raised.value).splitlines()] == [
        "prices.small",
        "prices.none",
        "flavours.neg.price",
        "flavours.vast",
        "replicas.default/ReplicaSet/web",
        "replicas.default/ReplicaSet/none",
    ]


def test_static_pods_of_every_node_come_once_with_a_new_one(tmp_path: Path) -> None:
    """A page's cluster is adopted already: adopted again for a question each machine ran its static pods twice."""
    proxy = placed("proxy-a", "a", "100m", "128Mi", "Node/a", namespace="kube-system")
    proxy["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    proxy["metadata"]["ownerReferences"][0]["apiVersion"] = "v1"
    seat = seat_of(tmp_path, [machine("a", "small", "2", "4Gi"), placed("web-a", "a", "1", "1Gi"), proxy])
    picture = seat.picture()
    view = msgspec.structs.replace(picture.snapshot.cluster, daemons=())
    for _ in range(2):
        view = adopt(view, picture.policy, picture.at).snapshot.cluster
        assert [pod.name for pod in view.daemons or ()] == ["proxy-a"]
