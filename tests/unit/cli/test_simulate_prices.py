"""`htas simulate` with prices by zone and monthly caps: worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

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
    """0.40 and 0.30 now; both pods in the cheaper zone cost 0.60, and no mix costs less."""
    found = json.loads(says(tmp_path, "-o", "json").stdout)
    stages = [found[stage]["pricePerHour"] for stage in ("now", "packed", "consolidated")]
    assert stages == ["0.70", "0.70", "0.60"]
    assert float(found["lowerBoundPerHour"]) <= 0.60
    assert found["nodesWithoutPrice"] == {"large in zone z3": 1}


def test_months_are_said_to_leave_caps_out(tmp_path: Path) -> None:
    told = " ".join(says(tmp_path).stdout.split())
    assert "Months are calculated without the monthlyCap of large: they may cost less." in told
    assert "large in zone z3 (1)" in told
