"""`htas simulate` with prices by zone and monthly caps: worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from htas.cli.main import app
from tests.unit.cli.clusters import machine, placed

BY_ZONE = """
flavours:
  - name: large
    cpu: 4
    memory: 8Gi
    prices: [{zone: z1, perHour: "0.40"}, {zone: z2, perHour: "0.30", monthlyCap: "200"}]
"""


def says(folder: Path, *words: str) -> Result:
    """Of three nodes, one in each zone; that of z3 has no price. Each has a pod of 3 cores."""
    nodes = [machine(f"n-{zone}", "large", "4", "8Gi", zone) for zone in ("z1", "z2", "z3")]
    pods = [placed(f"web-{zone}", f"n-{zone}", "3", "2Gi") for zone in ("z1", "z2", "z3")]
    (folder / "dump.json").write_text(json.dumps({"kind": "List", "items": [*nodes, *pods]}))
    (folder / "prices.yaml").write_text(BY_ZONE)
    dump, prices = str(folder / "dump.json"), str(folder / "prices.yaml")
    return CliRunner().invoke(app, ["simulate", "--from", dump, "--flavours", prices, *words])


def test_each_node_costs_what_its_zone_costs(tmp_path: Path) -> None:
    """0.40, and 0.30 with a cap: 200 a month ÷ 730. Both pods in the cheaper zone cost twice that, and no mix less."""
    found = json.loads(says(tmp_path, "-o", "json").stdout)
    stages = [round(float(found[stage]["pricePerHour"]), 6) for stage in ("now", "packed", "consolidated")]
    assert stages == [0.673973, 0.673973, 0.547945]
    assert float(found["lowerBoundPerHour"]) <= 0.547946
    assert found["nodesWithoutPrice"] == {"large in zone z3": 1}


def test_the_price_of_a_month_is_that_of_the_cap(tmp_path: Path) -> None:
    """In z2 a month costs 200 and not 219, in z1 292."""
    told = " ".join(says(tmp_path).stdout.split())
    assert "A monthlyCap counts: an hour of large costs what a whole month costs, ÷ 730." in told
    assert "large in zone z3 (1)" in told
    found = json.loads(says(tmp_path, "-o", "json").stdout)
    assert [found[stage]["pricePerMonth"] for stage in ("now", "consolidated")] == ["492.00", "400.00"]


CAPPED = """
billing: {granularity: 1h, minimum: 1h, alignment: clock}
flavours:
  - {name: plain, cpu: 4, memory: 8Gi, pricePerHour: "0.10"}
  - {name: capped, cpu: 4, memory: 8Gi, pricePerHour: "0.12", monthlyCap: "50"}
"""


def answered(folder: Path, flavour: str, *words: str) -> str:
    """Two machines of a flavour, each with a pod of 3 cores."""
    nodes = [machine(f"n-{i}", flavour, "4", "8Gi", "z1") for i in range(2)]
    pods = [placed(f"web-{i}", f"n-{i}", "3", "2Gi") for i in range(2)]
    (folder / "dump.json").write_text(json.dumps({"kind": "List", "items": [*nodes, *pods]}))
    (folder / "prices.yaml").write_text(CAPPED)
    asked = "--from", str(folder / "dump.json"), "--flavours", str(folder / "prices.yaml"), *words
    return CliRunner().invoke(app, ["simulate", *asked]).stdout


@pytest.mark.parametrize(
    ("flavour", "now"),
    [
        pytest.param("plain", "146.00", id="the other costs 46.00 less by the month alone: it is not launched"),
        pytest.param("capped", "100.00", id="the other costs less by the hour alone: it saves nothing"),
    ],
)
def test_what_is_cheaper_by_the_month_alone_is_not_promised(tmp_path: Path, flavour: str, now: str) -> None:
    """The daemon compares 0.10 an hour with 0.12. Two machines at 0.12 and 50.00 a month cost 100.00: the bound is no more."""
    found = json.loads(answered(tmp_path, flavour, "-o", "json"))
    assert found["now"]["pricePerMonth"] == now
    assert float(found["lowerBoundPerHour"]) * 730 <= 100.001
    told = " ".join(answered(tmp_path, flavour).split())
    assert "HTAS would save" not in told
    assert "HTAS compares hourly prices, without caps: what it replaces may cost more by the month." in told


def test_a_saving_by_the_hour_that_a_cap_eats_up_is_shown_as_a_loss(tmp_path: Path) -> None:
    """At 0.10 instead of 0.12 an hour both machines are replaced, and a month costs 146.00 instead of 100.00."""
    found = json.loads(answered(tmp_path, "capped", "-o", "json"))["consolidated"]
    assert (found["flavours"], found["savesPerMonth"]) == ({"plain": 2}, "-46.00")


def test_prices_by_zone_are_shown_from_the_lowest_to_the_highest(tmp_path: Path) -> None:
    rows = [line.split() for line in says(tmp_path).stdout.splitlines() if line.startswith("large ")]
    assert {row[1] for row in rows if "." in row[1]} == {"0.2740-0.4000"}
