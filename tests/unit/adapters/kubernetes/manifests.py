"""Manifests as a cluster would show them, and views read from them."""

from __future__ import annotations

import json
from typing import Any

from htas.adapters.kubernetes.dump import read_dump
from htas.model.pods import Pod
from htas.model.snapshot import ClusterView

Manifest = dict[str, Any]


def manifest(kind: str, name: str, meta: Manifest | None = None, **fields: Any) -> Manifest:
    return {"kind": kind, "metadata": {"name": name, **(meta or {})}, **fields}


def pod(name: str = "p", meta: Manifest | None = None, status: Manifest | None = None, **spec: Any) -> Manifest:
    spec.setdefault("containers", [{"name": "c", "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}}])
    return manifest("Pod", name, meta, spec=spec, status=status or {})


def asking(name: str = "c", limits: Manifest | None = None, always: bool = False, **requests: str) -> Manifest:
    """A container; `always` makes a sidecar of an init container."""
    made: Manifest = {"name": name, "resources": {"requests": requests, "limits": limits or {}}}
    return {**made, "restartPolicy": "Always"} if always else made


def node(name: str = "n", meta: Manifest | None = None, spec: Manifest | None = None, **status: Any) -> Manifest:
    return manifest("Node", name, meta, spec=spec or {}, status=status)


def view_of(*objects: Manifest) -> ClusterView:
    return read_dump(json.dumps({"kind": "List", "items": objects}).encode(), "dump.json")


def read_pod(*objects: Manifest) -> Pod:
    """The only pod among objects that are all understood."""
    view = view_of(*objects)
    assert view.problems == ()
    (found,) = view.pods
    return found


def problems_of(*objects: Manifest) -> list[str]:
    return [f"{problem.where}: {problem.what}" for problem in view_of(*objects).problems]
