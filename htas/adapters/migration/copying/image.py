"""A checkpoint as an OCI image: one layer, which is the kubelet's archive as it is, and an annotation.

containerd and CRI-O restore a container whose image has the annotation instead of starting one. The archive of an
image is written as a stream: all that is small first, then the layer, of which only digest and size are known before.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

import msgspec

from htas.model.migrations import MigrationRecord

USUAL = "amd64"
"""The architecture of most nodes; as `status.nodeInfo.architecture` has it. An importer takes no image for another."""
CONTAINER = "org.criu.checkpoint.container.name"
"""The annotation that makes an image a checkpoint; its value is the container's name."""
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"
BLOCK = tarfile.BLOCKSIZE


def tag_of(record: MigrationRecord) -> str:
    """What a move's images are tagged with: nobody knows it beforehand, though move and attempt can be read in it."""
    return "-".join(filter(None, (record.id, str(record.attempt), record.image_key)))


class Blob(msgspec.Struct, frozen=True):
    """A part of an image: what it is, its sha256 in hexadecimal digits, its size and, where it is small, itself."""

    media_type: str
    digest: str
    size: int
    content: bytes = b""

    @property
    def descriptor(self) -> dict[str, Any]:
        return {"mediaType": self.media_type, "digest": f"sha256:{self.digest}", "size": self.size}


class CheckpointImage(msgspec.Struct, frozen=True):
    """The image of one container's checkpoint."""

    config: Blob
    manifest: Blob
    layer: Blob


def checkpoint_image(container: str, digest: str, size: int, architecture: str = USUAL) -> CheckpointImage:
    """The image of a checkpoint archive of which the sha256 (hexadecimal) and the size in bytes are known."""
    layer = Blob(LAYER_TYPE, digest, size)
    rootfs = {"type": "layers", "diff_ids": [f"sha256:{digest}"]}
    config = _blob(CONFIG_TYPE, {"architecture": architecture, "os": "linux", "config": {}, "rootfs": rootfs})
    manifest = _blob(
        MANIFEST_TYPE,
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": config.descriptor,
            "layers": [layer.descriptor],
            "annotations": {CONTAINER: container},
        },
    )
    return CheckpointImage(config, manifest, layer)


def head(image: CheckpointImage, name: str) -> bytes:
    """An image archive up to where the layer's bytes begin; `name` is what the image will be called."""
    described = image.manifest.descriptor | {"annotations": {"io.containerd.image.name": name}}
    parts = [
        _entry("oci-layout", msgspec.json.encode({"imageLayoutVersion": "1.0.0"})),
        _entry("index.json", msgspec.json.encode({"schemaVersion": 2, "manifests": [described]})),
        _entry(_path(image.config), image.config.content),
        _entry(_path(image.manifest), image.manifest.content),
        _header(_path(image.layer), image.layer.size),
    ]
    return b"".join(parts)


def tail(image: CheckpointImage) -> bytes:
    """What follows the layer's bytes: the rest of its last block, and the two empty blocks that end an archive."""
    return bytes(-image.layer.size % BLOCK + 2 * BLOCK)


def _blob(media_type: str, content: dict[str, Any]) -> Blob:
    raw = msgspec.json.encode(content)
    return Blob(media_type, hashlib.sha256(raw).hexdigest(), len(raw), raw)


def _path(blob: Blob) -> str:
    return f"blobs/sha256/{blob.digest}"


def _entry(name: str, content: bytes) -> bytes:
    return _header(name, len(content)) + content + bytes(-len(content) % BLOCK)


def _header(name: str, size: int) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o600
    return entry.tobuf(tarfile.GNU_FORMAT)  # sizes beyond 8 GiB in base 256, which USTAR has not


# Checkpoint archives as kubelets name them: `checkpoint-POD_NAMESPACE-CONTAINER-RFC3339.tar`.

ARCHIVES = "/var/lib/kubelet/checkpoints"
_INSTANT = r"\d{4}-\d{2}-\d{2}T[0-9:]{8}(Z|[+-][0-9:]{5})\.tar"
_ARCHIVE = re.compile(rf"checkpoint-[A-Za-z0-9._-]+-{_INSTANT}")


def is_archive(name: str) -> bool:
    """Whether a file's name is that of some container's archive."""
    return _ARCHIVE.fullmatch(name) is not None


def is_archive_of(name: str, namespace: str, pod: str, containers: Iterable[str]) -> bool:
    """Whether it is that of one of a pod's containers: `checkpoint-p_a-` begins those of namespace a-b, too."""
    return any(
        re.fullmatch(rf"checkpoint-{re.escape(f'{pod}_{namespace}-{container}')}-{_INSTANT}", name)
        for container in containers
    )


def archives_of(record: MigrationRecord, directory: str) -> list[str]:
    """The paths that a move's journal names, but for those that are no archives of its pod in the directory."""
    namespace, _, pod = record.pod.partition("/")
    paths = [PurePosixPath(path) for path in record.archive.split()]
    return [
        str(path)
        for path in paths
        if str(path.parent) == directory and is_archive_of(path.name, namespace, pod, record.containers)
    ]
