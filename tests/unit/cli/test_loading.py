"""What a command loads: none pays for a library that it does not use. No times are asserted, only names of modules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from htas.config.loader import load_configuration
from htas.daemon.wiring.stores import open_store

ROOT = Path(__file__).parents[3]
HEAVY = frozenset(
    {"numpy", "ortools", "openstack", "keystoneauth1", "kubernetes", "cassandra", "uvicorn", "starlette", "structlog",
     "prometheus_client", "apscheduler", "matplotlib", "cryptography", "urllib3"}
)  # fmt: skip
SANDBOX = f"""
apiVersion: htas.io/v1alpha1
kind: HTASConfiguration
cluster: demo
flavours: {ROOT}/config/flavours/nectar.yaml
provider: {{sandbox: {{}}}}
nodeGroups: [{{name: any}}]
"""
SCRIPT = """
import sys
from htas.cli.main import app
try:
    app({words!r}, prog_name="htas")
except SystemExit as ended:
    assert not ended.code, ended.code
print("LOADED", *sys.modules)
"""


def loaded_by(*words: object) -> set[str]:
    """Every module that is there once a command has ended well."""
    script = SCRIPT.format(words=[str(word) for word in words])
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert ended.returncode == 0, ended.stderr
    return set(ended.stdout.rpartition("LOADED")[2].split())


def packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A sandbox's, with a store that a daemon has made."""
    (file := tmp_path / "htas.yaml").write_text(SANDBOX)
    open_store(load_configuration(file)).close()
    return file


@pytest.mark.parametrize(
    "words", ["check", "cost", "history", "history --cycles", "top", "top --recorded", "store check", "flavours"]
)
def test_commands_that_only_read_load_nothing_heavy(config: Path, words: str) -> None:
    assert packages(loaded_by(*words.split(), "--config", config)) & HEAVY == set()


@pytest.mark.parametrize("words", ["", "plan", "run", "migrate pod"])
def test_help_loads_nothing_heavy_and_nothing_that_reads_a_configuration(words: str) -> None:
    modules = loaded_by(*words.split(), "--help")
    assert packages(modules) & HEAVY == set()
    assert "htas.config.settings" not in modules
