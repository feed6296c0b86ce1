"""How HTAS finds the API server and proves who it is."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from kubernetes.config import incluster_config

from htas.adapters.kubernetes import access
from htas.adapters.kubernetes.access import load_access
from htas.ports import PermanentError


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither in a pod nor with a kubeconfig of whoever runs the tests."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def kubeconfig(path: Path, user: dict[str, str], server: str = "http://127.0.0.1:1/") -> Path:
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
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setattr(access, "NAMESPACE_FILE", tmp_path / "namespace")
    (tmp_path / "token").write_text("t1")
    (tmp_path / "ca.crt").write_text("not looked into before the first call")
    (tmp_path / "namespace").write_text("htas-system\n")
    return tmp_path


def test_in_a_pod_its_own_account_is_used(pod: Path) -> None:
    found = load_access(None, None, 4)
    assert (found.server, found.namespace) == ("https://10.96.0.1:443", "htas-system")
    assert found.headers() == {"Authorization": "Bearer t1"}


def test_a_token_that_was_renewed_is_read_again(pod: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kubelet renews it in its file; the official client looks once a minute."""
    import datetime

    found = load_access(None, None, 4)
    (pod / "token").write_text("t2")
    assert found.headers() == {"Authorization": "Bearer t1"}
    later = datetime.datetime.now() + datetime.timedelta(minutes=2)

    class Later(datetime.datetime):
        @classmethod
        def now(cls, tz=None):  # type: ignore[no-untyped-def] # as datetime has it
            return later

    monkeypatch.setattr(incluster_config.datetime, "datetime", Later)
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
