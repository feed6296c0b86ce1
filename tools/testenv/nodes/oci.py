"""Write an OCI image archive that `ctr images import` takes, with the standard library alone.

oci.py NAME OUT.tar BUSYBOX [ARG...]    an image of busybox and its applets, and of flock, with the given command
"""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

FOLDERS = {"bin": 0o755, "etc": 0o755, "proc": 0o755, "sys": 0o755, "dev": 0o755, "tmp": 0o1777, "root": 0o700}
FLOCK = Path("/usr/bin/flock")
"""Of util-linux, which every Debian has: busybox-static lacks it. It needs a C library and its loader."""


def image(name: str, out: Path, busybox: Path, command: list[str]) -> None:
    with tempfile.TemporaryFile() as layer:
        _write_root(layer, busybox)
        layer_digest, size = hashlib.sha256(layer.read()).hexdigest(), layer.tell()
        layer.seek(0)
        with tarfile.open(out, "w") as archive:
            _write_image(archive, name, command, layer_digest, size)
            _add(archive, f"blobs/sha256/{layer_digest}", layer, size)


def _write_root(layer: BinaryIO, busybox: Path) -> None:
    applets = subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True).stdout.split()
    needed = subprocess.run(["ldd", FLOCK], check=True, capture_output=True, text=True).stdout.split()
    with tarfile.open(fileobj=layer, mode="w") as tree:
        for folder, mode in FOLDERS.items():
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            tree.addfile(entry)
        _add_program(tree, "bin/busybox", busybox)
        _add_program(tree, "bin/flock", FLOCK)
        for library in (Path(word) for word in needed if word.startswith("/")):
            _add_program(tree, str(library).lstrip("/"), library.resolve())
        for applet in applets:
            if applet not in ("busybox", "flock"):
                entry = tarfile.TarInfo(f"bin/{applet}")
                entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
                tree.addfile(entry)
    layer.seek(0)


def _add_program(tree: tarfile.TarFile, name: str, path: Path) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = path.stat().st_size, 0o755
    with path.open("rb") as program:
        tree.addfile(entry, program)


def _write_image(archive: tarfile.TarFile, name: str, command: list[str], layer: str, size: int) -> None:
    rootfs = {"type": "layers", "diff_ids": [f"sha256:{layer}"]}
    settings = {"Env": ["PATH=/bin"], "Cmd": command}
    config = {"architecture": "amd64", "os": "linux", "config": settings, "rootfs": rootfs}
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": _blob(archive, "application/vnd.oci.image.config.v1+json", config),
        "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": f"sha256:{layer}", "size": size}],
    }
    described = _blob(archive, str(manifest["mediaType"]), manifest)
    described["annotations"] = {"io.containerd.image.name": name}
    _add_json(archive, "oci-layout", {"imageLayoutVersion": "1.0.0"})
    _add_json(archive, "index.json", {"schemaVersion": 2, "manifests": [described]})


def _blob(archive: tarfile.TarFile, media_type: str, content: dict[str, Any]) -> dict[str, Any]:
    raw = json.dumps(content).encode()
    digest = hashlib.sha256(raw).hexdigest()
    _add(archive, f"blobs/sha256/{digest}", io.BytesIO(raw), len(raw))
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(raw)}


def _add_json(archive: tarfile.TarFile, path: str, content: dict[str, Any]) -> None:
    raw = json.dumps(content).encode()
    _add(archive, path, io.BytesIO(raw), len(raw))


def _add(archive: tarfile.TarFile, name: str, stream: BinaryIO, size: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o644
    archive.addfile(entry, stream)


if len(sys.argv) < 4:
    sys.exit(__doc__)
image(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]).resolve(), sys.argv[4:])
