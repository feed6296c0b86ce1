"""`htas flavours`: the price file beside the cloud, and a first price file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from htas.cli.flavours import price_file, rows_of
from htas.cli.main import app
from htas.config.loader import load_catalogue
from htas.model.flavours import Catalogue, MachineSize
from tests.builders import make_flavour
from tests.unit.adapters.openstack.cloud import SmallCloud

GIB = 2**30
SIZES = [MachineSize("small", 1000, 2 * GIB, 10 * GIB), MachineSize("large", 4000, 8 * GIB)]
CONFIGURATION = """
apiVersion: htas.io/v1alpha1
kind: HTASConfiguration
cluster: test
flavours:
  flavours:
    - {name: small, cpu: 1, memory: 2Gi, pricePerHour: "0.05"}
    - {name: gone, cpu: 1, memory: 1Gi, pricePerHour: "0.06"}
provider: {openstack: {cloud: small, cloudsFile: clouds.yaml, image: IMAGE, networks: []}}
nodeGroups: [{name: any}]
"""
run = CliRunner().invoke


def test_each_flavour_has_its_row_and_what_is_odd_about_it() -> None:
    catalogue = Catalogue((make_flavour("gone", "1", "1Gi", "0.06"), make_flavour("small", "1", "2Gi", "0.05")))
    rows = {row.name: row for row in rows_of(catalogue, SIZES)}
    assert list(rows) == ["small", "gone", "large"]
    assert rows["small"].notes == ()
    assert rows["gone"].notes == ("the cloud does not have it: never launched",)
    assert rows["gone"].dominated_by == "small"
    assert rows["large"].notes == ("no price: never launched",)


def test_a_first_price_file_loads_once_it_has_prices(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(price_file(None, SIZES, 20_000_000, 5_000_000))
    found = {flavour.name: flavour for flavour in load_catalogue(path).flavours}
    assert found["small"].nanos_per_hour == 30_000_000
    assert found["large"].nanos_per_hour == 120_000_000
    assert found["small"].capacity.ephemeral_bytes == 10 * GIB


def test_a_flavour_that_is_retired_stays_so(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(price_file(Catalogue((make_flavour("small", "1", "2Gi", "0.05", retired=True),)), SIZES, 1, 1))
    assert {flavour.name: flavour.retired for flavour in load_catalogue(path).flavours} == {
        "small": True,
        "large": False,
    }


def test_a_flavour_without_a_price_is_a_comment_and_known_prices_stay() -> None:
    text = price_file(Catalogue((make_flavour("small", "1", "2Gi", "0.0512"),)), SIZES, None, 0)
    assert '  - {name: "small", cpu: 1, memory: 2048Mi, ephemeralStorage: 10Gi, pricePerHour: "0.0512"}' in text
    assert '#  - {name: "large", cpu: 4, memory: 8192Mi, pricePerHour: "…"}' in text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "htas.yaml").write_text(CONFIGURATION.replace("IMAGE", "ubuntu"))
    return tmp_path


def test_a_cloud_is_asked_and_a_file_written_once(folder: Path) -> None:
    with SmallCloud() as cloud:
        clouds, file = cloud.clouds_yaml(folder), folder / "prices.yaml"
        asked = ["flavours", "--cloud", "small", "--clouds-file", str(clouds), "--write", str(file)]
        first, second = run(app, asked), run(app, asked)
    assert first.exit_code == 0
    assert "0 flavours with a price; 2 need a price" in first.output
    assert second.exit_code == 2
    assert "is there already; name another file" in second.output


def test_the_table_and_its_data(folder: Path) -> None:
    with SmallCloud() as cloud:
        cloud.clouds_yaml(folder)
        table = run(app, ["flavours", "-c", str(folder / "htas.yaml")])
        data = run(app, ["flavours", "-c", str(folder / "htas.yaml"), "-o", "json"])
    assert "never better than small" in table.output
    found = {each["name"]: each for each in json.loads(data.output)["flavours"]}
    assert found["small"]["pricePerHour"] == "0.05"
    assert found["large"]["pricePerHour"] is None


def test_a_live_check_names_what_the_cloud_lacks(folder: Path) -> None:
    with SmallCloud() as cloud:
        cloud.clouds_yaml(folder)
        cloud.images.clear()
        done = run(app, ["check", "-c", str(folder / "htas.yaml"), "--live"])
    assert done.exit_code == 1
    assert "provider.openstack.image: 'ubuntu' is not there" in done.output
    assert "flavour gone: the cloud does not have it" in done.output


def test_neither_a_configuration_nor_a_cloud_is_no_question() -> None:
    done = run(app, ["flavours"])
    assert (done.exit_code, "name a configuration (--config) or a cloud" in done.output) == (2, True)


CARDS = [
    MachineSize("g1.a100", 12_000, 120 * GIB, extra_specs={"pci_passthrough:alias": "a100:2"}),
    MachineSize("g1.card", 12_000, 120 * GIB, extra_specs={"pci_passthrough:alias": "card:1"}),
    MachineSize("v1", 4000, 16 * GIB, extra_specs={"resources:VGPU": "1", "hw:cpu_policy": "dedicated"}),
]


def test_novas_words_become_the_resources_of_nodes(tmp_path: Path) -> None:
    """What may be any device is a question; its flavour is a comment, for a GPU that no pod can use costs as much."""
    text = price_file(None, CARDS, 20_000_000, 5_000_000)
    question = "# g1.card has pci_passthrough:alias: card:1. Which resource do its nodes report? Add extended: {nvidia.com/gpu: 1}:"
    assert f'{question}\n#  - {{name: "g1.card"' in text
    path = tmp_path / "prices.yaml"
    path.write_text(text)
    found = {flavour.name: dict(flavour.capacity.extended) for flavour in load_catalogue(path).flavours}
    assert found == {"g1.a100": {"nvidia.com/gpu": 2}, "v1": {"nvidia.com/gpu": 1}}


def test_the_table_tells_of_devices_that_the_price_file_does_not_have() -> None:
    catalogue = Catalogue(
        (
            make_flavour("g1.a100", "12", "120Gi", "2", extended={"nvidia.com/gpu": 2}),
            make_flavour("v1", "4", "16Gi", "1"),
        )
    )
    notes = {row.name: row.notes for row in rows_of(catalogue, CARDS)}
    assert notes == {
        "v1": ("the cloud has nvidia.com/gpu: 1",),
        "g1.a100": (),
        "g1.card": (
            "no price: never launched",
            "the cloud has pci_passthrough:alias: card:1: which resource do its nodes report?",
        ),
    }


def test_prices_by_zone_caps_and_billing_stay_in_a_file_that_is_written_anew(tmp_path: Path) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text("""
currency: EUR
billing: {granularity: 1h, minimum: 1h, alignment: clock, timeZone: Europe/Paris, feePerHour: "0.01"}
flavours:
  - name: small
    cpu: 1
    memory: 2Gi
    ephemeralStorage: 10Gi
    extended: {amd.com/gpu: 1}
    prices: [{zone: a, perHour: "0.05"}, {zone: b, perHour: "0.06", monthlyCap: "30.00"}]
  - {name: large, cpu: 4, memory: 8Gi, pricePerHour: "0.20", monthlyCap: "90.00", zones: [a]}
""")
    catalogue = load_catalogue(first)
    second.write_text(price_file(catalogue, SIZES, None, 0))
    assert load_catalogue(second) == catalogue
