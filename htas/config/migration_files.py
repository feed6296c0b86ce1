"""Files that moves need, as far as the machine that looks can see them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pydantic.alias_generators import to_camel

from htas.config.migration import MigrationSetting
from htas.model.snapshot import Problem

_FILES = {
    "kubelet": ("ca_file",),
    "scp": ("identity_file", "known_hosts_file"),
    "registry": ("credentials_file", "ca_file", "agent_token_file"),
    "commands": ("checkpoint", "transfer", "restore", "abort"),
}


def unseen_files(setting: MigrationSetting, configuration: Path) -> Iterator[Problem]:
    """Files that are named and not here, or cannot be read, or run. The daemon's machine may be another."""
    for section, names in _FILES.items():
        for name in names:
            written = getattr(getattr(setting, section), name)
            path = configuration.parent / written if written is not None else None
            if path is None or (path.is_file() and os.access(path, _use(section))):
                continue
            is_there = f"cannot be {'run' if section == 'commands' else 'read'}" if path.is_file() else "is no file"
            key = f"migration.{section}.{to_camel(name)}"
            yield Problem(f"{configuration.name} {key}", f"{path} {is_there} on this machine; look where htas runs")


def _use(section: str) -> int:
    return os.X_OK if section == "commands" else os.R_OK
