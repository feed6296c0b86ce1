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


WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=[path.stem for path in WORKFLOWS])
def test_actions_are_pinned_by_their_commit(workflow: Path) -> None:
    """With the tag beside it, so that people and Dependabot can read which one it is; one commit for each tag."""
    used = re.findall(r"uses: (.*)", workflow.read_text())
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)] == []


def test_a_release_may_write_no_more_than_each_of_its_jobs_needs() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    assert workflow["permissions"] == {"contents": "read"}
    writes = {
        name: {right for right, how in job.get("permissions", {}).items() if how == "write"}
        for name, job in workflow["jobs"].items()
    }
    assert writes == {
        "files": set(),
        "image": {"packages", "id-token"},
        "chart": {"packages", "id-token"},
        "draft": {"contents", "id-token"},
    }


def test_the_image_is_built_on_a_pinned_base() -> None:
    froms = re.findall(r"^FROM (\S+)", (ROOT / "deploy/Dockerfile").read_text(), re.MULTILINE)
    assert re.fullmatch(r"python:3\.11-slim-bookworm@sha256:[0-9a-f]{64}", froms[0])
    assert set(froms[1:]) <= {"base", "dependencies"}


def test_forms_and_hooks_are_yaml_and_name_tools_that_are_there() -> None:
    forms = [*(ROOT / ".github").rglob("*.yml"), ROOT / ".pre-commit-config.yaml"]
    assert len(forms) >= 6
    documents = {path.name: yaml.safe_load(path.read_text()) for path in forms}
    for name in ("bug.yml", "feature.yml"):
        assert [item for item in documents[name]["body"] if item["type"] != "markdown" and "id" not in item] == []
    (hooks,) = documents[".pre-commit-config.yaml"]["repos"]
    commands = {hook["entry"].split()[0].removeprefix(".venv/bin/") for hook in hooks["hooks"]}
    checks = (ROOT / "Makefile").read_text()
    assert [command for command in commands if f"$(BIN)/{command} " not in checks] == []


def test_the_licence_is_the_declared_one() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license"] == "Apache-2.0"
    assert "Version 2.0, January 2004" in (ROOT / "LICENSE").read_text()
