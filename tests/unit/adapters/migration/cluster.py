"""A cluster over real HTTP: pods of which the API server checks versions, and kubelets that start and end them."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from tests.unit.adapters.kubernetes.api_server import Answer, FakeApiServer, Request, refusal

Json = dict[str, Any]
POD = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/]+)")
CONTROLLERS = re.compile(
    r"/apis/apps/v1/namespaces/([^/]+)/replicasets|/api/v1/namespaces/([^/]+)/replicationcontrollers"
)
NODE = re.compile(r"/api/v1/nodes/([^/]+)")
RUNNING: Json = {"running": {"startedAt": "2026-11-21T10:00:00Z"}}
Hook = Callable[[str, str, Json], object]


def nothing(method: str, name: str, body: Json) -> None:
    """What most tests do around a write."""


class Cluster:
    """What is there. `before` is called ahead of each write of a pod; `after` may lose the answer by returning True."""

    def __init__(self) -> None:
        self.pods: dict[tuple[str, str], Json] = {}
        self.nodes: dict[str, Json] = {}
        self.controllers: dict[tuple[str, str], Json] = {}
        """By namespace and name."""
        self.before: Hook = nothing
        self.after: Hook = nothing
        self.writes: list[tuple[str, str]] = []
        self.reads: list[str] = []
        """The paths that were asked for."""
        self._versions = count(100)

    @contextmanager
    def served(self) -> Iterator[FakeApiServer]:
        with FakeApiServer(self._answer) as server:
            yield server

    # What tests do to it.

    def add_node(self, name: str) -> None:
        addresses = [{"type": "InternalIP", "address": "192.0.2.1"}]
        self.nodes[name] = {
            "metadata": {"name": name},
            "spec": {},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": addresses,
                "nodeInfo": {"containerRuntimeVersion": "containerd://2.3.7"},
            },
        }

    def lose_node(self, name: str, *, with_object: bool = False) -> None:
        """Its kubelet answers no more; its pods are said to run on."""
        if with_object:
            del self.nodes[name]
        else:
            self.nodes[name]["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]

    def add(self, pod: Json) -> Json:
        """A pod that runs, if a kubelet hears of it."""
        meta = pod["metadata"]
        meta.setdefault("uid", f"u-{next(self._versions)}")
        key = meta["namespace"], meta["name"]
        self.pods[key] = pod
        if self._is_ready(pod["spec"].get("nodeName", "")):
            self.say(pod, RUNNING, phase="Running")
        self.changed(pod)
        return pod

    def say(self, pod: Json, state: Json, *, phase: str) -> None:
        """What a kubelet writes of a pod's containers."""
        names = [container["name"] for container in pod["spec"]["containers"]]
        pod["status"] = {
            "phase": phase,
            "containerStatuses": [{"name": name, "state": state} for name in names],
            "conditions": [{"type": "Ready", "status": "True" if "running" in state else "False"}],
        }
        self.changed(pod)

    def pod(self, name: str, namespace: str = "team") -> Json:
        return self.pods[namespace, name]

    # What it answers.

    def _answer(self, request: Request) -> Answer | None:
        if request.method == "GET":
            self.reads.append(request.path)
        if match := NODE.fullmatch(request.path):
            found = self.nodes.get(match[1])
            return Answer(body=found) if found is not None else refusal(404, message=f"node {match[1]} not found")
        if match := POD.fullmatch(request.path):
            return self._of_pod(request, match[1], match[2])
        if request.method == "POST":
            return self._created(request)
        if match := CONTROLLERS.fullmatch(request.path):
            key = match[1] or match[2], request.query["fieldSelector"].removeprefix("metadata.name=")
            return Answer(body={"items": [self.controllers[key]] if key in self.controllers else []})
        return Answer(body={"items": [copy.deepcopy(pod) for pod in self._listed(request.query)]})

    def _listed(self, query: dict[str, str]) -> list[Json]:
        label = query.get("labelSelector")
        if label is not None:
            wanted = dict(each.partition("=")[::2] for each in label.split(",") if each)
            return [pod for pod in self.pods.values() if _bears(pod, wanted)]
        return [pod for pod in self.pods.values() if not pod["spec"].get("nodeName")]

    def _created(self, request: Request) -> Answer | None:
        meta = request.body["metadata"]
        self.before("POST", meta["name"], request.body)
        if (meta["namespace"], meta["name"]) in self.pods:
            return refusal(409, message="already exists")
        self.writes.append(("POST", meta["name"]))
        made = self.add(copy.deepcopy(request.body))
        return None if self.after("POST", meta["name"], request.body) else Answer(body=made)

    def _of_pod(self, request: Request, namespace: str, name: str) -> Answer | None:
        if request.method != "GET":
            self.before(request.method, name, request.body)
        found = self.pods.get((namespace, name))
        if found is None:
            return refusal(404, message=f"pod {name} not found")
        if request.method == "GET":
            self._kubelet_looks(found)
            return Answer(body=copy.deepcopy(found))
        wanted = request.body["metadata"] if request.method == "PATCH" else request.body.get("preconditions", {})
        for key in ("uid", "resourceVersion"):
            if wanted.get(key, found["metadata"][key]) != found["metadata"][key]:
                return refusal(409, message=f"the {key} is another")
        self.writes.append((request.method, name))
        if request.method == "PATCH":
            merge(found, request.body)
        else:
            self._deleted(found, request.body["gracePeriodSeconds"])
        self.changed(found)
        return None if self.after(request.method, name, request.body) else Answer(body=copy.deepcopy(found))

    def _deleted(self, pod: Json, grace_s: int) -> None:
        meta = pod["metadata"]
        meta.setdefault("deletionTimestamp", "2026-11-22T00:00:00Z")
        meta["deletionGracePeriodSeconds"] = grace_s
        if grace_s == 0 and not meta.get("finalizers"):
            del self.pods[meta["namespace"], meta["name"]]

    def _kubelet_looks(self, pod: Json) -> None:
        """A kubelet that is there ends a deleted pod after it was seen once; finalizers hold the object."""
        meta = pod["metadata"]
        if not meta.get("deletionTimestamp") or not self._is_ready(pod["spec"]["nodeName"]):
            return
        if pod["status"]["phase"] == "Running":
            self.say(pod, {"terminated": {"exitCode": 137}}, phase="Failed")
        elif not meta.get("finalizers"):
            del self.pods[meta["namespace"], meta["name"]]

    def _is_ready(self, node: str) -> bool:
        conditions = self.nodes[node]["status"]["conditions"] if node in self.nodes else []
        return any(each["status"] == "True" for each in conditions)

    def changed(self, pod: Json) -> None:
        """Somebody wrote it: what was read before is of an older version."""
        pod["metadata"]["resourceVersion"] = str(next(self._versions))


def _bears(pod: Json, wanted: dict[str, str]) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return all(key in labels and text in ("", labels[key]) for key, text in wanted.items())


def merge(into: Json, patch: Json) -> None:
    """RFC 7396."""
    for key, value in patch.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict):
            into[key] = into.get(key) or {}
            merge(into[key], value)
        else:
            into[key] = value
