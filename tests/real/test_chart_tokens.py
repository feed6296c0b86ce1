"""HTAS's account makes bootstrap tokens of its own machines and ends them, and touches no other Secret."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from htas.adapters.kubernetes.access import load_access
from htas.adapters.kubernetes.api import ApiServer
from htas.adapters.kubernetes.bootstrap_tokens import BootstrapTokens
from htas.adapters.kubernetes.rate_limit import RateLimit
from htas.model.claims import ClaimState, NodeClaim
from htas.model.nodes import CLAIM_LABEL, CLUSTER_LABEL
from tests.real.harness import Cluster, Json, eventually
from tests.real.test_chart import ACCOUNT, ON_OPENSTACK, account_kubeconfig, applied_rights, refused, rendered

REFUSAL = "HTAS makes"


def a_secret(name: str, kind: str, namespace: str = "kube-system", groups: str = "", **labels: str) -> Json:
    data = {"auth-extra-groups": groups or "system:bootstrappers:kubeadm:default-node-token"}
    meta = {"name": name, "namespace": namespace, "labels": {f"htas.io/{key}": text for key, text in labels.items()}}
    return {"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": meta, "stringData": data}


TOKEN = "bootstrap.kubernetes.io/token"
OWN = {"cluster": "main", "claim": "c1"}
NOT_ITS_BUSINESS: list[Any] = [
    pytest.param(a_secret("plain", "Opaque", **OWN), id="no token"),
    pytest.param(a_secret("another", TOKEN, cluster="theirs", claim="c1"), id="another cluster's"),
    pytest.param(a_secret("operators", TOKEN), id="an operator's own"),
    pytest.param(a_secret("nameless", TOKEN, cluster="main"), id="of no machine"),
]


@pytest.fixture
def guarded(helm: Path, cluster: Cluster, space: str) -> Iterator[None]:
    """A cluster with the chart's rights and its policy, as soon as that is in force."""
    items = rendered(helm, ON_OPENSTACK)
    policy = yaml.safe_dump_all([item for item in items if "AdmissionPolicy" in item["kind"]])
    with applied_rights(cluster, items):
        cluster.kubectl("apply", "-f", "-", input=policy)
        probe = a_secret("probe", "Opaque")
        command = ("create", "-f", "-", "--dry-run=server", f"--as={ACCOUNT}")
        eventually(lambda: REFUSAL in refused(cluster, *command, given=probe), 30, "in force")
        yield
        cluster.kubectl("delete", "-f", "-", input=policy)


@pytest.mark.parametrize("secret", NOT_ITS_BUSINESS)
def test_it_neither_makes_nor_deletes_other_secrets(secret: Json, guarded: None, cluster: Cluster) -> None:
    assert REFUSAL in refused(cluster, "create", "-f", "-", f"--as={ACCOUNT}", given=secret)
    assert not refused(cluster, "create", "-f", "-", given=secret), "others may, as their own rights let them"
    name = secret["metadata"]["name"]
    assert REFUSAL in refused(cluster, "delete", "secret", name, "-n", "kube-system", f"--as={ACCOUNT}")
    assert not refused(cluster, "delete", "secret", name, "-n", "kube-system")


def test_it_makes_no_token_of_other_groups(guarded: None, cluster: Cluster) -> None:
    secret = a_secret("bootstrap-token-aaaaaa", TOKEN, groups="system:bootstrappers:admins", **OWN)
    assert REFUSAL in refused(cluster, "create", "-f", "-", f"--as={ACCOUNT}", given=secret)


def test_a_machines_token_comes_and_goes_with_the_accounts_rights(
    guarded: None, cluster: Cluster, tmp_path: Path
) -> None:
    access = load_access(account_kubeconfig(cluster, tmp_path), None, 2)
    tokens = BootstrapTokens(ApiServer(access, RateLimit(100.0, 100)), "main", 600.0)
    after_a_crash = BootstrapTokens(ApiServer(access, RateLimit(100.0, 100)), "main", 600.0)

    def there() -> list[str]:
        selected = f"{CLUSTER_LABEL}=main,{CLAIM_LABEL}=c1"
        names = cluster.kubectl("get", "secrets", "-n", "kube-system", "-l", selected, "-o", "name")
        return [name.removeprefix("secret/bootstrap-token-") for name in names.split()]

    made = tokens.mint("c1")
    assert there() == [made[:6]]
    assert after_a_crash.mint("c1") != made
    assert there() == [made[:6]]
    after_a_crash.revoke(NodeClaim("c1", "batch", "m1.small", ClaimState.READY, 0.0, 0.0))
    assert there() == []


def test_the_policy_is_there_where_tokens_are_made(helm: Path) -> None:
    names = [item["metadata"]["name"] for item in rendered(helm, ON_OPENSTACK) if "Admission" in item["kind"]]
    assert names == ["htas-system-htas-tokens"] * 2
    assert not [item for item in rendered(helm) if "Admission" in item["kind"]]
