"""What a method of moving pods needs to be told, and what the registry's address must look like."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from htas.config.document import Document, Steps
from htas.config.migration import MigrationSetting
from htas.config.problems import parsed
from htas.model.migrations import Transfer
from htas.model.policy import MigrationMethod
from htas.model.snapshot import Problem

REAL = frozenset({MigrationMethod.KUBELET_CHECKPOINT, MigrationMethod.COMMAND})
_NEEDED: dict[Transfer, tuple[str, ...]] = {
    Transfer.SCP: ("identityFile", "knownHostsFile"),
    Transfer.REGISTRY: ("url", "agentTokenFile"),
}
_COMMANDS = ("checkpoint", "transfer", "restore", "abort")
_URL = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+/?")


def unstated(document: Document, methods: Collection[MigrationMethod]) -> Iterator[Problem]:
    """Keys that the groups' methods cannot do without, and a registry's url that is none."""
    raw = document.raw.get("migration", {})
    setting = parsed(MigrationSetting, document, raw, (), []) if isinstance(raw, dict) else None
    if setting is None:
        return  # what is unsound in itself is told already
    url = setting.registry.url
    if url is not None and not _URL.fullmatch(url):
        what = f"{url!r} is no https://HOST or https://HOST:PORT"
        yield Problem(document.place(("migration", "registry", "url")), what)
    if MigrationMethod.KUBELET_CHECKPOINT in methods:
        section = setting.transfer.value
        yield from _missing(document, raw, section, _NEEDED[setting.transfer], f"transfer: {section}")
    if MigrationMethod.COMMAND in methods:
        yield from _missing(document, raw, "commands", _COMMANDS, "cleaning.migration: command")


def _missing(
    document: Document, raw: dict[str, object], section: str, keys: Collection[str], why: str
) -> Iterator[Problem]:
    stated = raw.get(section)
    missing = [key for key in keys if not (isinstance(stated, dict) and stated.get(key) is not None)]
    if missing:
        steps: Steps = ("migration", section)
        yield Problem(document.place(steps), f"{why} needs {', '.join(missing)}; write {_them(missing)}")


def _them(missing: Collection[str]) -> str:
    return "it" if len(missing) == 1 else "them"
