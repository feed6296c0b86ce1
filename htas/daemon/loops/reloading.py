"""The configuration while the daemon runs: read again on change or SIGHUP, and refused as a whole if wrong.

By content, not by time: a mounted ConfigMap is a symbolic link that is swapped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import structlog

from htas.config.document import MOST_BYTES
from htas.config.loader import ConfigurationError, Loaded, load_configuration
from htas.config.migration_keys import CARRIED
from htas.config.sandbox import SandboxSetting
from htas.files import read_file
from htas.model.moves import MigrationMethod
from htas.ports import MOST_TOLD

log = structlog.get_logger()

LOOK_S = 5.0
"""Between looks at the files. The kubelet takes up to a minute to bring a changed ConfigMap to a pod."""
PAUSE_S = 1.0
"""After each look: requests that come meanwhile are one, since each has all stages run."""
FIXED = (
    "mode",
    "recommend",
    "cluster",
    "scheduler_name",
    "provider",
    "kubernetes",
    "leader_election",
    "http",
    "audit",
    "store",
    "migration",
)
"""Sections that a running daemon has been built from."""


class Reloading:
    """Watches the files of a configuration. `adopt` is given one that differs and is right."""

    def __init__(
        self, loaded: Loaded, adopt: Callable[[Loaded], None], told: Callable[[bool], None] = lambda is_adopted: None
    ) -> None:
        self._loaded = loaded
        self._adopt = adopt
        self._told = told
        self._seen = fingerprint(loaded)
        self._wake = Event()
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="configuration", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def look_now(self) -> None:
        """Read it again whether or not its content changed (SIGHUP). Requests within `PAUSE_S` are one."""
        self._wake.set()

    def stop(self) -> None:
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(5.0)

    def _run(self) -> None:
        while not self._stopping.is_set():
            is_asked = self._wake.wait(LOOK_S)
            self._wake.clear()
            if not self._stopping.is_set():
                self.look(is_asked)
                self._stopping.wait(PAUSE_S)

    def look(self, is_asked: bool = False) -> None:
        """Adopt what is in the files if it differs from what runs and is right."""
        seen = fingerprint(self._loaded)
        if seen == self._seen and not is_asked:
            return
        self._seen = seen
        try:
            loaded = load_configuration(self._loaded.path)
        except ConfigurationError as error:
            for problem in error.problems[:MOST_TOLD]:
                log.error("configuration refused, the old one stays", where=problem.where, what=problem.what)
            if len(error.problems) > MOST_TOLD:
                more = f"and {len(error.problems) - MOST_TOLD:,} more"
                log.error("configuration refused, the old one stays", where=str(self._loaded.path), what=more)
            self._told(False)
            return
        fixed = changed_for_good(self._loaded, loaded)
        if fixed:
            keys = ", ".join(fixed)
            log.error("configuration refused, the old one stays", where=keys, what="cannot change here; restart htas")
            self._told(False)
            return
        self._loaded = loaded
        self._adopt(loaded)
        self._told(True)
        log.info("configuration adopted", path=str(loaded.path))


def changed_for_good(old: Loaded, new: Loaded) -> list[str]:
    """Keys (as written) that differ and that only a new start can change."""
    fields = type(old.settings).model_fields
    keys = [fields[name].alias or name for name in FIXED if getattr(old.settings, name) != getattr(new.settings, name)]
    return keys if _carried_methods(new) <= _carried_methods(old) else [*keys, "nodeGroups.cleaning.migration"]


def _carried_methods(loaded: Loaded) -> set[MigrationMethod]:
    """Ways of moving pods that groups name, where what carries them is made at the start: the sandbox has them all."""
    if isinstance(loaded.provider, SandboxSetting):
        return set()
    return {group.cleaning.migration for group in loaded.policy.groups} & CARRIED


def fingerprint(loaded: Loaded) -> str:
    """A digest of the configuration file and the price file it names; files that cannot be read count as empty."""
    digest = hashlib.sha256(_content(loaded.path))
    if isinstance(loaded.settings.flavours, str):
        digest.update(_content(loaded.directory / loaded.settings.flavours))
    return digest.hexdigest()


def _content(path: Path) -> bytes:
    try:
        return read_file(path, MOST_BYTES)
    except OSError:
        return b""
