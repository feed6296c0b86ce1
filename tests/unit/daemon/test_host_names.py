"""The Host header: a name that an attacker registered leads nowhere (DNS rebinding)."""

from __future__ import annotations

import pytest

from htas.daemon.http.host_names import HostNames

NAMES = HostNames(["htas.example.org", "*.svc.cluster.local"])


@pytest.mark.parametrize(
    ("host", "is_answered"),
    [
        pytest.param("127.0.0.1:8080", True, id="an address"),
        pytest.param("[::1]:8080", True, id="an address of IPv6"),
        pytest.param("LOCALHOST:9", True, id="localhost, in any case"),
        pytest.param("htas.example.org", True, id="a name of http.hosts"),
        pytest.param("htas.example.org.:443", True, id="the same, absolute"),
        pytest.param("htas-0.htas.prod.svc.cluster.local:8080", True, id="below a wildcard"),
        pytest.param("svc.cluster.local", False, id="the wildcard's own domain"),
        pytest.param("evil.example", False, id="a name of somebody else"),
        pytest.param("localhost.evil.example", False, id="localhost as a part"),
        pytest.param("127.0.0.1.evil.example", False, id="an address as a part"),
        pytest.param("htas.example.org.evil.example", False, id="our name as a part"),
        pytest.param("evil.example@127.0.0.1:8080x", False, id="no port"),
        pytest.param("[::1", False, id="no address"),
        pytest.param("", True, id="HTTP/1.0 without the header"),
    ],
)
def test_only_addresses_and_names_of_this_server_are_answered(host: str, is_answered: bool) -> None:
    assert (NAMES.refusal(host, "/metrics") is None) == is_answered


def test_a_refusal_names_the_key_that_would_allow_the_name() -> None:
    refusal = HostNames().refusal("htas.example.org", "/")
    assert refusal is not None and "http.hosts" in refusal and "htas.example.org" in refusal


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_are_answered_under_any_name(path: str) -> None:
    assert NAMES.refusal("evil.example", path) is None
