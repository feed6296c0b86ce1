"""What stands around the code: commands that are named exist, and the licence is the one that is declared."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", ".github/workflows/ci.yml", "docs/architecture.md"])
def test_every_make_command_that_is_named_exists(name: str) -> None:
    named = set(re.findall(r"(?:`|    |run: )make ([a-z-]+)", (ROOT / name).read_text()))
    assert named
    assert named <= TARGETS


def test_continuous_integration_checks_what_people_check() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"].values()
    commands = {step["run"] for job in jobs for step in job["steps"] if "run" in step}
    assert {"make check", "make test", "make test-real"} <= commands


def test_the_licence_is_the_declared_one() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license"] == "Apache-2.0"
    assert "Version 2.0, January 2004" in (ROOT / "LICENSE").read_text()
