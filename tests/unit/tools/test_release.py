"""What a release is made of: versions that agree, notes from the changelog, checksums that `sha256sum` accepts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

import htas
from tools.release.__main__ import with_repository, write_checksums
from tools.release.facts import ReleaseError, chart_version, check, notes

ROOT = Path(__file__).parents[3]
CHART = yaml.safe_load((ROOT / "deploy/helm/htas/Chart.yaml").read_text())
CHANGELOG = """# Changelog

## [Unreleased]

### Added
- New.

## [0.2.0] - 2030-01-01

### Fixed
- Old.

## [0.1.0] - 2029-01-01
"""


@pytest.mark.parametrize(
    ("version", "chart"), [("0.2.0", "0.2.0"), ("0.2.0.dev0", "0.2.0-dev0"), ("0.2.0rc1", "0.2.0-rc1")]
)
def test_the_charts_version_is_semantic(version: str, chart: str) -> None:
    assert chart_version(version) == chart


def test_a_version_of_another_form_is_refused() -> None:
    with pytest.raises(ReleaseError, match=r"0\.2: write it as"):
        chart_version("0.2")


def test_package_and_chart_state_one_version() -> None:
    check(htas.__version__, CHART["version"], CHART["appVersion"], f"v{htas.__version__}")
    assert f'"htas:{htas.__version__}"' in (ROOT / "deploy/manifests/htas.yaml").read_text()


@pytest.mark.parametrize(
    ("chart", "app", "tag", "told"),
    [
        ("0.1.0", "0.2.0", None, "Chart.yaml has 0.1.0 and 0.2.0; write version: 0.2.0, appVersion: 0.2.0"),
        ("0.2.0", "0.1.0", None, "Chart.yaml has 0.2.0 and 0.1.0"),
        ("0.2.0", "0.2.0", "v0.3.0", "the tag is v0.3.0; of version 0.2.0 it is v0.2.0"),
    ],
)
def test_what_does_not_agree_is_named(chart: str, app: str, tag: str | None, told: str) -> None:
    with pytest.raises(ReleaseError, match=told):
        check("0.2.0", chart, app, tag)


def test_the_notes_are_the_section_of_the_version() -> None:
    assert notes(CHANGELOG, "0.2.0") == "### Fixed\n- Old.\n"
    assert notes(CHANGELOG, "0.3.0.dev0") == "### Added\n- New.\n"


@pytest.mark.parametrize("version", ["0.3.0", "0.1.0"])
def test_a_version_without_a_section_or_with_an_empty_one_is_refused(version: str) -> None:
    with pytest.raises(ReleaseError, match=rf"no section ## \[{version}\], or it is empty"):
        notes(CHANGELOG, version)


def test_the_changelog_has_notes_for_what_is_here() -> None:
    """In the form of keepachangelog.com, and short enough to be read."""
    text = (ROOT / "CHANGELOG.md").read_text()
    sections = [line for line in notes(text, htas.__version__).splitlines() if line.startswith("### ")]
    assert sections == [
        f"### {name}" for name in ("Before you upgrade", "Added", "Changed", "Fixed", "Removed", "Security")
    ]
    assert len(text.splitlines()) <= 150


def test_checksums_are_as_sha256sum_reads_them(tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_text("a")
    (tmp_path / "b.tgz").write_text("b")
    write_checksums(tmp_path)
    write_checksums(tmp_path)
    done = subprocess.run(
        ["sha256sum", "--check", "SHA256SUMS"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "a.whl: OK\nb.tgz: OK\n"


def test_the_packaged_chart_pulls_from_where_it_is_told() -> None:
    values = (ROOT / "deploy/helm/htas/values.yaml").read_text()
    changed = yaml.safe_load(with_repository(values, "registry.example/htas"))
    kept = yaml.safe_load(values)
    assert changed.pop("image") == kept.pop("image") | {"repository": "registry.example/htas"}
    assert changed == kept
