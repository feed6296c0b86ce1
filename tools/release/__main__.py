"""Makes a release in a folder: wheel, source distribution, chart, notes, checksums; with `--image` the image, too."""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

import htas
from tools.release.facts import ReleaseError, check, notes

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy/helm/htas"
CHECKSUMS = "SHA256SUMS"


def main() -> int:
    asked = _arguments().parse_args()
    stated = yaml.safe_load((CHART / "Chart.yaml").read_text())
    try:
        check(htas.__version__, str(stated["version"]), str(stated["appVersion"]), asked.tag)
        said = notes((ROOT / "CHANGELOG.md").read_text(), htas.__version__)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    out: Path = asked.out
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / "NOTES.md").write_text(said)
    _run([Path(sys.executable).with_name("hatchling"), "build", "--directory", out])
    _package_chart(out, asked.image_repository)
    if asked.image:
        archive = Path(_run([ROOT / "tools/testenv/image-build.sh"], captures=True).strip())
        shutil.copy(archive, out / f"htas-{htas.__version__}-image.tar")
    write_checksums(out)
    for path in sorted(out.iterdir()):
        print(f"{path.stat().st_size / 1e6:>10.2f} MB  {path}")
    return 0


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "out/release")
    parser.add_argument("--tag", help="the tag that is released; it must be that of the version")
    parser.add_argument("--image-repository", help="where the packaged chart pulls the image from")
    parser.add_argument("--image", action="store_true", help="build the image of this machine's architecture, too")
    return parser


def _package_chart(out: Path, image_repository: str | None) -> None:
    """A copy is packaged, so that the chart in the repository keeps its own image."""
    helm = os.environ.get("HELM") or _run([ROOT / "tools/testenv/helm-build.sh"], captures=True).strip()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "htas"
        shutil.copytree(CHART, copy)
        if image_repository:
            values = (copy / "values.yaml").read_text()
            (copy / "values.yaml").write_text(with_repository(values, image_repository))
        _run([helm, "lint", "--quiet", copy])
        _run([helm, "package", copy, "--destination", out])


def with_repository(values: str, repository: str) -> str:
    """The chart's values with another default of `image.repository`."""
    changed, count = re.subn(r"(?m)^(image:\n(?:  .*\n)*?  repository: )\S+", rf"\g<1>{repository}", values)
    if count != 1:
        raise ReleaseError("deploy/helm/htas/values.yaml: image.repository was not found")
    return changed


def write_checksums(out: Path) -> None:
    """One line for each file, as `sha256sum --check` reads it."""
    files = sorted(path for path in out.iterdir() if path.name != CHECKSUMS)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (out / CHECKSUMS).write_text("".join(lines))


def _run(command: list[Path | str], *, captures: bool = False) -> str:
    done = subprocess.run(command, cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE if captures else None)
    return done.stdout if captures else ""


if __name__ == "__main__":
    sys.exit(main())
