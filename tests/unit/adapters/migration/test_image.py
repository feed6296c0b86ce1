"""An archive of an image, as `tar` and an importer read it."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile

import pytest

from htas.adapters.migration.copying.image import BLOCK, checkpoint_image, head, tail


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, 3 * BLOCK + 7])
def test_a_streamed_image_is_one_layer_that_is_the_archive(size: int) -> None:
    layer = bytes(index % 251 for index in range(size))
    digest = hashlib.sha256(layer).hexdigest()
    image = checkpoint_image("main", digest, size)
    whole = head(image, "localhost/x:1") + layer + tail(image)
    assert len(whole) % BLOCK == 0
    with tarfile.open(fileobj=io.BytesIO(whole)) as archive:
        found = {name: _read(archive, name) for name in archive.getnames()}
        assert all(entry.mode == 0o600 for entry in archive.getmembers())
    index = json.loads(found["index.json"])
    (described,) = index["manifests"]
    assert described["annotations"] == {"io.containerd.image.name": "localhost/x:1"}
    manifest = json.loads(found[_blob(described["digest"])])
    assert manifest["annotations"] == {"org.criu.checkpoint.container.name": "main"}
    (only,) = manifest["layers"]
    assert found[_blob(only["digest"])] == layer
    config = json.loads(found[_blob(manifest["config"]["digest"])])
    assert config["rootfs"]["diff_ids"] == [only["digest"]]
    for name, content in found.items():
        if name.startswith("blobs/"):
            assert hashlib.sha256(content).hexdigest() == name.rpartition("/")[2]


def test_sizes_beyond_what_a_plain_header_holds_are_written() -> None:
    image = checkpoint_image("main", "0" * 64, 20 << 30)
    begun = io.BytesIO(head(image, "x"))
    with tarfile.open(fileobj=begun) as archive:
        last = None
        while (entry := archive.next()) is not None and entry.size < 1 << 30:
            last = entry
    assert entry is not None
    assert (last is not None, entry.size) == (True, 20 << 30)


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    stream = archive.extractfile(name)
    assert stream is not None
    return stream.read()


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"
