"""Names of pods and nodes for the shell's completion: of the daemon that is named, else of kubectl's cluster."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from contextlib import suppress

import msgspec
import typer

from htas.ports import HTASError

ANSWER_S = 1.0
"""Who pressed the key waits no longer for it."""
MOST = 500
"""Names asked of a daemon: a page of its API."""


class _PodName(msgspec.Struct, frozen=True):
    pod: str


class _Pods(msgspec.Struct, frozen=True):
    items: tuple[_PodName, ...]


class _Node(msgspec.Struct, frozen=True):
    node: str


class _NodeName(msgspec.Struct, frozen=True):
    node: _Node


class _Nodes(msgspec.Struct, frozen=True):
    items: tuple[_NodeName, ...]


def names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of what the command is about, pod or node; of a pod its name alone will do. Without an answer: none."""
    if ctx.params.get("dump") is not None:
        return []  # the cluster's names are not the dump's
    found = list[str]()
    with suppress(HTASError, OSError, subprocess.SubprocessError):
        found = list(_of_daemon(ctx, incomplete) if _is_url(ctx) else _of_cluster(ctx))
    return [name for key in found for name in _offered(key, incomplete)]


def _offered(key: str, incomplete: str) -> list[str]:
    return [name for name in (key, key.rpartition("/")[2]) if name.startswith(incomplete)][:1]


def _is_url(ctx: typer.Context) -> bool:
    """A release is reached through a forwarded port, which takes longer than ANSWER_S: its names are the cluster's."""
    return "://" in (ctx.params.get("server") or "")


def _of_daemon(ctx: typer.Context, incomplete: str) -> Iterable[str]:
    from htas.cli.daemon_client import DaemonClient

    given = ctx.params
    daemon = DaemonClient(given["server"], given["token_file"], given["ca"], answer_s=ANSWER_S)
    if ctx.info_name == "pod":
        return (each.pod for each in daemon.get("/pods", _Pods, text=incomplete, limit=MOST).items)
    return (each.node.node for each in daemon.get("/nodes", _Nodes, text=incomplete, limit=MOST).items)


def _of_cluster(ctx: typer.Context) -> Iterable[str]:
    pods = "pods", "-A", "-o", 'jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name}{"\\n"}{end}'
    nodes = "nodes", "-o", 'jsonpath={range .items[*]}{.metadata.name}{"\\n"}{end}'
    command = ["kubectl", "get", *(pods if ctx.info_name == "pod" else nodes), f"--request-timeout={ANSWER_S:g}s"]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ANSWER_S, check=True
    )
    return done.stdout.split()
