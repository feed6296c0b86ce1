"""Bootstrap tokens as the API server wants them, and the digest that kubeadm checks the CA by."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from htas.adapters.kubernetes.api import ApiServer
from htas.adapters.kubernetes.bootstrap_tokens import BootstrapTokens, ca_cert_hash
from htas.adapters.kubernetes.rate_limit import RateLimit
from htas.ports import PermanentError
from tests.unit.adapters.kubernetes.api_server import Answer, FakeApiServer


def test_each_machine_has_a_token_of_its_own_that_ends_soon() -> None:
    with FakeApiServer(lambda _: Answer(201)) as server:
        tokens = BootstrapTokens(ApiServer(server.access(), RateLimit(1e9, 10**9)), "main", 1800.0, clock=lambda: 0.0)
        first, second = tokens.mint("main-batch-1"), tokens.mint("main-batch-2")
    assert first != second
    assert re.fullmatch(r"[a-z0-9]{6}\.[a-z0-9]{16}", first)
    made = server.requests[0]
    assert made.path == "/api/v1/namespaces/kube-system/secrets"
    assert made.body["metadata"]["name"] == f"bootstrap-token-{first[:6]}"
    assert made.body["type"] == "bootstrap.kubernetes.io/token"
    said = made.body["stringData"]
    assert (said["token-id"], said["token-secret"]) == tuple(first.split("."))
    assert said["expiration"] == "1970-01-01T00:30:00Z"
    assert made.body["metadata"]["labels"] == {"htas.io/cluster": "main", "htas.io/claim": "main-batch-1"}


def test_the_digest_of_a_ca_is_the_one_that_openssl_works_out(tmp_path: Path) -> None:
    key, pem = tmp_path / "ca.key", tmp_path / "ca.pem"
    shell = f"""
        openssl req -x509 -newkey rsa:2048 -nodes -keyout {key} -out {pem} -subj /CN=ca -days 1 2>/dev/null
        openssl x509 -pubkey -in {pem} | openssl rsa -pubin -outform der 2>/dev/null | openssl dgst -sha256 -hex
    """
    told = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True).stdout
    assert ca_cert_hash(pem) == f"sha256:{told.split()[-1]}"


@pytest.mark.parametrize("content", [None, b"no certificate"])
def test_without_a_ca_its_digest_has_to_be_written(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(PermanentError, match="caCertHash"):
        ca_cert_hash(path)
