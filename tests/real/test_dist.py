"""The wheel that `make release` makes installs into a fresh environment and works there, far from the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.harness import ROOT

HATCHLING = Path(sys.executable).with_name("hatchling")
CONFIG = """\
apiVersion: htas.io/v1alpha1
kind: HTASConfiguration
cluster: far
flavours: prices.yaml
nodeGroups: [{name: any}]
"""
PRICES = 'flavours: [{name: small, cpu: 2, memory: 4Gi, pricePerHour: "0.07"}]\n'


def built(where: Path, checkout: Path, target: str) -> Path:
    command = [HATCHLING, "build", "--directory", where, "--target", target]
    subprocess.run(command, cwd=checkout, check=True, capture_output=True, timeout=60)
    (made,) = where.iterdir()
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("wheel"), ROOT, "wheel")


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A fresh environment with the wheel; what HTAS depends on comes from the environment of the tests, HTAS does not."""
    home = tmp_path_factory.mktemp("installed")
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps", wheel]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    (packages,) = home.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")  # .pth files in there do not count
    yield home


def run(home: Path, where: Path, *words: object) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "HTAS_"))}
    command = [str(home / "bin" / "htas"), *(str(word) for word in words)]
    return subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, check=False, timeout=100)


def test_it_is_the_wheel_that_runs(installed: Path, tmp_path: Path) -> None:
    script = "import htas, htas.config.places as p; print(htas.__file__); print(p.config_file('htas.yaml'))"
    done = subprocess.run(
        [installed / "bin" / "python", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    package, shipped = done.stdout.split()
    assert Path(package).is_relative_to(installed)
    assert Path(shipped).is_relative_to(installed), "the demo's configuration is in the wheel"


def test_the_wheel_holds_the_product_alone(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"htas"}
    assert not [name for name in names if name.startswith(("htas/experiments/", "htas/trials/"))]


def test_the_sample_is_played(installed: Path, tmp_path: Path) -> None:
    done = run(installed, tmp_path, "demo", "--sample", "--seconds", 0)
    assert done.returncode == 0, done.stderr
    assert "200" in done.stdout, "the tasks of the trace"


def test_a_configuration_is_checked(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "htas.yaml").write_text(CONFIG)
    (tmp_path / "prices.yaml").write_text(PRICES)
    done = run(installed, tmp_path, "check", "--config", "htas.yaml")
    assert done.returncode == 0, done.stderr
    (tmp_path / "prices.yaml").write_text(PRICES.replace("0.07", "dear"))
    done = run(installed, tmp_path, "check", "--config", "htas.yaml")
    assert done.returncode == 2
    assert "prices.yaml:1" in done.stderr


def test_the_source_distribution_has_all_that_the_wheel_is_made_of(wheel: Path, tmp_path: Path) -> None:
    source = built(tmp_path / "sdist", ROOT, "sdist")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (checkout,) = (tmp_path / "unpacked").iterdir()
    assert {"LICENSE", "README.md", "CHANGELOG.md", "Makefile", "requirements.lock"} <= {
        each.name for each in checkout.iterdir()
    }
    again = built(tmp_path / "again", checkout, "wheel")
    with zipfile.ZipFile(wheel) as first, zipfile.ZipFile(again) as second:
        assert sorted(first.namelist()) == sorted(second.namelist())
        assert first.read("htas/shipped/htas.yaml") == second.read("htas/shipped/htas.yaml")
        (licence,) = (name for name in first.namelist() if name.endswith("LICENSE"))
        assert b"Apache License" in first.read(licence)
