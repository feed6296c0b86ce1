"""What a method of moving pods needs to be told, what it has no use for, and how a registry is named."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from htas.config.document import Document, Steps
from htas.config.migration import CommandsSetting, MigrationSetting, RegistrySetting
from htas.config.problems import parsed
from htas.model.migrations import Transfer
from htas.model.moves import MigrationMethod
from htas.model.snapshot import Problem

REAL = frozenset({MigrationMethod.KUBELET_CHECKPOINT, MigrationMethod.COMMAND})
"""Methods that need real nodes."""
CARRIED = REAL | {MigrationMethod.REPLACE}
"""Methods that are set up where a group names them; simulated nodes have theirs whatever groups say."""
_NEEDED: dict[Transfer, tuple[str, ...]] = {
    Transfer.SCP: ("user", "identityFile", "knownHostsFile"),
    Transfer.REGISTRY: ("url", "agentTokenFile"),
}
_COMMANDS = ("checkpoint", "transfer", "restore", "abort")
_HOST = r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
_URL = re.compile(rf"https?://{_HOST}/?")
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_PULL_FROM = re.compile(rf"{_HOST}(?:/{_PART})+")
"""An image's name without a tag, as the distribution specification has it."""


def unstated(document: Document, methods: Collection[MigrationMethod]) -> Iterator[Problem]:
    """Keys that the groups' methods cannot do without, those without effect, and names of a registry."""
    raw = document.raw.get("migration", {})
    setting = parsed(MigrationSetting, document, raw, (), []) if isinstance(raw, dict) else None
    if setting is None:
        return  # what is unsound in itself is told already
    yield from _misnamed(document, setting.registry)
    yield from _idle(document, setting)
    if MigrationMethod.KUBELET_CHECKPOINT in methods:
        section = setting.transfer.value
        yield from _missing(document, raw, section, _NEEDED[setting.transfer], f"transfer: {section}")
    if MigrationMethod.COMMAND in methods or setting.commands != CommandsSetting():
        yield from _missing(document, raw, "commands", _COMMANDS, "cleaning.migration: command")


def _misnamed(document: Document, registry: RegistrySetting) -> Iterator[Problem]:
    steps: Steps = ("migration", "registry")
    if registry.url is not None and not _URL.fullmatch(registry.url):
        what = f"{registry.url!r} is no https://HOST or https://HOST:PORT"
        yield Problem(document.place((*steps, "url")), what)
    elif registry.url is not None and registry.url.startswith("http:") and not registry.insecure:
        what = "sends what processes hold in memory in the clear; write https://, or add insecure: true"
        yield Problem(document.place((*steps, "url")), what)
    if registry.pull_from is not None and not _PULL_FROM.fullmatch(registry.pull_from):
        what = f"{registry.pull_from!r} is no HOST[:PORT]/PATH without scheme and tag, the path in small letters"
        yield Problem(document.place((*steps, "pullFrom")), what)


def _idle(document: Document, setting: MigrationSetting) -> Iterator[Problem]:
    """Keys of the transfer that is not the configured one, where they are not the defaults."""
    default = MigrationSetting()
    other, written, usual = (
        ("registry", setting.registry, default.registry)
        if setting.transfer is Transfer.SCP
        else ("scp", setting.scp, default.scp)
    )
    for name, field in type(written).model_fields.items():
        if getattr(written, name) != getattr(usual, name):
            key = field.alias or name
            what = f"has no effect with transfer: {setting.transfer.value}; remove it, or write transfer: {other}"
            yield Problem(document.place(("migration", other, key)), what)


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
