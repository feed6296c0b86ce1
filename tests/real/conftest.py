"""One cluster for all tests of this folder; each test finds it empty."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.real.harness import TESTENV, Cluster, configuration

Tell = Callable[[str], None]
CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "htas"


@pytest.fixture(scope="session")
def kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A real control plane; HTAS_KUBE_BIN names its binaries (tools/testenv/kube-build.sh makes them)."""
    binaries = Path(os.environ.get("HTAS_KUBE_BIN", CACHE / "kube-bin"))
    cluster = Cluster(tmp_path_factory.mktemp("kube"), binaries)
    yield cluster
    cluster.purge()


@pytest.fixture
def cluster(kube: Cluster) -> Iterator[Cluster]:
    """The cluster, empty before and after."""
    kube.start()
    kube.wipe()
    yield kube
    kube.start()
    kube.wipe()


@pytest.fixture
def config(cluster: Cluster, tmp_path: Path) -> Path:
    return configuration(tmp_path, cluster.kubeconfig)


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str]) -> Tell:
    """Print for whoever reads the run's output: what was measured, what it cost."""

    def say(text: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{text}\n")

    return say


@pytest.fixture(scope="session")
def helm() -> Path:
    """helm, built from its Go module where it is not there yet."""
    built = subprocess.run([TESTENV / "helm-build.sh"], capture_output=True, text=True, timeout=900, check=True)
    return Path(built.stdout.strip().splitlines()[-1])
