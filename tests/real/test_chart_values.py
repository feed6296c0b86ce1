"""The chart's values: what each renders, and what is refused before a pod would crash on it. It needs helm alone."""

from __future__ import annotations

import base64
import copy
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import htas
from htas.config.loader import ConfigurationError, load_configuration
from htas.config.settings import NoneSetting
from tests.real.harness import ROOT, Json
from tests.real.test_chart import (
    ACCOUNT,
    ACTING,
    CHART,
    MOVING,
    ON_CASSANDRA,
    ON_OPENSTACK,
    SPACE,
    of_kind,
    rendered,
    templated,
)

KEPT: Json = {"replicas": 1, "persistence": {"enabled": True}}
ALERTS = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["alerts"]


def refused(helm: Path, values: Json) -> str:
    """What helm complains of; empty: it takes them."""
    done = templated(helm, values)
    return done.stderr if done.returncode else ""


def pod_of(items: list[Json], kind: str = "Deployment") -> Any:
    return of_kind(items, kind)["spec"]["template"]["spec"]


def kinds(items: list[Json]) -> set[str]:
    return {item["kind"] for item in items}


# The store.


def test_a_file_on_a_volume_is_one_daemons(helm: Path) -> None:
    items = rendered(helm, KEPT)
    spec = of_kind(items, "StatefulSet")["spec"]
    assert "Deployment" not in kinds(items)
    (claim,) = spec["volumeClaimTemplates"]
    (mount,) = (
        each["mountPath"] for each in container(items)["volumeMounts"] if each["name"] == claim["metadata"]["name"]
    )
    assert path_of_the_store(items).parent == Path(mount)
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert "storageClassName" not in claim["spec"], "the cluster's default"
    assert claim["metadata"]["name"] not in {volume["name"] for volume in pod_of(items, "StatefulSet")["volumes"]}
    assert spec["serviceName"] == of_kind(items, "Service")["metadata"]["name"]


def test_two_daemons_with_cassandra_have_a_volume_each_for_what_waits(helm: Path) -> None:
    items = rendered(helm, ON_CASSANDRA | {"persistence": {"enabled": True, "storageClassName": "", "size": "9Gi"}})
    spec = of_kind(items, "StatefulSet")["spec"]
    assert spec["replicas"] == 2
    (claim,) = spec["volumeClaimTemplates"]
    assert claim["spec"]["storageClassName"] == ""
    assert claim["spec"]["resources"] == {"requests": {"storage": "9Gi"}}


def test_a_claim_of_ones_own_is_mounted(helm: Path) -> None:
    items = rendered(helm, KEPT | {"persistence": {"enabled": True, "existingClaim": "mine"}})
    assert "volumeClaimTemplates" not in of_kind(items, "StatefulSet")["spec"]
    (journal,) = (volume for volume in pod_of(items, "StatefulSet")["volumes"] if volume["name"] == "journal")
    assert journal["persistentVolumeClaim"] == {"claimName": "mine"}


@pytest.mark.parametrize("values", [pytest.param({}, id="on the pod's disk"), pytest.param(KEPT, id="on a volume")])
def test_commands_in_the_container_find_configuration_and_store(values: Json, helm: Path) -> None:
    """As the chart's notes print them: kubectl exec LEADER -c htas -- htas cost."""
    items = rendered(helm, values)
    own = container(items)
    named = next(each["value"] for each in own["env"] if each["name"] == "HTAS_CONFIG")
    assert named == own["args"][own["args"].index("--config") + 1]
    mounts = {each["mountPath"] for each in own["volumeMounts"]}
    assert str(Path(named).parent) in mounts
    assert str(path_of_the_store(items).parent) in mounts
    assert own["name"] == "htas"


def notes_of(helm: Path, directory: Path, values: Json, base: Json = ACTING) -> str:
    """What people see after an installation; helm renders it without a cluster as any other template."""
    shutil.copytree(CHART, directory / "htas")
    notes = directory / "htas" / "templates" / "NOTES.txt"
    lines = "".join(f"  {line}" for line in notes.read_text().splitlines(keepends=True))
    notes.unlink()
    (notes.parent / "notes.yaml").write_text("notes: |\n" + lines)
    done = templated(helm, values, base, directory / "htas", "--show-only", "templates/notes.yaml")
    assert done.returncode == 0, done.stderr
    return str(yaml.safe_load(done.stdout)["notes"])


def test_the_notes_name_the_leader_and_the_lease_it_holds(helm: Path, tmp_path: Path) -> None:
    notes = notes_of(helm, tmp_path, {"config": {"cluster": "c1"}})
    leader = re.search(r"LEADER=\$\(kubectl .*", notes)
    assert leader is not None
    assert leader[0].replace("htas-c1", "htas-main") in (ROOT / "docs" / "runbook.md").read_text()
    assert "docs/runbook.md, What is it doing?" in (CHART / "README.md").read_text()
    told = re.findall(r"exec \$LEADER -c htas -- (htas \w+)", notes)
    assert told == ["htas top", "htas history", "htas cost"]
    assert "are lost with it" in notes, "of a store that is not kept"


def test_one_daemon_is_asked_by_its_workload(helm: Path, tmp_path: Path) -> None:
    notes = notes_of(helm, tmp_path, KEPT | {"fullnameOverride": "packer"})
    assert f"kubectl -n {SPACE} exec statefulset/packer -c htas -- htas cost" in notes
    assert "LEADER" not in notes
    assert "are lost with it" not in notes


# As it comes.


def test_as_it_comes_it_watches_with_one_replica_and_a_volume(helm: Path, tmp_path: Path) -> None:
    items = rendered(helm, {}, {})
    assert of_kind(items, "StatefulSet")["spec"]["replicas"] == 1
    assert of_kind(items, "StatefulSet")["spec"]["volumeClaimTemplates"]
    assert "Secret" in kinds(items), "its API asks for a token"
    for name, content in of_kind(items, "ConfigMap")["data"].items():
        (tmp_path / name).write_text(content)
    loaded = load_configuration(tmp_path / "htas.yaml")
    assert (loaded.settings.mode, loaded.settings.provider.none) == ("recommend", NoneSetting())
    verbs = {
        verb for item in items if item["kind"] == "ClusterRole" for rule in item["rules"] for verb in rule["verbs"]
    }
    assert verbs <= {"get", "list", "watch"}


def test_its_notes_name_the_next_two_commands(helm: Path, tmp_path: Path) -> None:
    notes = notes_of(helm, tmp_path, {}, {})
    first = notes.partition("Also:")[0]
    assert re.findall(r"-- (htas \w+)", first) == ["htas cost", "htas history"]
    assert "changes nothing" in first


def test_a_provider_takes_the_place_of_none(helm: Path) -> None:
    items = rendered(helm, {"config": {"provider": {"kwok": {}}}}, {})
    assert yaml.safe_load(of_kind(items, "ConfigMap")["data"]["htas.yaml"])["provider"] == {"kwok": {}}


def test_a_mode_that_acts_needs_a_provider(helm: Path) -> None:
    for mode in ("automatic", "approve"):
        said = templated(helm, {"config": {"mode": mode}}, {}).stderr
        assert f"config.mode is {mode}, and config.provider names nothing that could launch a machine" in said


def test_what_other_charts_have_is_taken(helm: Path) -> None:
    hook, secret = {"preStop": {"sleep": {"seconds": 1}}}, [{"secretRef": {"name": "proxy"}}]
    sidecar, first = {"name": "beside", "image": "b"}, {"name": "before", "image": "a"}
    values: Json = {
        "commonLabels": {"team": "platform"},
        "deploymentAnnotations": {"note": "x"},
        "podSecurityContext": {"runAsUser": 7},
        "securityContext": {"capabilities": {"add": ["NET_ADMIN"]}},
        "extraArgs": ["--verbose"],
        "envFrom": secret,
        "initContainers": [first],
        "sidecars": [sidecar],
        "lifecycle": hook,
    }
    items = rendered(helm, values)
    assert all(item["metadata"]["labels"]["team"] == "platform" for item in items)
    assert of_kind(items, "Deployment")["metadata"]["annotations"] == {"note": "x"}
    pod = pod_of(items)
    assert pod["securityContext"]["runAsUser"] == 7
    assert pod["initContainers"] == [first]
    own, beside = pod["containers"]
    assert beside == sidecar
    assert own["args"] == ["run", "--config", "/etc/htas/htas.yaml", "--verbose"]
    assert (own["envFrom"], own["lifecycle"]) == (secret, hook)
    assert own["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["NET_ADMIN"]}


def test_people_reach_it_by_an_ingress_or_a_route(helm: Path) -> None:
    name = "htas.example.org"
    ingress: Json = {
        "enabled": True,
        "host": name,
        "className": "nginx",
        "tls": [{"hosts": [name], "secretName": "web"}],
    }
    parents = [{"name": "gateway", "namespace": "infra"}]
    items = rendered(helm, {"ingress": ingress, "httpRoute": {"enabled": True, "host": name, "parentRefs": parents}})
    service = of_kind(items, "Service")["metadata"]["name"]
    made, route = of_kind(items, "Ingress")["spec"], of_kind(items, "HTTPRoute")["spec"]
    assert made["rules"][0]["http"]["paths"][0]["backend"]["service"] == {"name": service, "port": {"name": "http"}}
    assert (made["rules"][0]["host"], made["tls"], made["ingressClassName"]) == (name, ingress["tls"], "nginx")
    assert (route["hostnames"], route["parentRefs"]) == ([name], parents)
    assert route["rules"] == [{"backendRefs": [{"name": service, "port": 8080}]}]
    assert configured(items)["hosts"].count(name) == 1, "it answers under that name"


def container(items: list[Json]) -> Any:
    kind = "StatefulSet" if "StatefulSet" in kinds(items) else "Deployment"
    return pod_of(items, kind)["containers"][0]


def path_of_the_store(items: list[Json]) -> Path:
    config = yaml.safe_load(of_kind(items, "ConfigMap")["data"]["htas.yaml"])
    return Path(config["store"]["sqlite"]["path"])


# Names, accounts, images, places.


def test_names_are_ones_own(helm: Path) -> None:
    items = rendered(
        helm, {"fullnameOverride": "packer", "nameOverride": "scaler"} | {"serviceAccount": {"name": "me"}}
    )
    own = {item["metadata"]["name"] for item in items if item["kind"] in ("Deployment", "Service", "ConfigMap")}
    assert own == {"packer"}
    selector = of_kind(items, "Deployment")["spec"]["selector"]["matchLabels"]
    assert selector["app.kubernetes.io/name"] == "scaler"
    assert of_kind(items, "Service")["spec"]["selector"] == selector
    assert of_kind(items, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == selector
    assert pod_of(items)["serviceAccountName"] == of_kind(items, "ServiceAccount")["metadata"]["name"] == "me"


@pytest.mark.parametrize(
    ("account", "is_made", "name"),
    [
        pytest.param({}, True, "htas", id="the chart's"),
        pytest.param({"create": False, "name": "mine"}, False, "mine", id="one that is there"),
        pytest.param({"create": False}, False, "default", id="that of the namespace"),
    ],
)
def test_the_account_is_made_or_ones_own(account: Json, is_made: bool, name: str, helm: Path) -> None:
    items = rendered(helm, {"serviceAccount": account})
    assert ("ServiceAccount" in kinds(items)) is is_made
    assert pod_of(items)["serviceAccountName"] == name
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        assert of_kind(items, kind)["subjects"] == [{"kind": "ServiceAccount", "name": name, "namespace": SPACE}]


def test_rights_may_be_ones_own(helm: Path) -> None:
    found = kinds(rendered(helm, MOVING | {"rbac": {"create": False}}))
    assert not found & {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
    assert "ServiceAccount" in found


@pytest.mark.parametrize(
    ("image", "named"),
    [
        pytest.param({"repository": "r/htas"}, f"r/htas:{htas.__version__}", id="the chart's version"),
        pytest.param({"tag": "1"}, "htas:1", id="a tag"),
        pytest.param({"digest": "sha256:" + "a" * 64}, f"htas:{htas.__version__}@sha256:" + "a" * 64, id="a digest"),
    ],
)
def test_the_image(image: Json, named: str, helm: Path) -> None:
    assert pod_of(rendered(helm, {"image": image}))["containers"][0]["image"] == named


def test_it_stays_off_the_machines_that_it_buys(helm: Path) -> None:
    places = pod_of(rendered(helm))["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert places["nodeSelectorTerms"] == [
        {"matchExpressions": [{"key": "htas.io/cluster", "operator": "DoesNotExist"}]}
    ]
    assert "affinity" not in pod_of(rendered(helm, {"affinity": None}))


def test_daemons_are_spread_as_one_wishes(helm: Path) -> None:
    wish = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    own = wish | {"labelSelector": {"matchLabels": {"a": "b"}}}
    items = rendered(helm, {"topologySpreadConstraints": [wish, own]})
    selector = of_kind(items, "Deployment")["spec"]["selector"]
    assert pod_of(items)["topologySpreadConstraints"] == [wish | {"labelSelector": selector}, own]


def test_a_pod_has_what_is_asked_for(helm: Path) -> None:
    values: Json = {
        "dnsPolicy": "Default",
        "dnsConfig": {"options": [{"name": "ndots", "value": "1"}]},
        "hostAliases": [{"ip": "192.0.2.10", "hostnames": ["keystone.example"]}],
        "priorityClassName": "high",
        "nodeSelector": {"pool": "system"},
        "tolerations": [],
        "imagePullSecrets": [{"name": "s"}],
    }
    pod = pod_of(rendered(helm, values))
    assert "tolerations" not in pod
    assert {key: pod[key] for key in values if key != "tolerations"} == {
        k: v for k, v in values.items() if k != "tolerations"
    }
    plain = of_kind(
        rendered(helm, {"revisionHistoryLimit": 2, "podDisruptionBudget": {"enabled": False}}), "Deployment"
    )
    assert plain["spec"]["revisionHistoryLimit"] == 2


# Prometheus.


def test_alerts_are_of_this_release_alone(helm: Path) -> None:
    wish = {"enabled": True, "labels": {"release": "p"}, "alertLabels": {"team": "t"}, "disabled": ["HTASAbsent"]}
    wish["runbookUrl"] = "https://x.example/r.html"
    mine = {"alert": "Mine", "expr": "vector(1)"}
    rule = of_kind(rendered(helm, {"prometheusRule": wish | {"additionalRules": [mine]}}), "PrometheusRule")
    assert rule["metadata"]["labels"]["release"] == "p"
    (group,) = rule["spec"]["groups"]
    *ours, last = group["rules"]
    assert last == mine
    assert [each["alert"] for each in ours] == [each["alert"] for each in ALERTS if each["alert"] != "HTASAbsent"]
    for each, written in zip(ours, ALERTS[1:], strict=True):
        selectors = re.findall(r"htas_\w+(\{[^}]*\})?", each["expr"])
        assert selectors
        assert all(selector.startswith(f'{{job="htas",namespace="{SPACE}"') for selector in selectors), each["expr"]
        stripped = re.sub(rf'job="htas",namespace="{SPACE}",?', "", each["expr"])
        assert stripped == written["expr"]
        assert each["labels"] == {"severity": written["severity"], "team": "t"}
        assert each["annotations"]["description"] == written["description"]
        assert each["annotations"]["runbook_url"] == f"https://x.example/r.html#{written['alert'].lower()}"
    assert "PrometheusRule" not in kinds(rendered(helm))


def test_prometheus_is_told_how_to_scrape(helm: Path) -> None:
    relabelings = [{"action": "labeldrop", "regex": "pod"}]
    wish = {"enabled": True, "scrapeTimeout": "5s", "relabelings": relabelings, "metricRelabelings": relabelings}
    (endpoint,) = of_kind(rendered(helm, {"serviceMonitor": wish}), "ServiceMonitor")["spec"]["endpoints"]
    assert endpoint == {
        "port": "http",
        "path": "/metrics",
        "interval": "30s",
        "scrapeTimeout": "5s",
        "relabelings": relabelings,
        "metricRelabelings": relabelings,
    }


def test_http_is_for_those_who_are_named(helm: Path) -> None:
    assert "NetworkPolicy" not in kinds(rendered(helm))
    prometheus = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    items = rendered(helm, {"networkPolicy": {"enabled": True, "from": [prometheus]}})
    policy = of_kind(items, "NetworkPolicy")["spec"]
    assert policy["podSelector"] == of_kind(items, "Deployment")["spec"]["selector"]
    ports = {port["name"]: port["containerPort"] for port in pod_of(items)["containers"][0]["ports"]}
    assert ports == {"http": 8080, "health": 8081}
    assert policy["ingress"] == [{"from": [prometheus], "ports": [{"port": "http", "protocol": "TCP"}]}]
    nobody = of_kind(rendered(helm, {"networkPolicy": {"enabled": True}}), "NetworkPolicy")["spec"]
    assert (nobody["ingress"], nobody["policyTypes"]) == ([], ["Ingress"])


def configured(items: list[Json]) -> Json:
    """The daemon's `http` section."""
    found: Json = yaml.safe_load(of_kind(items, "ConfigMap")["data"]["htas.yaml"])["http"]
    return found


def test_probes_have_a_port_of_their_own(helm: Path) -> None:
    items = rendered(helm)
    http = configured(items)
    assert (http["listen"], http["healthListen"]) == ("0.0.0.0:8080", "0.0.0.0:8081")
    (container,) = pod_of(items)["containers"]
    probes = [container[probe]["httpGet"]["port"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")]
    assert probes == ["health"] * 3


def test_the_daemon_answers_under_its_services_names_and_those_of_the_values(helm: Path) -> None:
    service = of_kind(rendered(helm), "Service")["metadata"]
    name, namespace = service["name"], service["namespace"]
    hosts = configured(rendered(helm, {"http": {"hosts": ["htas.example.org"]}}))["hosts"]
    assert {name, f"{name}.{namespace}.svc", f"{name}.{namespace}.svc.cluster.local", "htas.example.org"} <= {*hosts}


def test_the_chart_makes_a_token_and_serves_by_https_where_asked_to(helm: Path) -> None:
    items = rendered(helm, {"http": {"createToken": True, "tlsSecret": "web", "tokenReview": True}})
    secret = of_kind(items, "Secret")
    assert len(base64.b64decode(secret["data"]["token"])) == 48
    mounts = {mount["name"]: mount["mountPath"] for mount in pod_of(items)["containers"][0]["volumeMounts"]}
    volumes = {volume["name"]: volume.get("secret", {}).get("secretName") for volume in pod_of(items)["volumes"]}
    assert volumes["moves-token"] == secret["metadata"]["name"]
    assert volumes["http-tls"] == "web"
    http = configured(items)
    assert http["tokenFile"] == f"{mounts['moves-token']}/token"
    assert http["tls"] == {"certFile": f"{mounts['http-tls']}/tls.crt", "keyFile": f"{mounts['http-tls']}/tls.key"}
    assert http["tokenReview"] is True
    granted = {resource for rule in of_kind(items, "ClusterRole")["rules"] for resource in rule["resources"]}
    assert {"tokenreviews", "subjectaccessreviews"} <= granted
    own = rendered(helm, {"http": {"createToken": True}, "moves": {"tokenSecret": "mine"}})
    assert "Secret" not in kinds(own)


# Rights.


@pytest.mark.parametrize(
    ("method", "values", "rights"),
    [
        pytest.param("evict", {}, set(), id="evictions, with KWOK"),
        pytest.param("replace", {}, {"pods"}, id="fresh copies"),
        pytest.param("checkpoint", {}, {"pods"}, id="simulated checkpoints"),
        pytest.param("command", {}, {"pods"}, id="commands of one's own"),
        pytest.param(
            "kubelet-checkpoint",
            {"moves": {"sshSecret": "s"}, "config": {"migration": {"scp": {"user": "u"}}}},
            {"pods", "nodes/checkpoint"},
            id="the kubelet's checkpoints",
        ),
    ],
)
def test_pods_are_made_only_where_a_group_asks_for_moves(
    method: str, values: Json, rights: set[str], helm: Path
) -> None:
    groups = [{"name": "services", "workload": "service"}, {"name": "batch", "cleaning": {"migration": method}}]
    items = rendered(helm, values | {"config": {**values.get("config", {}), "nodeGroups": groups}})
    rules = of_kind(items, "ClusterRole")["rules"]
    created = {each for rule in rules if "create" in rule["verbs"] for each in rule["resources"]}
    assert created & {"pods", "nodes/checkpoint"} == rights
    deleted = {each for rule in rules if {"delete", "patch"} & set(rule["verbs"]) for each in rule["resources"]}
    assert ("pods" in deleted) is bool(rights)
    assert ("ValidatingAdmissionPolicy" in kinds(items)) is bool(rights)


@pytest.mark.parametrize("values", [{}, ON_OPENSTACK, ON_CASSANDRA], ids=["KWOK", "OpenStack", "Cassandra"])
def test_secrets_are_read_by_nobody(values: Json, helm: Path) -> None:
    roles = [item for item in rendered(helm, values) if item["kind"] in ("Role", "ClusterRole")]
    on_secrets = [
        (item["metadata"].get("namespace"), rule["verbs"])
        for item in roles
        for rule in item["rules"]
        if "secrets" in rule["resources"]
    ]
    assert on_secrets == ([("kube-system", ["create", "delete"])] if values is ON_OPENSTACK else [])


# What is refused.


def group(**keys: Any) -> Json:
    return {"config": {"nodeGroups": [{"name": "g", **keys}]}}


def flavour(**keys: Any) -> Json:
    return {"flavours": {"flavours": [{"name": "f", "cpu": 1, "memory": "1Gi", "pricePerHour": "0.1", **keys}]}}


@pytest.mark.parametrize(
    ("values", "place"),
    [
        pytest.param(group(workload="bogus"), "/config/nodeGroups/0/workload", id="no kind of work"),
        pytest.param(group(maxNodes=-1), "/config/nodeGroups/0/maxNodes", id="fewer than none"),
        pytest.param(group(maxNode=1), "/config/nodeGroups/0", id="a misspelt key of a group"),
        pytest.param(group(name="Not A Name"), "/config/nodeGroups/0/name", id="no name"),
        pytest.param(group(labels={"a b": "c"}), "/config/nodeGroups/0/labels", id="no label"),
        pytest.param(group(cleaning={"underutilizedFor": 300}), "underutilizedFor", id="a duration without a unit"),
        pytest.param(group(cleaning={"utilizationThreshold": 50}), "utilizationThreshold", id="per cent for a share"),
        pytest.param(group(cleaning={"migration": "teleport"}), "migration", id="no method"),
        pytest.param(group(taints=[{"key": "a", "effect": "Never"}]), "taints/0/effect", id="no effect of a taint"),
        pytest.param(flavour(pricePerHour="abc"), "/flavours/flavours/0/pricePerHour", id="no price"),
        pytest.param(flavour(pricePerHour=-1), "/flavours/flavours/0/pricePerHour", id="a negative price"),
        pytest.param(flavour(memory="8GB"), "/flavours/flavours/0/memory", id="no unit of Kubernetes"),
        pytest.param(flavour(cpu=0), "/flavours/flavours/0/cpu", id="a machine without cores"),
        pytest.param({"flavours": {"flavours": [{"name": "f"}]}}, "/flavours/flavours/0", id="a flavour without a price"),
        pytest.param({"config": {"cycles": {"schedulign": "20s"}}}, "/config/cycles", id="a misspelt key"),
        pytest.param({"config": {"logging": {"level": "loud"}}}, "/config/logging/level", id="no level"),
        pytest.param({"config": {"logging": {"format": "console"}}}, "/config/logging", id="the form of logs"),
        pytest.param({"store": {"sqlite": {"retention": {"cycles": "forever"}}}}, "retention/cycles", id="no retention"),
        pytest.param({"image": {"digest": "latest"}}, "/image/digest", id="no digest"),
        pytest.param({"persistence": {"enabled": True}}, "Set replicas: 1", id="two daemons on one file"),
        pytest.param(ON_CASSANDRA | {"persistence": {"enabled": True, "existingClaim": "c"}}, "one volume", id="one volume for two"),
        pytest.param({"config": {"leaderElection": {"enabled": False}}}, "they would all act", id="two daemons without a lease"),
    ],
)  # fmt: skip
def test_what_the_daemon_would_crash_on_is_refused_by_helm(values: Json, place: str, helm: Path) -> None:
    assert place in refused(helm, values)


def values_from(name: str) -> Json:
    """A shipped configuration as values of the chart."""
    config = yaml.safe_load((ROOT / "config" / name).read_text())
    prices = yaml.safe_load((ROOT / "config" / config["flavours"]).read_text())
    for own in ("apiVersion", "kind", "flavours", "http"):
        config.pop(own, None)
    config.get("logging", {}).pop("format", None)
    store = config.pop("store", {})
    store.get("sqlite", {}).pop("path", None)
    if store.get("cassandra"):
        store["cassandra"].pop("passwordFile", None)
        store["cassandra"].get("buffer", {}).pop("path", None)
    config["provider"] = {"kwok": None, **config.get("provider", {"sandbox": {}})}
    if moves := "kubelet-checkpoint" in str(config):
        config["migration"]["scp"]["user"] = "root"
    values = {"config": config, "flavours": prices, "store": store, "openstack": {"userData": "#!/bin/sh\n"}}
    return values | ({"moves": {"sshSecret": "s"}} if moves else {})


@pytest.mark.parametrize("name", ["htas.yaml", "paper.yaml", "kwok.yaml", "openstack.yaml", "cassandra.yaml"])
def test_every_key_that_is_documented_is_taken(name: str, helm: Path) -> None:
    assert refused(helm, values_from(name)) == ""


WHOLE = values_from("htas.yaml")
TEXTS = st.sampled_from(
    [None, True, "x", "", "1Gi", "10s", "0.5", "7", "1h30m", "-1", "e1", "10", "evict", [], {}, ["*"], {"a": "b"}]
)


def places(value: Any, steps: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in items:
        yield (*steps, step)
        yield from places(inner, (*steps, step))


def changed(values: Json, steps: tuple[str | int, ...], to: Any) -> Json:
    copied = copy.deepcopy(values)
    around: Any = copied
    for step in steps[:-1]:
        around = around[step]
    around[steps[-1]] = to
    return copied


KEYS = sorted((p for p in places(WHOLE) if p[0] in ("config", "flavours") and len(p) > 2 and p[-1] != "kwok"), key=str)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(steps=st.sampled_from(KEYS), text=TEXTS)
def test_the_schema_refuses_nothing_that_the_daemon_takes(steps: tuple[str | int, ...], text: Any, helm: Path) -> None:
    """Text where a number belongs is taken by both, so that prices stay as they were written."""
    values = changed(WHOLE, steps, text)
    own = {"apiVersion": "htas.io/v1alpha1", "kind": "HTASConfiguration", "flavours": values["flavours"]}
    provider = {key: value for key, value in values["config"]["provider"].items() if value is not None}
    with TemporaryDirectory() as directory:
        file = Path(directory) / "htas.yaml"
        file.write_text(yaml.safe_dump(own | values["config"] | {"provider": provider}))
        try:
            load_configuration(file)
        except ConfigurationError:
            return
    told = refused(helm, values)
    assert "schema" not in told, told


def test_prices_of_the_trace_are_taken(helm: Path) -> None:
    prices = yaml.safe_load((ROOT / "config" / "flavours" / "openb.yaml").read_text())
    assert refused(helm, {"flavours": prices}) == ""


def test_the_account_of_the_policy_is_the_daemons(helm: Path) -> None:
    (condition,) = of_kind(rendered(helm, MOVING), "ValidatingAdmissionPolicy")["spec"]["matchConditions"]
    assert ACCOUNT in condition["expression"]
