"""The chart's values for moves: what belongs together is rendered, what does not is refused. It needs helm alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.real.harness import Json
from tests.real.test_chart import MOVING, of_kind, rendered, templated

BY_REGISTRY: Json = {
    "config": {
        "nodeGroups": MOVING["config"]["nodeGroups"],
        "migration": {"registry": {"url": "https://registry.example:5000"}},
    },
    "moves": {"agentSecret": "htas-agent"},
}


def with_values(values: Json, **changes: Json) -> Json:
    """Values with the keys of some sections added to."""
    return values | {section: values.get(section, {}) | keys for section, keys in changes.items()}


def agent_of(items: list[Json]) -> Any:
    return of_kind(items, "DaemonSet")["spec"]["template"]["spec"]


@pytest.mark.parametrize("has_ca", [False, True])
def test_a_registrys_own_ca_is_known_to_the_agents_and_to_the_daemon(has_ca: bool, helm: Path) -> None:
    items = rendered(helm, with_values(BY_REGISTRY, moves={"registryCA": has_ca}))
    (agent,) = agent_of(items)["containers"]
    (mount,) = (each["mountPath"] for each in agent["volumeMounts"] if each["name"] == "token")
    assert (f"--ca-file={mount}/ca.crt" in agent["args"]) is has_ca
    registry = yaml.safe_load(of_kind(items, "ConfigMap")["data"]["htas.yaml"])["migration"]["registry"]
    (daemon,) = of_kind(items, "Deployment")["spec"]["template"]["spec"]["containers"]
    (mount,) = (each["mountPath"] for each in daemon["volumeMounts"] if each["name"] == "moves-agent")
    assert registry.get("caFile") == (f"{mount}/ca.crt" if has_ca else None)


def test_agents_are_asked_how_they_are_and_go_last(helm: Path) -> None:
    agent = agent_of(rendered(helm, BY_REGISTRY))
    (container,) = agent["containers"]
    (port,) = container["ports"]
    assert agent["priorityClassName"] == "system-node-critical"
    for probe, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert container[probe]["httpGet"] == {"path": path, "port": port["name"]}
    assert f"--listen=:{port['containerPort']}" in container["args"]
    plain = agent_of(rendered(helm, with_values(BY_REGISTRY, moves={"agentPriorityClassName": ""})))
    assert "priorityClassName" not in plain


def test_only_htas_reaches_the_agents_where_that_is_asked_for(helm: Path) -> None:
    assert "NetworkPolicy" not in [item["kind"] for item in rendered(helm, BY_REGISTRY)]
    nodes = {"ipBlock": {"cidr": "192.0.2.0/24"}}
    wish = {"agentNetworkPolicy": {"enabled": True, "from": [nodes]}}
    items = rendered(helm, with_values(BY_REGISTRY, moves=wish))
    policy = of_kind(items, "NetworkPolicy")["spec"]
    agents, daemon = (of_kind(items, kind)["spec"] for kind in ("DaemonSet", "Deployment"))
    assert policy["podSelector"] == agents["selector"]
    (ingress,) = policy["ingress"]
    assert ingress["from"] == [{"podSelector": daemon["selector"]}, nodes]
    assert ingress["ports"] == [{"port": 10270, "protocol": "TCP"}]
    assert policy["policyTypes"] == ["Ingress"]


GROUPS = MOVING["config"]["nodeGroups"]


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        pytest.param({"config": {"nodeGroups": GROUPS}}, "which needs keys: name moves.sshSecret", id="no keys at all"),
        pytest.param(with_values(BY_REGISTRY, moves={"agentSecret": ""}), "which needs keys", id="a registry without a token"),
        pytest.param(with_values(BY_REGISTRY, moves={"sshSecret": "s"}), "name one", id="both kinds of keys"),
        pytest.param(with_values(BY_REGISTRY, config={"migration": {"transfer": "scp"}}), "transfer is scp", id="an agent, and ssh"),
        pytest.param(with_values(MOVING, config={"migration": {"transfer": "registry"}}), "transfer is registry", id="ssh, and a registry"),
        pytest.param({"moves": {"sshSecret": "s"}}, "needs config.migration.scp.user", id="ssh without a user"),
        pytest.param({"moves": {"registryCA": True}}, "which is empty", id="a key of no Secret"),
        pytest.param(with_values(BY_REGISTRY, config={"migration": {}}), "needs config.migration.registry.url", id="an agent without a registry"),
    ],
)  # fmt: skip
def test_keys_that_do_not_fit_how_pods_are_moved_are_refused(values: Json, complaint: str, helm: Path) -> None:
    done = templated(helm, values)
    assert done.returncode != 0
    assert complaint in done.stderr


def test_keys_that_come_in_volumes_of_ones_own_are_taken(helm: Path) -> None:
    keys = {"user": "mover", "identityFile": "/mine/id", "knownHostsFile": "/mine/known_hosts"}
    items = rendered(helm, {"config": {"nodeGroups": GROUPS, "migration": {"scp": keys}}})
    assert yaml.safe_load(of_kind(items, "ConfigMap")["data"]["htas.yaml"])["migration"]["scp"] == keys


@pytest.mark.parametrize(
    ("values", "rights"),
    [
        pytest.param(
            {"moves": {"sshSecret": "s"}, "config": {"migration": {"scp": {"user": "u"}}}},
            {"nodes/checkpoint", "pods"},
            id="keys for ssh",
        ),
        pytest.param({"config": {"migration": {"commands": {"checkpoint": "/c"}}}}, {"pods"}, id="commands"),
        pytest.param({}, set(), id="neither"),
    ],
)
def test_what_is_set_up_keeps_its_rights_when_groups_have_gone_back_to_evict(
    values: Json, rights: set[str], helm: Path
) -> None:
    """So that moves under way can be finished."""
    elsewhere = {"provider": {"kwok": None, "sandbox": {"workload": "none"}}}
    rules = of_kind(rendered(helm, with_values(values, config=elsewhere)), "ClusterRole")["rules"]
    created = {each for rule in rules if "create" in rule["verbs"] for each in rule["resources"]}
    assert created & {"nodes/checkpoint", "pods"} == rights
