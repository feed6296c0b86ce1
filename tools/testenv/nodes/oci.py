"""Write OCI image archives that `ctr images import` takes, with the standard library alone.

oci.py root NAME OUT.tar BUSYBOX [ARG...]          an image with busybox (and its applets) and the given command
oci.py checkpoint NAME OUT.tar CHECKPOINT.tar CTR  a checkpoint of container CTR, as the kubelet's checkpoint API leaves it

A checkpoint image is a scratch image whose one layer is the checkpoint archive and whose manifest carries the annotation
`org.criu.checkpoint.container.name`; containerd and CRI-O restore a container whose image has it instead of starting one.
"""

import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

CHUNK = 1 << 20


def digest_of(stream: BinaryIO) -> str:
    sha = hashlib.sha256()
    while chunk := stream.read(CHUNK):
        sha.update(chunk)
    stream.seek(0)
    return sha.hexdigest()


def add(archive: tarfile.TarFile, name: str, stream: BinaryIO, size: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o644
    archive.addfile(entry, stream)


def write_image(name: str, out: Path, layer: BinaryIO, config: dict[str, Any], annotations: dict[str, str]) -> None:
    layer_digest = digest_of(layer)
    layer.seek(0, io.SEEK_END)
    layer_size = layer.tell()
    layer.seek(0)
    with tarfile.open(out, "w") as archive:

        def blob(media_type: str, content: dict[str, Any]) -> dict[str, Any]:
            raw = json.dumps(content).encode()
            digest = hashlib.sha256(raw).hexdigest()
            add(archive, f"blobs/sha256/{digest}", io.BytesIO(raw), len(raw))
            return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(raw)}

        def plain(path: str, content: dict[str, Any]) -> None:
            raw = json.dumps(content).encode()
            add(archive, path, io.BytesIO(raw), len(raw))

        plain("oci-layout", {"imageLayoutVersion": "1.0.0"})
        add(archive, f"blobs/sha256/{layer_digest}", layer, layer_size)
        described_config = blob(
            "application/vnd.oci.image.config.v1+json",
            {
                "architecture": "amd64",
                "os": "linux",
                "config": config,
                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_digest}"]},
            },
        )
        manifest = blob(
            "application/vnd.oci.image.manifest.v1+json",
            {
                "schemaVersion": 2,
                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": described_config,
                "layers": [
                    {
                        "mediaType": "application/vnd.oci.image.layer.v1.tar",
                        "digest": f"sha256:{layer_digest}",
                        "size": layer_size,
                    }
                ],
                "annotations": annotations,
            },
        )
        manifest["annotations"] = {"io.containerd.image.name": name}
        plain("index.json", {"schemaVersion": 2, "manifests": [manifest]})


def root_image(name: str, out: Path, busybox: Path, command: list[str]) -> None:
    applets = subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True).stdout.split()
    with tempfile.TemporaryFile() as layer:
        with tarfile.open(fileobj=layer, mode="w") as tree:
            for folder, mode in (
                ("bin", 0o755),
                ("etc", 0o755),
                ("proc", 0o755),
                ("sys", 0o755),
                ("dev", 0o755),
                ("tmp", 0o1777),
                ("root", 0o700),
            ):
                entry = tarfile.TarInfo(folder)
                entry.type, entry.mode = tarfile.DIRTYPE, mode
                tree.addfile(entry)
            entry = tarfile.TarInfo("bin/busybox")
            entry.size, entry.mode = busybox.stat().st_size, 0o755
            with busybox.open("rb") as program:
                tree.addfile(entry, program)
            for applet in applets:
                if applet != "busybox":
                    entry = tarfile.TarInfo(f"bin/{applet}")
                    entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
                    tree.addfile(entry)
        layer.seek(0)
        write_image(name, out, layer, {"Env": ["PATH=/bin"], "Cmd": command}, {})


def checkpoint_image(name: str, out: Path, checkpoint: Path, container: str) -> None:
    with checkpoint.open("rb") as layer:
        write_image(name, out, layer, {}, {"org.criu.checkpoint.container.name": container})


match sys.argv[1:]:
    case ["root", image, out, busybox, *command]:
        root_image(image, Path(out), Path(busybox).resolve(), command)
    case ["checkpoint", image, out, archive, container]:
        checkpoint_image(image, Path(out), Path(archive), container)
    case _:
        sys.exit(__doc__)
