"""Binding over real HTTP: volumes that wait for their first consumer are made for the node first."""

from __future__ import annotations

import json
from typing import Any

import pytest

from htas.adapters.kubernetes.api import ApiServer
from htas.adapters.kubernetes.cluster import KubernetesCluster
from htas.adapters.kubernetes.rate_limit import RateLimit
from htas.adapters.kubernetes.resources import RESOURCES
from htas.model.constraints import Constraints
from htas.model.pods import Pod
from htas.ports import NotYetError, PermanentError
from tests.builders import make_pod
from tests.unit.adapters.kubernetes.api_server import Answer, FakeApiServer, Request, refusal
from tests.unit.adapters.kubernetes.manifests import manifest, node

BY_KIND = {resource.kind: resource for resource in RESOURCES}
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
BINDING = "/api/v1/namespaces/default/pods/db/binding"
SELECTED = "volume.kubernetes.io/selected-node"


def claim(name: str, volume: str = "", selected: str | None = None) -> dict[str, Any]:
    meta = {"namespace": "default", "annotations": {SELECTED: selected} if selected else {}}
    return manifest("PersistentVolumeClaim", name, meta, spec={"volumeName": volume})


def cluster(server: FakeApiServer, *claims: dict[str, Any]) -> KubernetesCluster:
    made = KubernetesCluster(ApiServer(server.access(), RateLimit(1e9, 10**9), pause=lambda _: None), "htas")
    for item in (node("n"), *claims):
        made.live.put(BY_KIND[item["kind"]], json.dumps(item).encode())
    return made


def user(*claims: str) -> Pod:
    return make_pod("db", constraints=Constraints(claims=claims))


@pytest.mark.parametrize(
    ("claims", "patched", "is_bound"),
    [
        pytest.param([], [], True, id="no claims"),
        pytest.param([claim("a", "pv-1")], [], True, id="a volume that is there"),
        pytest.param([claim("a")], ["a"], False, id="one to be made: its node is written down, and the pod waits"),
        pytest.param([claim("a", selected="n")], [], False, id="one that is being made: nothing is written again"),
        pytest.param([claim("a", selected="m")], ["a"], False, id="one meant for another node, which did not come about"),
        pytest.param([claim("a", "pv-1"), claim("b"), claim("c")], ["b", "c"], False, id="all that are to be made"),
    ],
)  # fmt: skip
def test_a_pod_is_bound_once_its_volumes_are_there(claims: list[Any], patched: list[str], is_bound: bool) -> None:
    with FakeApiServer(lambda _: Answer(200, {})) as server:
        made = cluster(server, *claims)
        pod = user(*(each["metadata"]["name"] for each in claims))
        if is_bound:
            made.bind(pod, "n")
        else:
            with pytest.raises(NotYetError, match="volumes are being made for node n: "):
                made.bind(pod, "n")
        asked = [(each.path, each.body["metadata"]) for each in server.asked("PATCH")]
        assert asked == [(f"{CLAIMS}/{name}", {"annotations": {SELECTED: "n"}}) for name in patched]
        assert [each.path for each in server.asked("POST")] == [BINDING] * is_bound


def test_a_right_that_is_missing_is_told_and_the_pod_is_not_bound() -> None:
    def answer(request: Request) -> Answer:
        return refusal(403, message="may not patch") if request.method == "PATCH" else Answer(200, {})

    with FakeApiServer(answer) as server:
        with pytest.raises(PermanentError, match="may not patch"):
            cluster(server, claim("a")).bind(user("a"), "n")
        assert server.asked("POST") == []
