"""What must agree before a release is made: versions, the tag, and the changelog."""

from __future__ import annotations

import re


class ReleaseError(Exception):
    """A release cannot be made as things are; the message says what to change."""


_VERSION = re.compile(r"(?P<main>\d+\.\d+\.\d+)(?P<rest>(?:\.dev|rc|a|b)\d+)?")


def chart_version(version: str) -> str:
    """The version of the chart, which is semantic (0.2.0-dev0), for that of the package (0.2.0.dev0)."""
    found = _VERSION.fullmatch(version)
    if found is None:
        raise ReleaseError(f"version {version}: write it as 0.2.0, 0.2.0rc1 or 0.2.0.dev0")
    return found["main"] + (f"-{found['rest'].removeprefix('.')}" if found["rest"] else "")


def is_final(version: str) -> bool:
    """Whether a version is one that people install without asking for a preview."""
    return re.fullmatch(r"[0-9.]+", version) is not None


def notes(changelog: str, version: str) -> str:
    """The release notes: the changelog's section of a version, or of what is unreleased where it is a preview."""
    title = version if is_final(version) else "Unreleased"
    found = re.search(rf"^## \[{re.escape(title)}\].*?\n(.*?)(?=^## |\Z)", changelog, re.DOTALL | re.MULTILINE)
    if found is None or not found[1].strip():
        raise ReleaseError(f"CHANGELOG.md: there is no section ## [{title}], or it is empty")
    return found[1].strip() + "\n"


def check(version: str, chart: str, app: str, tag: str | None) -> None:
    """Raise ReleaseError where the chart, or the tag that is released, names another version than the package."""
    if (chart, app) != (chart_version(version), version):
        wanted = f"version: {chart_version(version)}, appVersion: {version}"
        raise ReleaseError(f"deploy/helm/htas/Chart.yaml has {chart} and {app}; write {wanted}")
    if tag is not None and tag != f"v{version}":
        raise ReleaseError(f"the tag is {tag}; of version {version} it is v{version}")
