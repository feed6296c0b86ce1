"""The chart: sound by itself, accepted by the API server, and its rights are enough for the daemon and no more."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import pytest
import yaml

from htas.ports import PermanentError
from tests.real.harness import BATCH, ROOT, Cluster, Htas, Json, configuration, eventually, htas
from tests.real.work import deployment, job

CHART = ROOT / "deploy" / "helm" / "htas"
SPACE = "htas-system"
POLICY = "ValidatingAdmissionPolicy"
ACCOUNT = f"system:serviceaccount:{SPACE}:htas"
ACTING: Json = {
    "replicas": 2,
    "persistence": {"enabled": False},
    "http": {"createToken": False},
    "config": {"mode": "automatic", "provider": {"kwok": {}}},
}
"""Two daemons that launch machines which KWOK simulates; the chart's own defaults only recommend."""
OPENSTACK = {
    "image": "i",
    "networks": ["net"],
    "userData": {"template": "cloud-init.yaml", "kubeadm": {"apiServer": "192.0.2.1:6443"}},
}
ON_OPENSTACK: Json = {
    "config": {"provider": {"kwok": None, "openstack": OPENSTACK}},
    "openstack": {
        "credentialsSecret": "htas-cloud",
        "userData": (ROOT / "deploy" / "openstack" / "cloud-init.yaml").read_text(),
    },
    "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}],
    "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/ca"}],
}
ON_CASSANDRA: Json = {
    "store": {
        "cassandra": {
            "contactPoints": ["cassandra.db"],
            "localDatacenter": "dc1",
            "username": "htas",
            "tls": {"checkHostname": False},
            "buffer": {"maxBytes": "512Mi"},
        },
        "passwordSecret": "htas-cassandra",
        "tlsSecret": "htas-cassandra-tls",
    }
}
MOVING: Json = {
    "config": {
        "provider": {"kwok": None, "openstack": OPENSTACK},
        "nodeGroups": [
            {"name": "services", "workload": "service"},
            {"name": "batch", "workload": "batch", "cleaning": {"migration": "kubelet-checkpoint"}},
        ],
        "migration": {"atOnce": 4, "scp": {"user": "root"}},
    },
    "openstack": ON_OPENSTACK["openstack"],
    "moves": {"sshSecret": "htas-ssh", "tokenSecret": "htas-token"},
}
WITH_ADDITIONS: Json = {
    "networkPolicy": {"enabled": True, "from": [{"namespaceSelector": {}}]},
    "hostAliases": [{"ip": "192.0.2.10", "hostnames": ["keystone.example"]}],
    "dnsPolicy": "None",
    "dnsConfig": {"nameservers": ["192.0.2.53"]},
    "image": {"digest": "sha256:" + "0" * 64},
    "service": {"annotations": {"a": "b"}, "labels": {"c": "d"}},
}
WITHOUT_KWOK = {"config": {"provider": {"kwok": None, "sandbox": {"workload": "none"}}}}


def rendered(helm: Path, values: Json | None = None, base: Json = ACTING) -> list[Json]:
    """The chart's objects with some values set over those of `base`."""
    done = templated(helm, values or {}, base)
    assert done.returncode == 0, done.stderr
    return [item for item in yaml.safe_load_all(done.stdout) if item]


def templated(
    helm: Path, values: Json, base: Json = ACTING, chart: Path = CHART, *options: str
) -> subprocess.CompletedProcess[str]:
    """What `helm template` says."""
    with NamedTemporaryFile("w", suffix=".yaml") as under:
        yaml.safe_dump(base, under)
        under.flush()
        command = [helm, "template", "htas", chart, "--namespace", SPACE, "--kube-version", "1.36.0", *options]
        command += ["--values", under.name, "--values", "-"]
        return subprocess.run(command, input=yaml.safe_dump(values), capture_output=True, text=True, check=False)


def of_kind(items: list[Json], kind: str) -> Json:
    return next(item for item in items if item["kind"] == kind)


def test_it_passes_helm_lint(helm: Path) -> None:
    done = subprocess.run([helm, "lint", "--strict", CHART], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


ODD: list[Any] = [
    pytest.param({}, id="with KWOK"),
    pytest.param({"replicas": 1}, id="one daemon"),
    pytest.param(
        {"podLabels": {"a": "b"}, "podAnnotations": {"c": "d"}, "extraEnv": [{"name": "E", "value": "1"}]},
        id="with additions",
    ),
    pytest.param({"serviceMonitor": {"enabled": True, "labels": {"release": "p"}}}, id="watched by Prometheus"),
    pytest.param({"config": {"logging": {"level": "debug"}, "schedulerName": "packer"}}, id="another configuration"),
    pytest.param(WITHOUT_KWOK, id="another provider"),
    pytest.param(ON_OPENSTACK, id="machines from OpenStack"),
    pytest.param(ON_CASSANDRA, id="a store in Cassandra"),
    pytest.param(MOVING, id="moves by the kubelet's checkpoints"),
    pytest.param({"store": {"sqlite": {"retention": {"cycles": "2d"}}}}, id="another retention"),
    pytest.param(
        {"serviceAccount": {"name": "mine", "annotations": {"a": "b"}}, "nodeSelector": {"pool": "system"}},
        id="another account",
    ),
]


@pytest.mark.parametrize("values", ODD)
def test_its_configuration_is_one_that_htas_accepts(values: Json, helm: Path, tmp_path: Path) -> None:
    data = of_kind(rendered(helm, values), "ConfigMap")["data"]
    for name, content in data.items():
        (tmp_path / name).write_text(content)
    done = htas("check", config=tmp_path / "htas.yaml")
    assert done.returncode == 0, done.stderr


def test_one_daemon_has_no_budget_that_would_hold_up_a_drain(helm: Path) -> None:
    assert "PodDisruptionBudget" not in [item["kind"] for item in rendered(helm, {"replicas": 1})]


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        pytest.param({"replica": 2}, "replica", id="a misspelt key"),
        pytest.param({"replicas": 0}, "replicas", id="no daemon at all"),
        pytest.param({"config": {"http": {"listen": "0.0.0.0:1"}}}, "config", id="what the chart sets itself"),
        pytest.param({"store": {"sqlite": {"path": "x.db"}}}, "path", id="a file elsewhere"),
        pytest.param({"store": {"cassandra": {"contactPoints": ["c"]}}}, "localDatacenter", id="half a store"),
        pytest.param({"config": {"provider": {"sandbox": {}}}}, "provider names kwok and sandbox", id="two providers"),
        pytest.param({"config": {"provider": {"kwok": None}}}, "names nothing that could launch", id="no provider"),
        pytest.param({"ingress": {"enabled": True}}, "ingress.host", id="an Ingress without its host"),
        pytest.param({"httpRoute": {"enabled": True, "host": "a.example"}}, "parentRefs", id="a route from nowhere"),
        pytest.param(
            {"config": {"provider": {"kwok": None, "openstack": OPENSTACK}}},
            "openstack.userData is empty",
            id="no user data",
        ),
    ],
)
def test_values_that_cannot_work_are_refused(values: Json, complaint: str, helm: Path) -> None:
    done = templated(helm, values)
    assert done.returncode != 0
    assert complaint in done.stderr


def test_the_rendered_manifests_are_the_charts(helm: Path, tmp_path: Path) -> None:
    again = tmp_path / "htas.yaml"
    subprocess.run([ROOT / "deploy" / "render.sh", again], env={"HELM": str(helm), "PATH": "/usr/bin:/bin"}, check=True)
    assert again.read_text() == (ROOT / "deploy" / "manifests" / "htas.yaml").read_text(), "run deploy/render.sh"


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({}, id="with KWOK"),
        pytest.param(WITHOUT_KWOK, id="without"),
        pytest.param(ON_CASSANDRA, id="a store in Cassandra"),
        pytest.param({"replicas": 1, "persistence": {"enabled": True}}, id="a store on a volume"),
        pytest.param(WITH_ADDITIONS, id="with additions"),
        pytest.param(MOVING, id="moves by checkpoint"),
    ],
)
def test_the_api_server_would_take_it(values: Json, helm: Path, cluster: Cluster, space: str) -> None:
    manifests = yaml.safe_dump_all(rendered(helm, values))
    told = cluster.kubectl("apply", "--dry-run=server", "-f", "-", input=manifests)
    assert told.count("created (server dry run)") == len(rendered(helm, values)), told


ALWAYS = (
    "list pods", "watch pods", "get pods", "create pods/binding", "patch persistentvolumeclaims", "create pods/eviction", "patch pods/status",
    "watch nodes", "patch nodes", "delete nodes", "watch poddisruptionbudgets.policy", "create events.events.k8s.io",
    "watch csinodes.storage.k8s.io", "watch jobs.batch", "watch replicasets.apps",
)  # fmt: skip
IN_ITS_SPACE = (
    "create leases.coordination.k8s.io",
    "update leases.coordination.k8s.io/htas-main",
    "get configmaps/htas-main-status",
    "patch configmaps/htas-main-status",
)
WITH_KWOK = ("create nodes",)
WITH_MOVES = ("create pods", "delete pods", "patch pods")
NEVER = (
    "get secrets", "list secrets", "create deployments.apps", "delete jobs.batch", "create pods/exec", "patch nodes/status",
    "create clusterroles.rbac.authorization.k8s.io", "escalate clusterroles.rbac.authorization.k8s.io", "impersonate users",
    "update pods", "create serviceaccounts/token", "delete poddisruptionbudgets.policy", "get nodes/proxy", "create namespaces",
)  # fmt: skip
ELSEWHERE_NEVER = (
    "get configmaps",
    "create configmaps",
    "get leases.coordination.k8s.io",
    "create leases.coordination.k8s.io",
)


@pytest.mark.parametrize("is_kwok", [pytest.param(True, id="with KWOK"), pytest.param(False, id="without")])
def test_its_account_may_do_what_it_must_and_no_more(is_kwok: bool, helm: Path, cluster: Cluster, space: str) -> None:
    items = rendered(helm, {} if is_kwok else WITHOUT_KWOK)
    with applied_rights(cluster, items):
        for right in (*ALWAYS, *(WITH_KWOK if is_kwok else ())):
            assert can(cluster, right, "default"), right
        for right in IN_ITS_SPACE:
            assert can(cluster, right, SPACE), right
        for right in (*NEVER, *ELSEWHERE_NEVER, *WITH_MOVES, *(() if is_kwok else WITH_KWOK)):
            assert not can(cluster, right, "default"), right
        if not is_kwok:
            assert not can(cluster, "get configmaps", SPACE)
            assert not can(cluster, "update leases.coordination.k8s.io/others", SPACE)


def test_moves_need_checkpoints_and_twins_and_no_way_into_the_nodes(helm: Path, cluster: Cluster, space: str) -> None:
    moving = ("create nodes/checkpoint", *WITH_MOVES)
    with applied_rights(cluster, rendered(helm, MOVING)):
        for right in (*ALWAYS, *moving):
            assert can(cluster, right, "default"), right
        for right in (
            *NEVER,
            "create nodes/proxy",
            "get nodes/proxy",
            "create nodes",
            "get pods/log",
            "create pods/exec",
        ):
            assert not can(cluster, right, "default"), right
    with applied_rights(cluster, rendered(helm, ON_OPENSTACK)):
        assert not any(can(cluster, right, "default") for right in moving)


@pytest.mark.parametrize("secret", ["sshSecret", "tokenSecret"])
def test_keys_of_moves_are_mounted_where_the_configuration_looks_for_them(secret: str, helm: Path) -> None:
    items = rendered(helm, MOVING)
    config = yaml.safe_load(of_kind(items, "ConfigMap")["data"]["htas.yaml"])
    looked_for = {
        "sshSecret": (config["migration"]["scp"]["identityFile"], config["migration"]["scp"]["knownHostsFile"]),
        "tokenSecret": (config["http"]["tokenFile"],),
    }[secret]
    pod = of_kind(items, "Deployment")["spec"]["template"]["spec"]
    volume = next(v["name"] for v in pod["volumes"] if v.get("secret", {}).get("secretName") == MOVING["moves"][secret])
    mount = next(m["mountPath"] for m in pod["containers"][0]["volumeMounts"] if m["name"] == volume)
    assert {str(Path(name).parent) for name in looked_for} == {mount}
    assert config["migration"]["atOnce"] == 4


def test_agents_of_a_registry_are_told_where_it_is_and_may_do_nothing_in_the_cluster(
    helm: Path, cluster: Cluster
) -> None:
    migration = {"registry": {"url": "https://registry.example:5000", "pullFrom": "registry.example:5000/a/b"}}
    groups = MOVING["config"]["nodeGroups"]
    values = {
        "config": {"nodeGroups": groups, "migration": migration},
        "moves": {"agentSecret": "htas-agent", "registryCredentials": True},
    }
    items = rendered(helm, values)
    agents, daemon = of_kind(items, "DaemonSet"), of_kind(items, "Deployment")
    pod = agents["spec"]["template"]["spec"]
    assert {"--registry=https://registry.example:5000", "--repository=a/b"} <= set(pod["containers"][0]["args"])
    assert pod["automountServiceAccountToken"] is False
    assert [v["hostPath"]["path"] for v in pod["volumes"] if "hostPath" in v] == ["/var/lib/kubelet/checkpoints"]
    assert pod["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    selected = daemon["spec"]["selector"]["matchLabels"].items()
    assert not selected <= agents["spec"]["template"]["metadata"]["labels"].items(), "the daemon's Service means others"
    config = yaml.safe_load(of_kind(items, "ConfigMap")["data"]["htas.yaml"])["migration"]
    mounts = {each["mountPath"] for each in daemon["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]}
    files = {config["registry"]["agentTokenFile"], config["registry"]["credentialsFile"]}
    assert config["transfer"] == "registry"
    assert {str(Path(name).parent) for name in files} <= mounts
    cluster.kubectl("apply", "--dry-run=server", "-f", "-", input=yaml.safe_dump(agents | {"metadata": {"name": "a"}}))


MARKED: list[Any] = [
    pytest.param({"labels": {"htas.io/moving": "abcdef012345"}}, id="a move"),
    pytest.param({"labels": {"htas.io/twin-of": "u", "htas.io/restored": "abcdef012345"}}, id="a twin"),
    pytest.param({"labels": {"htas.io/replacement": "abcdef012345"}}, id="a fresh copy"),
    pytest.param({"annotations": {"htas.io/migration": "{}"}}, id="a journal"),
    pytest.param({"annotations": {"htas.io/moved": "true"}}, id="a switch"),
]


@pytest.fixture
def guarded(helm: Path, cluster: Cluster, space: str) -> Iterator[list[Json]]:
    """A cluster with the chart's rights and its policy, as soon as that is in force."""
    items = rendered(helm, MOVING)
    policy = yaml.safe_dump_all([item for item in items if "AdmissionPolicy" in item["kind"]])
    with applied_rights(cluster, items):
        cluster.kubectl("apply", "-f", "-", input=policy)
        probe = a_pod("probe", labels={"htas.io/moving": "abcdef012345"})
        eventually(
            lambda: "HTAS alone" in refused(cluster, "create", "-f", "-", "--dry-run=server", given=probe),
            30,
            "in force",
        )
        yield items
        cluster.kubectl("delete", "-f", "-", input=policy)


@pytest.mark.parametrize("marks", MARKED)
def test_nobody_but_htas_marks_a_pod_as_moving(marks: Json, guarded: list[Json], cluster: Cluster) -> None:
    assert "HTAS alone" in refused(cluster, "create", "-f", "-", given=a_pod("forged", **marks))
    cluster.kubectl("create", "-f", "-", input=yaml.safe_dump(a_pod("plain", labels={"app": "a"})))
    patch = yaml.safe_dump({"metadata": marks})
    for more in ((), ("--subresource=status",)):
        assert "HTAS alone" in refused(cluster, "patch", "pod", "plain", "--type=merge", "-p", patch, *more)
    cluster.kubectl("patch", "pod", "plain", "--type=merge", "-p", '{"metadata": {"labels": {"app": "b"}}}')
    cluster.kubectl("patch", "pod", "plain", "--type=merge", "-p", patch, f"--as={ACCOUNT}")
    cluster.kubectl("patch", "pod", "plain", "--type=merge", "-p", '{"metadata": {"labels": {"app": "c"}}}')
    without = yaml.safe_dump({"metadata": {part: dict.fromkeys(keys) for part, keys in marks.items()}})
    assert "HTAS alone" in refused(cluster, "patch", "pod", "plain", "--type=merge", "-p", without)
    cluster.kubectl("delete", "pod", "plain", "--grace-period=0", "--force")


def test_a_binding_brings_no_marks(guarded: list[Json], cluster: Cluster) -> None:
    """Its labels and annotations become the pod's."""
    cluster.kubectl("create", "-f", "-", input=yaml.safe_dump(a_pod("plain")))
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "plain", "annotations": {"htas.io/migration": "{}"}},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "nowhere"},
    }
    with pytest.raises(PermanentError, match="HTAS alone"):
        cluster.api.post("/api/v1/namespaces/default/pods/plain/binding", binding)
    del binding["metadata"]["annotations"]  # type: ignore[attr-defined] # a dict of its own
    cluster.api.post("/api/v1/namespaces/default/pods/plain/binding", binding)
    cluster.kubectl("delete", "pod", "plain", "--grace-period=0", "--force")


def test_the_policy_is_there_where_moves_are_and_can_be_left_out(helm: Path) -> None:
    kinds = lambda values: {item["kind"] for item in rendered(helm, values)}  # noqa: E731 # said three times below
    assert "ValidatingAdmissionPolicyBinding" in kinds(MOVING)
    assert "ValidatingAdmissionPolicy" not in kinds({})
    without = rendered(helm, MOVING | {"moves": {**MOVING["moves"], "admissionPolicy": False}})
    assert not [item for item in without if item["metadata"]["name"].endswith("-marks")]
    others = MOVING | {"moves": {**MOVING["moves"], "marksAllowedTo": ["mover"]}}
    (marks,) = (
        item
        for item in rendered(helm, others)
        if item["kind"] == POLICY and item["metadata"]["name"].endswith("-marks")
    )
    (condition,) = marks["spec"]["matchConditions"]
    assert condition["expression"] == f"!(request.userInfo.username in ['{ACCOUNT}','mover'])"


def a_pod(name: str, **meta: Json) -> Json:
    spec = {"schedulerName": "nobody", "containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", **meta}, "spec": spec}


def refused(cluster: Cluster, *command: str, given: Json | None = None) -> str:
    """What kubectl complains of; empty: it was done."""
    call = [cluster.binaries / "kubectl", f"--kubeconfig={cluster.kubeconfig}", *command]
    text = yaml.safe_dump(given) if given is not None else ""
    return subprocess.run(call, input=text, capture_output=True, text=True, check=False).stderr


def test_tokens_for_new_machines_are_made_in_one_place_and_read_in_none(
    helm: Path, cluster: Cluster, space: str
) -> None:
    with applied_rights(cluster, rendered(helm, ON_OPENSTACK)):
        for right in ("create secrets", "delete secrets"):
            assert can(cluster, right, "kube-system"), right
        for right in ("get secrets", "list secrets", "watch secrets", "update secrets", "patch secrets"):
            assert not can(cluster, right, "kube-system"), right
        for namespace in ("default", SPACE):
            for right in ("create secrets", "delete secrets"):
                assert not can(cluster, right, namespace), right
        for right in (*NEVER, *WITH_KWOK, *WITH_MOVES):
            assert not can(cluster, right, "default"), right


def can(cluster: Cluster, right: str, namespace: str) -> bool:
    verb, _, what = right.partition(" ")
    resource, _, rest = what.partition("/")
    sub = ["--subresource", rest] if resource in ("pods", "nodes", "serviceaccounts") and rest else []
    target = resource if sub or not rest else what
    command = [cluster.binaries / "kubectl", f"--kubeconfig={cluster.kubeconfig}", "auth", "can-i", verb, target, *sub]
    done = subprocess.run(
        [*command, f"--as={ACCOUNT}", f"--namespace={namespace}"], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() in ("yes", "no"), done.stderr
    return done.stdout.strip() == "yes"


class applied_rights:  # noqa: N801 # a context, used like a function
    """The chart's account and roles in the cluster for as long as the context lasts."""

    def __init__(self, cluster: Cluster, items: list[Json]) -> None:
        self._cluster = cluster
        kinds = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
        self._manifests = yaml.safe_dump_all([item for item in items if item["kind"] in kinds])

    def __enter__(self) -> None:
        self._cluster.kubectl("apply", "-f", "-", input=self._manifests)

    def __exit__(self, *_: object) -> None:
        self._cluster.kubectl("delete", "-f", "-", "--ignore-not-found", input=self._manifests)


def test_the_daemon_works_with_the_charts_rights_alone(
    helm: Path, cluster: Cluster, space: str, tmp_path: Path
) -> None:
    """Buying, binding, moving, evicting, releasing, leading, telling: with a token of the account, nothing is forbidden."""
    moving = [{"name": "batch", "workload": "batch", "cleaning": {"migration": "checkpoint"}}]
    values = {"config": {"cluster": "trial", "nodeGroups": moving}}
    with applied_rights(cluster, rendered(helm, values)):
        kubeconfig = account_kubeconfig(cluster, tmp_path)
        config = configuration(tmp_path, kubeconfig, kubernetes={"kubeconfig": str(kubeconfig), "namespace": SPACE})
        with Htas(config, tmp_path / "log") as daemon:
            daemon.says("leads")
            for i in range(2):
                cluster.create(job(f"keep-{i}", "30s", "400m", "256Mi"), job(f"fill-{i}", "5s", "500m", "256Mi"))
                eventually(
                    lambda wanted=2 * (i + 1): (
                        daemon.metric("htas_actions_total", verb="bind", status="done") >= wanted
                    ),
                    60,
                    "both are bound",
                )
            cluster.create(deployment("web", 1))
            eventually(
                lambda: daemon.metric("htas_actions_total", verb="migrate", status="done") > 0, 60, "a pod is moved"
            )
            eventually(
                lambda: all(j["status"].get("succeeded") for j in cluster.items(f"{BATCH}/jobs")), 90, "Jobs complete"
            )
            eventually(lambda: daemon.metric("htas_actions_total", verb="delete", status="done") >= 2, 60, "released")
            status = cluster.kubectl("get", "configmap", "htas-trial-status", "-n", SPACE, "-o", "name")
            assert status.strip() == "configmap/htas-trial-status"
            assert daemon.metric("htas_apiserver_requests_total", code="403") == 0, "nothing it asked for was forbidden"
            events = cluster.items("/api/v1/namespaces/default/events")
            assert {"TriggeredScaleUp", "Scheduled"} <= {event["reason"] for event in events}
            assert daemon.stop() == 0


def account_kubeconfig(cluster: Cluster, directory: Path) -> Path:
    """A kubeconfig with a token of the chart's account."""
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    token = cluster.kubectl("create", "token", "htas", "-n", SPACE).strip()
    document["users"][0]["user"] = {"token": token}
    path = directory / "account.kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path
