"""Credential plugins: a command of the kubeconfig prints a token or a certificate (client.authentication.k8s.io).

Source: Kubernetes documentation, "Authenticating: client-go credential plugins".
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from htas.ports import TransientError

TIMEOUT_S = 60.0
"""For a command that nobody can answer; one with a terminal may wait for its user."""
EARLY_S = 30.0
"""So long before its end a token is renewed."""


class Variable(msgspec.Struct, frozen=True):
    """One variable of the command's environment."""

    name: str
    value: str


class Plugin(msgspec.Struct, frozen=True, rename="camel"):
    """The `exec` of a kubeconfig's user."""

    command: str
    api_version: str = "client.authentication.k8s.io/v1"
    args: list[str] | None = None
    env: list[Variable] | None = None
    interactive_mode: str = "IfAvailable"
    provide_cluster_info: bool = False
    install_hint: str = ""


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _Credential(msgspec.Struct, frozen=True):
    status: _Status


class PluginCredentials:
    """What a plugin printed. It runs again when the token ends, and keeps a certificate for its whole life.

    Raises TransientError, with what the plugin said, when it fails.
    """

    def __init__(
        self, plugin: Plugin, folder: Path, cluster: dict[str, Any], now: Callable[[], float] = time.time
    ) -> None:
        self._plugin, self._folder, self._cluster, self._now = plugin, folder, cluster, now
        self._lock = Lock()
        self._status = self._run()

    @property
    def certificate(self) -> tuple[str, str] | None:
        """The texts of a certificate and its key; None where a token is what authenticates."""
        found = self._status.client_certificate_data, self._status.client_key_data
        return found if all(found) else None

    def authorization(self) -> str:
        """The Authorization header."""
        with self._lock:
            ends = self._status.expiration_timestamp
            if ends is not None and ends.timestamp() - EARLY_S <= self._now():
                self._status = self._run()
            return f"Bearer {self._status.token}" if self._status.token else ""

    def _run(self) -> _Status:
        plugin = self._plugin
        asks = plugin.interactive_mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
        if plugin.interactive_mode == "Always" and not asks:
            raise TransientError(f"{plugin.command}: it needs a terminal (interactiveMode: Always)")
        command = str(self._folder / plugin.command) if "/" in plugin.command else plugin.command
        try:
            done = subprocess.run(
                [command, *(plugin.args or ())],
                env={**os.environ, **{each.name: each.value for each in plugin.env or ()}, **self._told(asks)},
                stdin=None if asks else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if asks else subprocess.PIPE,
                timeout=None if asks else TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            hint = f"; {plugin.install_hint}" if plugin.install_hint else ""
            raise TransientError(f"{plugin.command}: {error}{hint}") from error
        if done.returncode != 0:
            said = (done.stderr or b"").decode("utf-8", "replace").strip()
            raise TransientError(f"{plugin.command}: exit status {done.returncode}: {said[-500:]}")
        try:
            return msgspec.json.decode(done.stdout, type=_Credential).status
        except msgspec.DecodeError as error:
            raise TransientError(f"{plugin.command}: it printed no ExecCredential: {error}") from error

    def _told(self, asks: bool) -> dict[str, str]:
        spec: dict[str, Any] = {"interactive": asks}
        if self._plugin.provide_cluster_info:
            spec["cluster"] = self._cluster
        info = {"apiVersion": self._plugin.api_version, "kind": "ExecCredential", "spec": spec}
        return {"KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}
