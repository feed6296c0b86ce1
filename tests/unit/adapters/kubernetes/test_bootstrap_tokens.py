"""Bootstrap tokens as the API server wants them, and the digest that kubeadm checks the CA by."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htas.adapters.kubernetes.api import ApiServer
from htas.adapters.kubernetes.bootstrap_tokens import BootstrapTokens, ca_cert_hash, token_id
from htas.adapters.kubernetes.rate_limit import RateLimit
from htas.model.claims import ClaimState, NodeClaim
from htas.ports import PermanentError
from tests.unit.adapters.kubernetes.api_server import Answer, FakeApiServer, Json, Request


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


class Secrets:
    """The Secrets of kube-system, as far as an API server knows their names."""

    def __init__(self) -> None:
        self.kept: dict[str, Json] = {}

    def answer(self, request: Request) -> Answer:
        name = request.body["metadata"]["name"] if request.method == "POST" else request.path.rpartition("/")[2]
        if request.method == "POST":
            is_new = self.kept.setdefault(name, request.body) is request.body
            return Answer(201 if is_new else 409)
        return Answer(200 if self.kept.pop(name, None) else 404)

    def tokens(self) -> list[str]:
        said = [each["stringData"] for each in self.kept.values()]
        return [f"{each['token-id']}.{each['token-secret']}" for each in said]


def a_claim(name: str, made_at: float = 0.0) -> NodeClaim:
    return NodeClaim(name, "batch", "m1.small", ClaimState.READY, made_at, made_at)


def test_a_token_ends_when_its_machine_has_joined_and_no_other_does() -> None:
    secrets = Secrets()
    with FakeApiServer(secrets.answer) as server:
        tokens = BootstrapTokens(ApiServer(server.access(), RateLimit(1e9, 10**9)), "main", 1800.0)
        tokens.mint("main-batch-1")
        other = tokens.mint("main-batch-2")
        tokens.revoke(a_claim("main-batch-1"))
        tokens.revoke(a_claim("main-batch-1"))  # gone already
    assert secrets.tokens() == [other]


def test_a_daemon_that_made_no_token_finds_its_predecessors() -> None:
    secrets = Secrets()
    with FakeApiServer(secrets.answer) as server:
        api = ApiServer(server.access(), RateLimit(1e9, 10**9))
        first = BootstrapTokens(api, "main", 1800.0).mint("main-batch-1")
        second = BootstrapTokens(api, "main", 1800.0).mint("main-batch-1")
        assert secrets.tokens() == [second], "nobody knows the first one's secret any more"
        assert first != second
        BootstrapTokens(api, "main", 1800.0).revoke(a_claim("main-batch-1"))
    assert secrets.tokens() == []


def test_nothing_is_known_of_a_tokens_secret_by_its_claim() -> None:
    with FakeApiServer(lambda _: Answer(201)) as server:
        api = ApiServer(server.access(), RateLimit(1e9, 10**9))
        made = {BootstrapTokens(api, "main", 1800.0).mint("main-batch-1") for _ in range(3)}
    assert len(made) == 3
    assert len({token[:6] for token in made}) == 1


@given(cluster=st.text(max_size=20), claims=st.lists(st.text(max_size=60), unique=True, max_size=50))
def test_ids_are_as_bootstrap_tokens_want_them_and_differ(cluster: str, claims: list[str]) -> None:
    ids = [token_id(cluster, claim) for claim in claims]
    assert all(re.fullmatch(r"[a-z0-9]{6}", each) for each in ids)
    assert len(set(ids)) == len(ids)


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
