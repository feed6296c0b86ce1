"""Links that leave docs/: what they name has a place on the site, too."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

OUTSIDE = {
    "index.md": "README.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CODE_OF_CONDUCT.md": "CODE_OF_CONDUCT.md",
    "SECURITY.md": "SECURITY.md",
    "reference/chart.md": "deploy/helm/htas/README.md",
}
"""Pages of the site whose text is not in docs/, by their place on it."""
_LINK = re.compile(r"(\]\(|(?:src|href|srcset)=\")([^)\"#\s]+)(#[^)\"\s]*)?([)\"])")


def as_on_site(text: str, place: str, source: str) -> str:
    """A page's text with its links as the site has them. `place` is the page's on the site, `source` its file's in
    the repository: docs/runbook.md is runbook.md there, and deploy/openstack/cloud-init.yaml as it is here.
    """

    def turned(match: re.Match[str]) -> str:
        before, target, anchor, after = match.groups()
        if re.match(r"[a-z]+:", target):
            return match[0]
        there = _on_site(_joined(source, target))
        return f"{before}{posixpath.relpath(there, posixpath.dirname(place) or '.')}{anchor or ''}{after}"

    return _LINK.sub(turned, text)


def named_files(root: Path) -> list[str]:
    """Files outside docs/ that pages link to and that are no pages of the site: a template, a configuration."""
    pages = [*sorted((root / "docs").rglob("*.md")), *(root / source for source in OUTSIDE.values())]
    found = {
        _joined(str(page.relative_to(root)), match[2])
        for page in pages
        for match in _LINK.finditer(page.read_text())
        if not re.match(r"[a-z]+:", match[2])
    }
    kept = {path for path in found if not path.startswith("docs/") and path not in OUTSIDE.values()}
    return sorted(path for path in kept if (root / path).is_file())


def _joined(source: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), target))


def _on_site(path: str) -> str:
    places = {source: place for place, source in OUTSIDE.items()}
    return places.get(path, path.removeprefix("docs/"))
