"""`htas agent`: beside a kubelet, for moves by way of a registry."""

from __future__ import annotations

from pathlib import Path

from htas.adapters.migration.copying.agent import Agent
from htas.adapters.migration.copying.agent_server import AgentServer
from htas.adapters.migration.copying.oci_registry import OciRegistry
from htas.cli import signals
from htas.config.serving import LoggingSetting
from htas.daemon.telemetry.logs import set_up_logs
from htas.ports import PermanentError


def serve(listen: str, token_file: Path, registry: OciRegistry, directory: Path) -> None:
    """Serve until SIGTERM or SIGINT; raises PermanentError where it cannot listen or has no token."""
    set_up_logs(LoggingSetting())
    host, _, port = listen.rpartition(":")
    try:
        server = AgentServer(Agent(registry, directory), token_file, host.strip("[]"), int(port))
    except (OSError, ValueError) as error:
        raise PermanentError(f"{listen}: cannot listen: {error}") from error
    signals.handle(dict.fromkeys(signals.ENDING, server.shutdown))
    with server:
        server.serve_forever()
