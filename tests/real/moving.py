"""Two real nodes beside a control plane of their own, and the engine that moves pods between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from htas.adapters.kubernetes.access import load_access
from htas.adapters.kubernetes.api import ApiServer
from htas.adapters.kubernetes.rate_limit import RateLimit
from htas.adapters.migration.engine import MigrationEngine
from htas.adapters.migration.method import Method
from htas.adapters.migration.objects import Objects
from htas.daemon.wiring.migration import kubelet_checkpoint
from htas.model.migrations import Deadlines, MigrationRecord, MigrationSettings, SecureCopy
from htas.model.nodes import CLAIM_LABEL, CLUSTER_LABEL, GROUP_LABEL
from htas.model.pods import Phase, Pod
from htas.model.resources import Resources
from tests.real.counting import last, pods_of
from tests.real.harness import APPS, BATCH, CONFIG_MAPS, CORE, LEASES, NODES, Cluster, Json, eventually
from tools.testenv.real_nodes import ARCHIVES, NAMES, RealNodes

LANDING = "/var/lib/htas"


class World:
    """A cluster of two real nodes; what tests leave on it is swept by `wipe`."""

    def __init__(self, cluster: Cluster, nodes: RealNodes) -> None:
        self.cluster, self.nodes = cluster, nodes

    def wipe(self) -> None:
        """A node of which the Node object is gone is started anew: a kubelet registers once."""
        known = {node["metadata"]["name"] for node in self.cluster.nodes()}
        for node in set(NAMES) - known:
            self.nodes.kill(node)
        self.nodes.start()
        labels = (CLUSTER_LABEL, CLAIM_LABEL, GROUP_LABEL)
        for item in self.cluster.items(CONFIG_MAPS, labelSelector=CLUSTER_LABEL) + self.cluster.items(LEASES):
            collection = LEASES if "holderIdentity" in item.get("spec", {}) else CONFIG_MAPS
            self.cluster.delete(f"{collection}/{item['metadata']['name']}")
        for path in (f"{APPS}/namespaces/default/replicasets", f"{BATCH}/namespaces/default/jobs"):
            self.cluster.delete(path)
        eventually(self._is_swept, 60, "no pod is left")
        for node in NAMES:
            self.cluster.kubectl("label", "node", node, *(f"{label}-" for label in labels))
            self.cluster.kubectl("uncordon", node)
            self._untaint(node)
            self.nodes.on(node, f"rm -rf {LANDING} {ARCHIVES}/*")
            for image in self.nodes.checkpoint_images(node):
                self.nodes.on(node, f"ctr -n k8s.io images rm {image}")

    def _untaint(self, node: str) -> None:
        patch = {"spec": {"taints": None}}
        self.cluster.api.patch(f"{NODES}/{node}", patch)

    def _is_swept(self) -> bool:
        self.cluster.delete(f"{CORE}/namespaces/default/pods")
        return not self.cluster.pods(labelSelector="!control-plane")

    def settings(self, **changes: object) -> MigrationSettings:
        copying = SecureCopy(
            user="root",
            identity_file=str(self.nodes.identity_file),
            known_hosts_file=str(self.nodes.known_hosts_file),
        )
        return MigrationSettings(secure_copy=copying, **changes)  # type: ignore[arg-type] # fields by name

    @contextmanager
    def engine(
        self,
        reached: Callable[[str], None] = lambda point: None,
        method: Callable[[Callable[[str], str]], Method] | None = None,
        **changes: object,
    ) -> Iterator[MigrationEngine]:
        """The port as a leading daemon has it; `method` makes another than kubelet-checkpoint."""
        settings = self.settings(**changes)
        access = load_access(self.cluster.kubeconfig, None, 32)
        api = ApiServer(access, RateLimit(1000, 1000))
        objects = Objects(api)
        chosen = method(objects.address) if method is not None else kubelet_checkpoint(settings, access, objects)
        engine = MigrationEngine(objects, chosen, settings, sweepable=lambda: NAMES, reached=reached)
        engine.run()
        try:
            yield engine
        finally:
            engine.close()

    def counting(self, *manifests: Json, on: str = "real-a") -> None:
        """Create work, bind what HTAS would bind to a node, and wait until each piece of it has counted a while."""
        self.cluster.create(*manifests)
        for manifest in manifests:
            app = manifest["metadata"]["name"]
            eventually(lambda app=app: pods_of(self.cluster, app), 30, f"{app} has a pod")
            for each in pods_of(self.cluster, app):
                name = each["metadata"]["name"]
                if "nodeName" not in each["spec"]:
                    target = {"apiVersion": "v1", "kind": "Node", "name": on}
                    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
                    self.cluster.api.post(f"{CORE}/namespaces/default/pods/{name}/binding", body)
                eventually(lambda name=name: last(self.cluster, name).number > 5, 90, f"{name} counts")

    def model_of(self, app: str) -> Pod:
        """The only pod of an app, as the port is given it."""
        (found,) = pods_of(self.cluster, app)
        return as_model(found)

    def copies(self, node: str) -> int:
        """How many counting processes run on a node."""
        return int(self.nodes.on(node, "grep -l 'urandom [|] base64' /proc/[0-9]*/cmdline 2>/dev/null | wc -l"))

    def is_clean(self) -> bool:
        """Whether nothing of a move is left on any node."""
        for node in NAMES:
            left = [*self.nodes.files(node, ARCHIVES), *self.nodes.files(node, LANDING)]
            if left or self.nodes.checkpoint_images(node) or self.nodes.copies_under_way(node):
                return False
        return True


def as_model(found: Json) -> Pod:
    meta, spec = found["metadata"], found["spec"]
    return Pod(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        requests=Resources(cpu_m=50, memory_bytes=64 << 20, pods=1),
        node=spec.get("nodeName"),
        phase=Phase.RUNNING,
    )


def over(engine: MigrationEngine, within_s: float = 200.0, count: int = 1) -> list[MigrationRecord]:
    """Wait until so many moves are over; returns them."""
    look = lambda: [each for each in engine.records() if each.is_over]  # noqa: E731 # said twice below
    eventually(lambda: len(look()) >= count, within_s, f"{count} moves are over: {engine.records()}")
    return look()


def impatient(**changes: float) -> Deadlines:
    """Deadlines for moves that fail; seconds."""
    return msgspec.structs.replace(
        Deadlines(checkpoint_s=30.0, transfer_s=30.0, restore_s=20.0, switch_s=20.0), **changes
    )
