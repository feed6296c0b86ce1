"""NodePorts, after kube-scheduler's plugins/nodeports/node_ports_test.go."""

from __future__ import annotations

import pytest

from htas.model.constraints import HostPort
from htas.planning.cluster.feasibility import host_ports
from tests.builders import make_node
from tests.unit.planning.feasibility.situations import on, pod, refusals

TAKEN = "node(s) didn't have free ports for the requested pod ports"


def port(text: str) -> HostPort:
    """As in "TCP/127.0.0.1/8080"."""
    protocol, ip, number = text.split("/")
    return HostPort(int(number), protocol, ip)


@pytest.mark.parametrize(
    ("wanted", "there", "is_free"),
    [
        pytest.param([], ["TCP/0.0.0.0/8080"], True, id="none wanted"),
        pytest.param(["UDP/127.0.0.1/8080"], ["UDP/127.0.0.1/9090"], True, id="another port"),
        pytest.param(["UDP/127.0.0.1/8080"], ["UDP/127.0.0.1/8080"], False, id="the same UDP port"),
        pytest.param(["TCP/127.0.0.1/8080"], ["TCP/127.0.0.1/8080"], False, id="the same TCP port"),
        pytest.param(["TCP/127.0.0.1/8080"], ["TCP/127.0.0.2/8080"], True, id="another address"),
        pytest.param(["UDP/127.0.0.1/8080"], ["TCP/127.0.0.1/8080"], True, id="another protocol"),
        pytest.param(
            ["UDP/127.0.0.1/8000", "UDP/127.0.0.1/8080"], ["UDP/127.0.0.1/8080"], False, id="the second of two wanted"
        ),
        pytest.param(
            ["TCP/127.0.0.1/8001", "UDP/127.0.0.1/8080"],
            ["TCP/127.0.0.1/8001", "UDP/127.0.0.1/8081"],
            False,
            id="the first of two, although the second is free",
        ),
        pytest.param(["TCP/0.0.0.0/8001"], ["TCP/127.0.0.1/8001"], False, id="every address wanted, one taken"),
        pytest.param(["TCP/127.0.0.1/8001"], ["TCP/0.0.0.0/8001"], False, id="one address wanted, every one taken"),
        pytest.param(["TCP/0.0.0.0/8001"], ["TCP/0.0.0.0/8001"], False, id="every address, twice"),
        pytest.param(
            ["TCP/10.0.10.10/8001", "TCP/0.0.0.0/8001"], ["TCP/127.0.0.1/8001"], False, id="one of two overlaps"
        ),
        pytest.param(["UDP/127.0.0.1/8001"], ["TCP/0.0.0.0/8001"], True, id="every address of another protocol"),
        pytest.param(["SCTP/127.0.0.1/8001"], ["SCTP/0.0.0.0/8001"], False, id="SCTP likewise"),
    ],
)
def test_ports(wanted: list[str], there: list[str], is_free: bool) -> None:
    nodes = [make_node("n"), make_node("other")]
    incoming = pod(host_ports=tuple(port(text) for text in wanted))
    placed = [on("n", name=f"holder-{i}", host_ports=(port(text),)) for i, text in enumerate(there)]
    assert refusals(host_ports.refuse, nodes, incoming, placed) == ({} if is_free else {"n": TAKEN})
