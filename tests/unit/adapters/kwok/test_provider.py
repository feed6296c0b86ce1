"""Simulated machines that are deleted while they boot, on an API server that answers now and then."""

from __future__ import annotations

from threading import Event

from htas.adapters.kubernetes.api import ApiServer
from htas.adapters.kubernetes.rate_limit import RateLimit
from htas.adapters.kwok.machines import Faults
from htas.adapters.kwok.provider import KwokProvider
from htas.model.claims import ClaimState, NodeClaim
from htas.planning.cluster.machines import machine_node
from tests.builders import NECTAR, NOW, make_policy
from tests.unit.adapters.kubernetes.api_server import Answer, FakeApiServer, Json, Request
from tests.waiting import until

POLICY = make_policy()
GONE = Answer(404, {"kind": "Status", "reason": "NotFound", "message": "not found"})


class Objects:
    """Keeps what is posted, by address. `nodes_flow` holds up the registering of nodes, `lists_fail` refuses lists."""

    def __init__(self) -> None:
        self.kept: dict[str, Json] = {}
        self.nodes_flow = Event()
        self.registering = Event()
        self.lists_fail = False
        self.lists_refused = 0

    def answer(self, request: Request) -> Answer:
        match request.method:
            case "POST":
                if request.path.endswith("/nodes"):
                    self.registering.set()
                    assert self.nodes_flow.wait(30)
                self.kept[f"{request.path}/{request.body['metadata']['name']}"] = request.body
                return Answer(201, request.body)
            case "DELETE":
                return Answer(200, {}) if self.kept.pop(request.path, None) is not None else GONE
        if "labelSelector" not in request.query:
            return Answer(200, self.kept[request.path]) if request.path in self.kept else GONE
        if self.lists_fail:
            self.lists_refused += 1
            return Answer(500, {"kind": "Status", "message": "etcd is away"})
        return Answer(200, {"items": [body for path, body in self.kept.items() if path.startswith(request.path)]})


def test_a_machine_deleted_while_it_boots_leaves_no_node_though_the_look_afterwards_failed() -> None:
    objects = Objects()
    claim = NodeClaim("c1", POLICY.groups[0].name, NECTAR[0].name, ClaimState.WANTED, NOW, NOW)
    with FakeApiServer(objects.answer) as server:
        provider = KwokProvider(ApiServer(server.access(), RateLimit(1e9, 10**9)), "test", "default", 0.0, Faults())
        machine = provider.create(claim, NECTAR[0], machine_node(POLICY, POLICY.groups[0], NECTAR[0], None, "c1"))
        provider.start()
        until(objects.registering.is_set)
        provider.delete(machine.id)
        objects.lists_fail = True
        objects.nodes_flow.set()
        until(lambda: objects.lists_refused)
        assert list(objects.kept) == ["/api/v1/nodes/c1"]
        objects.lists_fail = False
        until(lambda: not objects.kept)
        assert not provider.instances()
        provider.close()
