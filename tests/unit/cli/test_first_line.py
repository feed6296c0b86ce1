"""What If and `htas simulate` begin with the same sentence of the same cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from htas.cli.main import app
from htas.cli.ui import seat_of_dump
from htas.documents.what_if import Changes, simulated
from tools.sample.cluster import sample

PRICES = Path(__file__).parents[3] / "config/flavours/nectar.yaml"


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("dump") / "dump.json"
    file.write_text(json.dumps({"kind": "List", "items": sample()}))
    return file


@pytest.mark.parametrize(
    ("option", "lift"),
    [
        pytest.param(["--as-annotated"], [], id="services as they are annotated"),
        pytest.param([], ["ServiceNotOptedIn"], id="services taken to be movable"),
    ],
)
def test_the_first_lines_say_the_same(dump: Path, option: list[str], lift: list[str]) -> None:
    said = CliRunner().invoke(app, ["simulate", "--from", str(dump), "--flavours", str(PRICES), *option])
    (line,) = (each for each in said.stdout.splitlines() if each.startswith("HTAS "))
    picture = seat_of_dump(dump, PRICES, None, None).picture()
    view, policy, now = picture.snapshot.cluster, picture.policy, picture.at
    shown = simulated(view, policy, now, Changes(lift=tuple(lift))) if lift else picture.as_it_is
    assert line.partition(", provided")[0].partition(". With")[0] == shown.headline
