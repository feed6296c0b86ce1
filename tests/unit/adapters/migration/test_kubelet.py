"""The kubelet's checkpoint call over TLS: whose certificate is trusted."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from cryptography import x509

from htas.adapters.kubernetes.access import Access
from htas.adapters.kubernetes.endpoint import Endpoint
from htas.adapters.migration.method import StepFailedError
from htas.adapters.migration.methods.kubelet_checkpoint import Kubelets
from tools.testenv.certificates import write_pem

ARCHIVE = "/var/lib/kubelet/checkpoints/checkpoint-p_team-main-2026-11-21T10:00:00Z.tar"


class _Kubelet(BaseHTTPRequestHandler):
    def do_POST(self) -> None:  # the library's own name
        content = json.dumps({"items": [ARCHIVE]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """One that the kubelet of node a has signed for itself, and its key."""
    return write_pem(tmp_path, "a", "a", x509.DNSName("a"))[0]


@pytest.fixture
def port(certificate: Path) -> Iterator[int]:
    """Of a kubelet with that certificate."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Kubelet) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, certificate.with_suffix(".key"))
        server.socket = context.wrap_socket(server.socket, server_side=True)
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def asked(port: int, trusted: Path | None, own: str | None) -> str:
    kubelets = Kubelets(
        Access(Endpoint("http://127.0.0.1:1"), "default", 1), port, trusted, None if own is None else lambda node: own
    )
    return kubelets.checkpoint("a", "127.0.0.1", "team", "p", "main", 5.0)


def test_a_kubelet_whose_certificate_a_ca_signed_needs_none_of_its_own(port: int, certificate: Path) -> None:
    assert asked(port, certificate, None) == ARCHIVE
    assert asked(port, certificate, "") == ARCHIVE, "by ssh none was found on the node"


def test_a_kubelets_own_certificate_is_trusted_if_the_node_has_it(port: int, certificate: Path) -> None:
    assert asked(port, None, certificate.read_text()) == ARCHIVE


def test_a_kubelet_that_nobody_vouches_for_is_not_asked(port: int) -> None:
    with pytest.raises(StepFailedError, match="certificate verify failed"):
        asked(port, None, "")
