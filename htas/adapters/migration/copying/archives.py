"""Checkpoint archives as kubelets name them: `checkpoint-POD_NAMESPACE-CONTAINER-RFC3339.tar`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from htas.model.migrations import MigrationRecord

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
