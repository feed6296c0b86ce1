"""How HTAS finds the API server and proves who it is."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from htas.adapters.kubernetes import access
from htas.adapters.kubernetes.access import load_access
from htas.adapters.kubernetes.endpoint import environment_proxy
from htas.adapters.kubernetes.exec_plugin import Plugin, PluginCredentials, Variable
from htas.ports import PermanentError


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither in a pod nor with a kubeconfig of whoever runs the tests."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def kubeconfig(path: Path, user: dict[str, Any], server: str = "http://127.0.0.1:1/") -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [
            {"name": "main", "context": {"cluster": "c", "user": "u"}},
            {"name": "other", "context": {"cluster": "c", "user": "u"}},
        ],
        "current-context": "main",
    }
    path.write_text(yaml.safe_dump(document))
    return path


def test_a_kubeconfig_that_is_named(tmp_path: Path) -> None:
    found = load_access(kubeconfig(tmp_path / "kc", {"token": "t1"}), "other", 4)
    assert (found.server, found.headers()) == ("http://127.0.0.1:1", {"Authorization": "Bearer t1"})


def test_one_without_credentials_sends_none(tmp_path: Path) -> None:
    assert load_access(kubeconfig(tmp_path / "kc", {}), None, 4).headers() == {}


@pytest.fixture
def pod(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """What a pod has: the server's address in its environment, its account in files."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setattr(access, "ACCOUNT", tmp_path)
    (tmp_path / "token").write_text("t1\n")
    (tmp_path / "ca.crt").write_text("not looked into before the first call")
    (tmp_path / "namespace").write_text("htas-system\n")
    return tmp_path


def test_in_a_pod_its_own_account_is_used(pod: Path) -> None:
    found = load_access(None, None, 4)
    assert (found.server, found.namespace) == ("https://10.96.0.1:443", "htas-system")
    assert found.headers() == {"Authorization": "Bearer t1"}
    assert found.ca_file == pod / "ca.crt"


def test_an_address_of_ipv6_is_written_in_brackets(pod: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    assert load_access(None, None, 4).server == "https://[fd00::1]:443"


def test_a_token_that_was_renewed_is_read_again(pod: Path) -> None:
    """The kubelet renews it in its file; while the file is gone the last one is used."""
    found = load_access(None, None, 4)
    (pod / "token").write_text("t2")
    assert found.headers() == {"Authorization": "Bearer t2"}
    (pod / "token").unlink()
    assert found.headers() == {"Authorization": "Bearer t2"}


def test_a_kubeconfig_that_is_named_wins_in_a_pod_too(pod: Path) -> None:
    assert load_access(kubeconfig(pod / "kc", {"token": "t9"}), None, 4).headers() == {"Authorization": "Bearer t9"}


def test_a_pod_without_an_account_is_told_what_to_do(pod: Path) -> None:
    (pod / "token").unlink()
    with pytest.raises(PermanentError, match="mount a service account token"):
        load_access(None, None, 4)


@pytest.mark.parametrize("content", [None, "", "hello", "{", "clusters: 7"])
def test_a_kubeconfig_that_cannot_be_used_is_named(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "kc"
    if content is not None:
        path.write_text(content)
    with pytest.raises(PermanentError, match=r"kc: no credentials: .*; name a file in kubernetes\.kubeconfig"):
        load_access(path, None, 4)


def test_without_any_it_says_where_it_looked() -> None:
    with pytest.raises(PermanentError, match=r"~/\.kube/config: no credentials"):
        load_access(None, None, 4)


def test_several_files_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first that has a name wins, and each file's paths start from its own folder."""
    (tmp_path / "a").mkdir()
    kubeconfig(tmp_path / "a" / "kc", {"tokenFile": "token"}, "http://first:1")
    kubeconfig(tmp_path / "kc", {"token": "of the second"}, "http://second:1")
    (tmp_path / "a" / "token").write_text("of the first")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'none'}:{tmp_path / 'a' / 'kc'}:{tmp_path / 'kc'}")
    found = load_access(None, None, 4)
    assert (found.server, found.headers()) == ("http://first:1", {"Authorization": "Bearer of the first"})


def test_a_name_and_a_password(tmp_path: Path) -> None:
    found = load_access(kubeconfig(tmp_path / "kc", {"username": "jane", "password": "s3"}), None, 4)
    assert found.headers() == {"Authorization": "Basic " + base64.b64encode(b"jane:s3").decode()}


def test_certificates_within_the_file_are_kept_where_their_user_alone_may_read(tmp_path: Path) -> None:
    user = {f"client-{each}-data": base64.b64encode(each.encode()).decode() for each in ("certificate", "key")}
    found = load_access(kubeconfig(tmp_path / "kc", user), None, 4)
    assert found.client_certificate is not None
    files = [Path(each) for each in found.client_certificate]
    assert [file.read_text() for file in files] == ["certificate", "key"]
    assert {file.stat().st_mode & 0o077 for file in (*files, files[0].parent)} == {0}


def test_certificates_in_files_are_found_beside_the_kubeconfig(tmp_path: Path) -> None:
    found = load_access(kubeconfig(tmp_path / "kc", {"client-certificate": "c.pem", "client-key": "k.pem"}), None, 4)
    assert found.client_certificate == (str(tmp_path / "c.pem"), str(tmp_path / "k.pem"))


@pytest.mark.parametrize(
    ("user", "told"),
    [
        pytest.param({"client-key-data": "?", "client-certificate-data": "?"}, "no base64", id="inline data"),
        pytest.param(
            {"auth-provider": {"name": "gcp"}}, "auth-provider gcp is not supported; use a plugin", id="a provider"
        ),
        pytest.param({"tokenFile": "none"}, "No such file", id="a token's file"),
        pytest.param({"exec": {"command": "./none"}}, "none", id="a plugin that is not there"),
        pytest.param({"exec": {"command": "false", "interactiveMode": "Always"}}, "needs a terminal", id="a terminal"),
        pytest.param(
            {"exec": {"command": "sh", "args": ["-c", "echo no >&2; exit 3"]}}, "exit status 3: no", id="one that fails"
        ),
        pytest.param(
            {"exec": {"command": "echo", "args": ["hello"]}}, "it printed no ExecCredential", id="another print"
        ),
    ],
)
def test_credentials_that_cannot_be_used_are_told(user: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(PermanentError, match=rf"kc: no credentials: .*{told}"):
        load_access(kubeconfig(tmp_path / "kc", user), None, 4)


@pytest.mark.parametrize(
    ("context", "told"), [("none", "no context 'none'"), ("lost", "no cluster 'gone'"), ("nobody", "no user 'gone'")]
)
def test_names_that_lead_nowhere_are_told(context: str, told: str, tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "kc", {})
    document = yaml.safe_load(path.read_text())
    document["contexts"] += [
        {"name": "lost", "context": {"cluster": "gone", "user": "u"}},
        {"name": "nobody", "context": {"cluster": "c", "user": "gone"}},
    ]
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(PermanentError, match=told):
        load_access(path, context, 4)


PRINTS = """\
#!/bin/sh
echo "$KUBERNETES_EXEC_INFO" > told.json
n=$(cat count 2>/dev/null || echo 0); n=$((n + 1)); echo $n > count
echo '{"kind": "ExecCredential", "status": {"token": "'$GREETING$n'", "expirationTimestamp": "2026-11-29T12:00:00Z"}}'
"""


def test_a_plugin_runs_again_when_its_token_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plugin").write_text(PRINTS)
    (tmp_path / "plugin").chmod(0o755)
    plugin = Plugin("./plugin", env=[Variable("GREETING", "t")], provide_cluster_info=True)
    ends = datetime(2026, 11, 29, 12, tzinfo=UTC).timestamp()
    now = [ends - 31.0]
    credentials = PluginCredentials(plugin, tmp_path, {"server": "https://s"}, lambda: now[0])
    assert (credentials.authorization(), credentials.authorization()) == ("Bearer t1", "Bearer t1")
    now[0] = ends - 30.0
    assert credentials.authorization() == "Bearer t2"
    told = json.loads((tmp_path / "told.json").read_text())
    assert told == {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://s"}},
    }


def test_a_plugins_certificate_is_used(tmp_path: Path) -> None:
    status = {"clientCertificateData": "CERT", "clientKeyData": "KEY"}
    printed = json.dumps({"kind": "ExecCredential", "status": status})
    found = load_access(kubeconfig(tmp_path / "kc", {"exec": {"command": "echo", "args": [printed]}}), None, 4)
    assert found.client_certificate is not None
    assert [Path(each).read_text() for each in found.client_certificate] == ["CERT", "KEY"]
    assert found.headers() == {}


@pytest.mark.parametrize(
    ("server", "no_proxy", "expected"),
    [
        ("https://api.example:6443", "", "http://proxy:3128"),
        ("https://api.example:6443", ".example,other", ""),
        ("https://10.96.0.1:443", "10.0.0.0/8, 192.168.0.0/16", ""),
        ("https://11.96.0.1:443", "10.0.0.0/8", "http://proxy:3128"),
        ("https://127.0.0.1:6443", "", ""),
        ("https://localhost:6443", "", ""),
        ("http://api.example:80", "", ""),
    ],
)
def test_the_environments_proxy(server: str, no_proxy: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTPS_PROXY is for https alone, and NO_PROXY may have networks, as with kubectl."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert environment_proxy(server) == expected
