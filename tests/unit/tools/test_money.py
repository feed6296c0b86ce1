"""The bench of bills: its families are the same for a seed, its bound is below every bill, its table tells the truth."""

from __future__ import annotations

from pathlib import Path
from random import Random

import msgspec
import pytest

from htas.cli.tables import show
from htas.config.loader import load_configuration
from htas.config.places import config_file
from htas.model.billing import Billing
from htas.model.flavours import Catalogue, Flavour
from htas.model.moves import MigrationMethod
from htas.model.pods import WorkKind
from htas.model.policy import CleaningRules
from htas.model.resources import Resources
from htas.planning.planner import plan
from htas.sandbox.workload import Arrival, ControllerKind, Task, Workload
from htas.sandbox.workloads.openb import GPU_MILLI
from tests.builders import amounts, make_node, make_pod
from tools.bench.money.__main__ import CONTENDERS, seeds
from tools.bench.money.accounting import Accountant, used
from tools.bench.money.beside_clairvoyant import Beside, beside_rows
from tools.bench.money.books import books
from tools.bench.money.bound import least_nano_seconds
from tools.bench.money.clairvoyant import Stay, exact, near_optimum, problem
from tools.bench.money.families import families
from tools.bench.money.playing import Played, as_shipped, contender_of, play
from tools.bench.money.scenes import Scene
from tools.bench.money.table import estimate, rows, table
from tools.lab.contenders import Contender
from tools.lab.trials.bill import Trial, run

GIB = 2**30
TRACE = Path(__file__).parents[3] / "htas/sandbox/workloads/openb_sample.csv"


@pytest.mark.parametrize("name", families(TRACE))
def test_a_family_is_the_same_for_a_seed_and_differs_between_seeds(name: str) -> None:
    family = families(TRACE)[name]
    assert family.draw(11) == family.draw(11)
    assert family.draw(11).work != family.draw(12).work


@pytest.mark.parametrize("name", families(TRACE))
def test_some_flavour_of_a_family_holds_each_of_its_tasks(name: str) -> None:
    scene = families(TRACE)[name].draw(11)
    for arrival in scene.work.arrivals:
        assert any(arrival.task.requests.fits_in(each.allocatable) for each in scene.catalogue.flavours)


@pytest.mark.parametrize(("text", "found"), [("11-13", [11, 12, 13]), ("101,102", [101, 102]), ("1,5-6", [1, 5, 6])])
def test_seeds_are_named_one_by_one_or_as_a_range(text: str, found: list[int]) -> None:
    assert seeds(text) == found


def _flavour(name: str, cores: int, gib: int, price: int) -> Flavour:
    return Flavour(name, Resources(cores * 1000, gib * GIB, 0, 110), price)


def _scene(tasks: list[Task], *flavours: Flavour) -> Scene:
    controllers = [ControllerKind.JOB if task.runs_s is not None else ControllerKind.REPLICA_SET for task in tasks]
    arrivals = tuple(Arrival(0.0, task, kind) for task, kind in zip(tasks, controllers, strict=True))
    return Scene(Workload("by hand", arrivals), Catalogue(flavours, billing=Billing(1, 1)), startup_s=60.0)


def _job(name: str, cores: int, gib: int, runs_s: float) -> Task:
    return Task(name, Resources(cores * 1000, gib * GIB, 0, 1), kind=WorkKind.BATCH, runs_s=runs_s)


@pytest.mark.parametrize(
    ("scene", "nanos_per_hour_seconds"),
    [
        pytest.param(
            _scene([_job("a", 2, 1, 100)], _flavour("two", 2, 4, 10)), 1000, id="a-job-that-fills-a-machines-cores"
        ),
        pytest.param(
            _scene([_job("a", 1, 1, 100)], _flavour("two", 2, 4, 10)), 500, id="half-a-machine-may-be-somebody-elses"
        ),
        pytest.param(
            _scene([_job("a", 1, 1, 100)], _flavour("two", 2, 4, 10), _flavour("one", 1, 1, 3)),
            300,
            id="the-cheaper-flavour-sets-the-price",
        ),
        pytest.param(
            _scene([_job("a", 2, 0, 100), _job("b", 0, 4, 100)], _flavour("two", 2, 4, 10)),
            1000,
            id="what-needs-cores-and-what-needs-memory-share-a-machine",
        ),
        pytest.param(
            _scene([_job("a", 2, 0, 100), Task("web", Resources(2000, 0, 0, 1))], _flavour("two", 2, 4, 10)),
            1000,
            id="a-service-that-may-come-up-after-the-last-job-costs-nothing",
        ),
    ],
)
def test_the_least_that_work_can_cost(scene: Scene, nanos_per_hour_seconds: int) -> None:
    assert least_nano_seconds(scene) == pytest.approx(nanos_per_hour_seconds, abs=1)


def test_a_run_costs_at_least_the_bound_and_is_written_and_read_as_it_was() -> None:
    played = play("trickle", 11, "htas")
    assert played.bill > played.bound > 0
    assert not played.note
    assert msgspec.json.decode(msgspec.json.encode(played), type=Played) == played


def _played(contender: str, seed: int, bill: int, wait_s: float = 10.0, note: str = "") -> Played:
    return Played("trickle", seed, contender, bill, 50, wait_s, wait_s, 0.0, 0, 1, note)


def test_the_best_fair_baseline_is_the_one_that_is_cheapest_over_all_seeds() -> None:
    seeds = range(11, 16)
    played = [
        *(_played("htas", seed, 100) for seed in seeds),
        *(_played("karpenter-pinned", seed, 80 if seed == 11 else 200) for seed in seeds),
        *(_played("stratus-20s", seed, 125) for seed in seeds),
        *(_played("karpenter", seed, 10) for seed in seeds),  # as shipped: not among the fair ones
    ]
    (row,) = rows(played, ["trickle"])
    assert (row.best, row.to_best.mean) == ("stratus-20s", pytest.approx(0.8))
    assert (row.is_cheapest, row.verdict) == (True, "as cheap")
    assert row.to_bound.mean == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("bills", "verdict", "told"),
    [
        pytest.param([90, 110], "too few seeds", ["1.000", "0.900, 1.100"], id="two-seeds-tell-nothing"),
        pytest.param([140] * 4, "too few seeds", ["1.400", "1.400, 1.400"], id="nor-do-four-that-agree"),
        pytest.param([140] * 5, "dearer", ["1.400 ± 0.000", "1.400 to 1.400"], id="five-do"),
        pytest.param([90, 90, 100, 110, 120], "as cheap", ["1.020 ± 0.162", "0.900 to 1.200"], id="dearer-by-chance"),
    ],
)
def test_a_verdict_is_given_where_there_are_seeds_for_one(
    bills: list[int], verdict: str, told: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The table is told off a terminal: a row on one line, however long, so that every figure can be read."""
    ours = [_played("htas", seed, bill) for seed, bill in enumerate(bills)]
    found = rows([*ours, *(_played("stratus-20s", each.seed, 100) for each in ours)], ["trickle"])
    assert [row.verdict for row in found] == [verdict]
    show(table(found))
    out = capsys.readouterr().out
    assert all(text in out for text in ("HTAS's bill ÷ its", "stratus-20s", verdict, *told))
    assert ("no verdict" in out) is (verdict == "too few seeds")


def test_a_run_that_was_given_up_counts_for_nobody() -> None:
    played = [
        *(_played("htas", seed, 100) for seed in (11, 12)),
        _played("karpenter-pinned", 11, 10),
        _played("karpenter-pinned", 12, 10, note="given up"),
        *(_played("stratus-20s", seed, 100) for seed in (11, 12)),
    ]
    (row,) = rows(played, ["trickle"])
    assert row.best == "stratus-20s"


def test_waiting_is_judged_beside_the_best_baseline() -> None:
    played = [_played("htas", 11, 100, wait_s=60.0), _played("stratus-20s", 11, 100, wait_s=40.0)]
    assert not rows(played, ["trickle"])[0].is_quick
    assert rows([_played("htas", 11, 100, wait_s=49.0), played[1]], ["trickle"])[0].is_quick


def test_an_estimate_has_students_interval() -> None:
    found = estimate([0.9, 1.1])
    assert found.mean == pytest.approx(1.0)
    assert found.half_width == pytest.approx(12.706 * 0.02**0.5 / 2**0.5)
    assert estimate([0.9]).half_width is None


def _played_with_books(family: str, invoice: int, said: int, off: int = 0) -> Played:
    return msgspec.structs.replace(_played("htas", 11, invoice), family=family, invoice=invoice, said=said, off=off)


def test_books_are_exact_only_if_they_never_differed() -> None:
    played = [_played_with_books("a", 5, 5), _played_with_books("b", 5, 6, 1), _played_with_books("c", 5, 5, 2)]
    assert [(row.family, row.is_exact) for row in books(played, "abc")] == [("a", True), ("b", False), ("c", False)]


OFFERED = Catalogue((_flavour("two", 2, 4, 10), _flavour("four", 4, 8, 18)), billing=Billing(60, 60))
NAMES = ("cpu", "memory")


@pytest.mark.parametrize(
    ("stays", "bill"),
    [
        pytest.param([Stay(0, 60, (2000, GIB))], 10 * 180, id="one-machine-from-a-start-before-it-is-needed"),
        pytest.param([Stay(0, 60, (2000, GIB)), Stay(60, 120, (2000, GIB))], 10 * 240, id="one-after-the-other"),
        pytest.param([Stay(0, 60, (2000, GIB))] * 2, 18 * 180, id="both-on-one-large-machine"),
        pytest.param(
            [Stay(0, 60, (2000, GIB)), Stay(0, 3600, (2000, GIB))], 10 * (180 + 3720), id="short-beside-long-on-its-own"
        ),
    ],
)
def test_what_a_clairvoyant_pays(stays: list[Stay], bill: int) -> None:
    found = problem(stays, OFFERED, NAMES, startup_s=120.0)
    assert (exact(found), near_optimum(found)) == (bill, bill)


@pytest.mark.parametrize("seed", range(4))
def test_the_annealing_comes_to_the_optimum_of_small_cases(seed: int) -> None:
    random = Random(seed)
    stays = [
        Stay(begin, begin + random.uniform(60, 900), (random.choice((500, 1000, 2000)), random.choice((1, 2)) * GIB))
        for begin in (random.uniform(0, 600) for _ in range(8))
    ]
    found = problem(stays, OFFERED, NAMES, startup_s=60.0)
    assert exact(found) <= near_optimum(found, steps_a_pod=1000) <= 1.01 * exact(found)


def test_families_beside_the_clairvoyant_are_held_against_their_goals() -> None:
    found = [Beside("stable", seed, bill, 100, 5) for seed, bill in ((11, 104), (12, 110))]
    rows = beside_rows(
        [*found, Beside("heavy-tailed", 11, 130, 100, 5), Beside("long", 11, 1, 100, 5, note="given up")]
    )
    told = {row.family: (round(row.ratio.mean, 3), row.is_reached) for row in rows}
    assert told == {"stable": (1.07, True), "heavy-tailed": (1.3, False), "all steady": (1.07, True)}


def test_every_second_of_a_rental_is_accounted_for() -> None:
    """One job of 1 core and 600 s on a machine of 2 cores and 4 GiB that comes after 120 s, billed by the minute."""
    flavour, accountant = _flavour("two", 2, 4, 3600), Accountant()
    catalogue = Catalogue((flavour,), billing=Billing(60, 60))
    job = Arrival(0.0, _job("a", 1, 1, 600), ControllerKind.JOB)
    trial = Trial(Contender("htas", "", as_shipped(catalogue), plan), "by hand", Workload("by hand", (job,)), 1)
    bill = run(trial, accountant.saw)[0].bill_nano_seconds
    parts = {name: amount / 3600 for name, amount in accountant.parts_of(bill).items()}
    assert sum(parts.values()) == bill / 3600
    assert parts["start"] == pytest.approx(120, abs=10)
    assert parts["used"] == pytest.approx(300, abs=10)
    assert parts["room"] == pytest.approx(300, abs=10)
    assert 0 <= parts["rounding"] <= 120


def test_a_contender_is_htas_as_it_is_by_default_with_openstack() -> None:
    """There nothing keeps the progress of moved jobs, and nodes are emptied later; all else is as shipped."""
    catalogue = families()["stable"].draw(11).catalogue
    shipped, evicts = (contender_of(name, "stable", catalogue, None).policy for name in ("htas", "htas-evicts"))
    assert "htas-evicts" in CONTENDERS
    assert {group.cleaning.migration for group in evicts.groups} == {MigrationMethod.EVICT}
    assert [group.cleaning for group in evicts.groups] != [group.cleaning for group in shipped.groups]
    openstack = load_configuration(config_file("openstack.yaml")).policy
    assert {group.cleaning for group in evicts.groups} == {group.cleaning for group in openstack.groups}
    alike = (msgspec.structs.replace(group, cleaning=CleaningRules()) for group in shipped.groups)
    assert evicts == msgspec.structs.replace(shipped, groups=tuple(alike))


@pytest.mark.parametrize(
    ("pods", "share"),
    [
        pytest.param([("24", 4000)], 1.0, id="all-gpus-taken"),
        pytest.param([("12", 1500), ("1", 500)], 0.5, id="shares-of-gpus"),
        pytest.param([("96", 0)], 0.0, id="cores-alone-use-nothing-of-what-makes-it-dear"),
        pytest.param([], None, id="nothing-there"),
    ],
)
def test_of_a_machine_with_gpus_these_alone_count_as_used(pods: list[tuple[str, int]], share: float | None) -> None:
    node = make_node(cpu="96", memory="384Gi", extended={GPU_MILLI: 4000})
    there = [
        make_pod(f"pod-{i}", requests=amounts(cpu, "0", 1, **{GPU_MILLI: gpu})) for i, (cpu, gpu) in enumerate(pods)
    ]
    assert used(node, there) == share


def test_of_a_machine_without_gpus_the_greater_of_cores_and_memory_counts() -> None:
    node = make_node(cpu="4", memory="8Gi", extended={GPU_MILLI: 0})
    assert used(node, [make_pod(cpu="1", memory="6Gi")]) == pytest.approx(0.75)
