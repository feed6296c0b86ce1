"""Commands on nodes and streams between them, with an ssh that runs them here; and what the copies make of them."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from typing import Any

import pytest

from htas.adapters.migration.copying import secure_copy
from htas.adapters.migration.copying.image import checkpoint_image, head, tail
from htas.adapters.migration.copying.secure_copy import SecureCopies
from htas.adapters.migration.copying.shell import CommandFailedError, Shell
from htas.adapters.migration.method import Delivered, StepFailedError
from htas.model.migrations import Failure, Route, SecureCopy
from tests.programs import write_program
from tests.unit.adapters.migration.pods import a_record

SSH = '#!/bin/sh\necho "$@" >> "$(dirname "$0")/asked"\nfor last; do :; done\nexec sh -c "$last"\n'
CTR = """#!/bin/sh
case "$*" in
  *import*) cat > "$(dirname "$0")/imported";;
  *" ls") echo "REF TYPE DIGEST"; cat "$(dirname "$0")/images";;
  *" rm "*) printf '%s\n' "$*" >> "$(dirname "$0")/removed";;
esac
"""


SETTING = SecureCopy("mover", 2222, "/keys/id", "/keys/known", Route.THROUGH_DAEMON)


@pytest.fixture
def bin_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with an ssh and a ctr, first on PATH."""
    for name, text in (("ssh", SSH), ("ctr", CTR)):
        write_program(tmp_path / name, text)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def shell(bin_: Path) -> Shell:
    return Shell(SETTING)


def copies_of(shell: Shell, directory: Path, **options: Any) -> SecureCopies:
    """Copies through the daemon, whose nodes are this machine."""
    return SecureCopies(shell, SETTING, lambda node: node, place=str(directory), **options)


def streamed(shell: Shell, reading: str, writing: str, within_s: float = 20.0) -> int:
    return shell.stream(
        "a", reading, "b", writing, lambda line: (f"<{line.strip()}>".encode(), b"<end>"), within_s
    ).size


def test_host_keys_are_pinned_and_nobody_is_asked(shell: Shell, bin_: Path) -> None:
    assert shell.run("192.0.2.1", "echo done", 10.0) == "done\n"
    asked = (bin_ / "asked").read_text()
    for option in ("StrictHostKeyChecking=yes", "UserKnownHostsFile=/keys/known", "BatchMode=yes", "-i /keys/id"):
        assert option in asked
    assert "-p 2222 -l mover -- 192.0.2.1" in asked


def test_a_command_that_fails_says_why(shell: Shell) -> None:
    with pytest.raises(CommandFailedError, match="exit code 3: too bad") as failed:
        shell.run("a", "echo too bad >&2; exit 3", 10.0)
    assert failed.value.code == 3


def test_a_command_that_takes_too_long_is_given_up(shell: Shell) -> None:
    with pytest.raises(StepFailedError) as failed:
        shell.run("a", "exec sleep 60", 0.3)
    assert failed.value.reason is Failure.DEADLINE


def test_a_stream_goes_between_a_head_and_a_tail(shell: Shell, tmp_path: Path) -> None:
    size = streamed(shell, "echo first; head -c 3000000 /dev/zero", f"cat > {tmp_path}/got")
    assert size == 3_000_000
    assert (tmp_path / "got").read_bytes() == b"<first>" + bytes(3_000_000) + b"<end>"


@pytest.mark.parametrize(
    ("reading", "writing", "reason"),
    [
        ("exit 1", "cat >/dev/null", Failure.TRANSFER_FAILED),
        ("echo x; head -c 500000 /dev/zero; kill -9 $$", "cat >/dev/null", Failure.TRANSFER_FAILED),
        ("echo x; head -c 9000000 /dev/zero", "echo No space left on device >&2; exit 1", Failure.NO_SPACE),
        ("echo x; echo y", "cat >/dev/null; echo content digest sha256:1: not found >&2; exit 1", Failure.DIGEST_WRONG),
    ],
)
def test_a_stream_that_breaks_off_fails_by_what_its_ends_say(
    reading: str, writing: str, reason: Failure, shell: Shell
) -> None:
    with pytest.raises(StepFailedError) as failed:
        streamed(shell, reading, writing)
    assert failed.value.reason is reason, str(failed.value)


def test_a_stream_that_stands_still_is_given_up(shell: Shell) -> None:
    began = time.monotonic()
    with pytest.raises(StepFailedError) as failed:
        streamed(shell, "echo x; exec sleep 60", "exec cat", 0.3)
    assert failed.value.reason is Failure.DEADLINE
    assert time.monotonic() - began < 20


def test_an_archive_arrives_as_an_image(shell: Shell, bin_: Path, tmp_path: Path) -> None:
    archive = tmp_path / "checkpoint.tar"
    archive.write_bytes(b"memory" * 1000)
    copies = copies_of(shell, tmp_path)
    sent = copies.deliver(a_record(), "main", str(archive), 20.0)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert sent == Delivered((copies.image_of(a_record(), "main"),), (digest,), 6000)
    image = checkpoint_image("main", digest, sent.size)
    name = copies.image_of(a_record(), "main")
    assert (bin_ / "imported").read_bytes() == head(image, name) + archive.read_bytes() + tail(image)


def test_both_names_of_a_moves_images_are_removed_and_no_others(shell: Shell, bin_: Path, tmp_path: Path) -> None:
    one, two = "aaaaaaaaaaaa", "bbbbbbbbbbbb"
    ours = {f"localhost/htas-checkpoint/main:{one}-1": "sha256:a", "sha256:id-a": "sha256:a"}
    others = {f"localhost/htas-checkpoint/main:{two}-1": "sha256:b", "app:1": "sha256:c"}
    (bin_ / "images").write_text("".join(f"{name} type {digest}\n" for name, digest in (ours | others).items()))
    copies = copies_of(shell, tmp_path)
    copies.forget("b", one)
    assert set((bin_ / "removed").read_text().split()[4:]) == set(ours)
    (bin_ / "removed").unlink()
    copies.sweep("b", [one])
    assert set((bin_ / "removed").read_text().split()[4:]) == {f"localhost/htas-checkpoint/main:{two}-1"}


@pytest.mark.parametrize("forged", ["............", "x'; touch owned; '", "", "AAAAAAAAAAAA"])
def test_what_is_no_id_is_no_part_of_a_command(forged: str, shell: Shell, bin_: Path, tmp_path: Path) -> None:
    image = "localhost/htas-checkpoint/main:bbbbbbbbbbbb-1"
    (bin_ / "images").write_text(f"{image} type sha256:b\n")
    copies = copies_of(shell, tmp_path)
    copies.forget("b", forged)
    assert not (bin_ / "removed").exists()
    copies.sweep("b", [forged])
    assert image in (bin_ / "removed").read_text(), "nothing is kept by a pattern"


NAMES = [
    "checkpoint-train-x_default-main-2026-11-21T10:00:00Z.tar",
    "checkpoint-train-x_default-main-2026-11-21T10:00:00+01:00.tar",
    "checkpoint-train-x_default-main-log-2026-11-21T10:00:00Z.tar",
    "checkpoint-train-x_default-b-main-2026-11-21T10:00:00Z.tar",
    "checkpoint-train-x_default-main-notes.tar",
]


def test_archives_of_a_moves_containers_are_removed_whatever_the_nodes_clock_says(shell: Shell, tmp_path: Path) -> None:
    """HTAS's own is an hour ahead. Containers and namespaces whose names begin alike keep theirs."""
    began = 1000.0
    directory = tmp_path / "checkpoints"
    directory.mkdir()
    for name in NAMES:
        (directory / name).write_text("memory")
    old = directory / NAMES[0].replace("10:00:00", "09:00:00")
    old.write_text("from before the move")
    os.utime(old, (time.time() - 600, time.time() - 600))
    copies = copies_of(shell, tmp_path, clock=lambda: began + 60.0, archives=str(directory))
    copies.clean_source(a_record(started_at=began))
    assert {path.name for path in directory.iterdir()} == {old.name, *NAMES[2:]}


def test_only_a_pods_own_archives_are_removed_by_their_paths(shell: Shell, tmp_path: Path) -> None:
    directory = tmp_path / "checkpoints"
    directory.mkdir()
    known, other = directory / NAMES[0], directory / NAMES[3]
    for path in (known, other):
        path.write_text("memory")
        os.utime(path, (500.0, 500.0))
    record = a_record(archive=f"{known} {other} {tmp_path}/{NAMES[0]} /etc/shadow", started_at=time.time())
    copies_of(shell, tmp_path, archives=str(directory)).clean_source(record)
    assert list(directory.iterdir()) == [other]


def test_a_kubelet_that_has_signed_no_certificate_has_none_of_its_own(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With serverTLSBootstrap the cluster's CA signs it."""
    monkeypatch.setattr(secure_copy, "CERTIFICATE", str(tmp_path / "kubelet.crt"))
    copies = copies_of(shell, tmp_path)
    assert copies.certificate("a") == ""
    (tmp_path / "kubelet.crt").write_text("PEM")
    assert copies.certificate("a") == "PEM"
