"""`htas run` and `htas sandbox`: processes that live until they are told to end."""

from __future__ import annotations

import resource
import signal
from pathlib import Path
from threading import Event

from htas.cli import signals
from htas.cli.console import InputError, err
from htas.config.loader import Loaded
from htas.daemon.service import Service
from htas.daemon.wiring.sandbox import new_world
from htas.sandbox.server import WorldServer

MOST_FILES = 65_536
"""What a daemon asks for: login shells and many container runtimes start processes with 1,024."""


def _raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def run_daemon(loaded: Loaded, for_s: float | None) -> None:
    """Run cycles until a signal; the cycle under way is finished first. SIGHUP: read the configuration again."""
    _raise_file_limit()
    service = Service(loaded)
    signals.handle({**dict.fromkeys(signals.ENDING, service.stop), signal.SIGHUP: service.reload})
    service.run(for_s)


def run_world(loaded: Loaded, socket: Path) -> None:
    """Serve a sandbox until a signal."""
    setting = loaded.sandbox
    if setting is None:
        raise InputError("provider: is not the sandbox; name a configuration whose world can be served")
    server = WorldServer(
        new_world(setting, loaded.policy.migration.attempts, loaded.policy.groups), socket, setting.speed
    )
    done = Event()
    signals.handle(dict.fromkeys(signals.ENDING, done.set))
    server.start()
    err.print(f"sandbox listens on {socket}, at {setting.speed:g} times real time; end it with Ctrl-C")
    done.wait()
    server.stop()
