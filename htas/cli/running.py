"""`htas run` and `htas sandbox`: processes that live until they are told to end."""

from __future__ import annotations

import logging
import signal
import sys
from pathlib import Path
from threading import Event, Timer

import structlog

from htas.cli.console import err
from htas.config.loader import Loaded
from htas.daemon.triggers import Triggers
from htas.daemon.wiring import new_world, wired
from htas.sandbox.server import WorldServer

SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run_daemon(loaded: Loaded, for_s: float | None) -> None:
    """Run cycles until a signal; the cycle under way is finished first."""
    _log_to_stderr()
    with wired(loaded) as daemon:
        triggers = Triggers(daemon)
        for number in SIGNALS:
            signal.signal(number, lambda *_: triggers.stop())
        timer = Timer(for_s, triggers.stop) if for_s is not None else None
        if timer is not None:
            timer.daemon = True
            timer.start()
        structlog.get_logger().info("htas runs", cluster=loaded.policy.cluster, groups=len(loaded.policy.groups))
        triggers.run()
        structlog.get_logger().info("htas ended")


def run_world(loaded: Loaded, socket: Path) -> None:
    """Serve a sandbox until a signal."""
    setting = loaded.sandbox
    server = WorldServer(new_world(setting), socket, setting.speed)
    done = Event()
    for number in SIGNALS:
        signal.signal(number, lambda *_: done.set())
    server.start()
    err.print(f"sandbox listens on {socket}, at {setting.speed:g} times real time; end it with Ctrl-C")
    done.wait()
    server.stop()


def _log_to_stderr() -> None:
    """Console lines on a terminal, JSON otherwise."""
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    is_terminal = sys.stderr.isatty()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.dev.ConsoleRenderer() if is_terminal else structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
