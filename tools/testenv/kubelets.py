"""The kubelets of machines that have none: each ACTIVE server registers the Node that its user data tells it to.

Nova's fake hypervisor boots nothing. What cloud-init and kubeadm would do with the user data is done here: the join
configuration is read out of it, the bootstrap token is tried, and the Node is created with the labels, taints and
providerID that it asks for. KWOK keeps the Node alive while its server is; a server that is gone has a silent kubelet.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from typing import Any

import msgspec
import yaml

from htas.adapters.kubernetes.api import MERGE_PATCH
from htas.ports import ConflictError, HTASError, NotFoundError
from tools.testenv.cluster import NODES, Cluster, Json
from tools.testenv.openstack import OpenStack

LOOK_S = 1.0
"""Each look is a list of Nova with a token that Keystone checks: a third of a second of a core."""
JOIN_FILE = "/run/htas-join.yaml"


class Kubelets:
    """Plays them until `close`. `joins` says which servers do; the others run on and never register.

    `bare` ones are given no labels and taints by their image, whatever their user data says.
    """

    def __init__(
        self,
        cloud: OpenStack,
        cluster: Cluster,
        joins: Callable[[Any], bool] = lambda server: True,
        *,
        bare: bool = False,
    ) -> None:
        self._cloud, self._cluster, self._joins, self._bare = cloud, cluster, joins, bare
        self._admin = cloud.connect("htas-admin")
        self._project = cloud.user.current_project_id
        self._stopping = Event()
        self._registered: dict[str, str] = {}
        self.tokens: list[str] = []
        self.problem: Exception | None = None
        self._thread = Thread(target=self._run, name="kubelets", daemon=True)
        self._thread.start()

    def __enter__(self) -> Kubelets:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Raises what went wrong, if the user data of a server was wrong."""
        self._stopping.set()
        self._thread.join(30.0)
        if self.problem is not None:
            raise self.problem

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_S):
            try:
                self._look()
            except AssertionError as error:
                self.problem = error
                return
            except Exception:
                continue  # Nova or the API server is away: part of some tests

    def _look(self) -> None:
        found = list(self._admin.compute.servers(all_projects=True, project_id=self._project))
        active = {
            server.id: server for server in found if server.status == "ACTIVE" and "htas.claim" in server.metadata
        }
        unknown = {server.id for server in found if server.status == "UNKNOWN"}  # Nova has no answer from its cell
        for server_id, server in active.items():
            if server_id not in self._registered and self._joins(server):
                self._register(server)
        for server_id in set(self._registered) - set(active) - unknown:
            self._fall_silent(self._registered.pop(server_id), server_id)

    def _register(self, server: Any) -> None:
        node = self._node_of(server)
        with suppress(ConflictError):
            self._cluster.create(node)
        self._registered[server.id] = node["metadata"]["name"]

    def _node_of(self, server: Any) -> Json:
        flavour = server.flavor
        size = {"cpu": str(flavour["vcpus"]), "memory": f"{flavour['ram']}Mi", "pods": "110"}
        name, labels, taints = server.name, {}, []
        if server.user_data:
            options = self._join(base64.b64decode(server.user_data).decode(), server.id)
            name = options["name"]
            assert options["provider-id"] == f"openstack:///{server.id}", options
            labels = dict(each.split("=", 1) for each in options["node-labels"].split(",") if each)
            taints = [_taint(each) for each in options["register-with-taints"].split(",") if each]
        if self._bare:
            labels, taints = {}, []
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **labels},
                "annotations": {"kwok.x-k8s.io/node": "fake"},
            },
            "spec": {"providerID": f"openstack:///{server.id}", **({"taints": taints} if taints else {})},
            "status": {"capacity": size, "allocatable": size},
        }

    def _join(self, user_data: str, server_id: str) -> dict[str, str]:
        """The options that a kubelet gets, as the machine's own script would make them."""
        assert user_data.startswith("#cloud-config"), user_data[:100]
        files = {each["path"]: each["content"] for each in yaml.safe_load(user_data)["write_files"]}
        join = yaml.safe_load(files[JOIN_FILE].replace("INSTANCE_ID", server_id))
        self.tokens.append(join["discovery"]["bootstrapToken"]["token"])
        registration = join["nodeRegistration"]
        return {"name": registration["name"]} | {
            each["name"]: each["value"] for each in registration["kubeletExtraArgs"]
        }

    def _fall_silent(self, node: str, server_id: str) -> None:
        """KWOK lets go of the Node, which is as NotReady as one whose kubelet has been silent for long."""
        path = f"{NODES}/{node}"
        with suppress(NotFoundError, HTASError):
            found = msgspec.json.decode(self._cluster.api.get(path))
            if not found["spec"].get("providerID", "").endswith(server_id):
                return
            self._cluster.api.patch(path, {"metadata": {"annotations": {"kwok.x-k8s.io/node": None}}}, MERGE_PATCH)
            ready = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
            self._cluster.api.patch(f"{path}/status", {"status": {"conditions": [ready]}}, MERGE_PATCH)


def _taint(text: str) -> Json:
    what, _, effect = text.rpartition(":")
    key, _, value = what.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}
