"""What machines boot with."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from htas.adapters.openstack.user_data import UserData, may_give_itself
from htas.model.constraints import Effect, Taint
from htas.model.nodes import Node
from htas.model.policy import NodeGroup
from htas.planning.cluster.machines import machine_node
from htas.ports import RefusedError
from tests.builders import make_flavour, make_policy

SHIPPED = Path(__file__).parents[4] / "deploy" / "openstack" / "cloud-init.yaml"
JOIN = {"api_server": "192.0.2.10:6443", "ca_cert_hash": "sha256:" + "0" * 64}
FLAVOUR = make_flavour("m1.large", "4", "16Gi", "0.27")
GROUP = NodeGroup(
    "batch",
    labels={"team": "a", "node-role.kubernetes.io/batch": ""},
    taints=(Taint("only", Effect.NO_SCHEDULE, "batch"), Taint("new", Effect.NO_EXECUTE)),
)


def node() -> Node:
    return machine_node(make_policy([GROUP], [FLAVOUR]), GROUP, FLAVOUR, "nova", "test-batch-1")


def rendered(data: UserData) -> str:
    return data.render("test-batch-1", "batch", FLAVOUR, node())


def test_the_shipped_template_joins_by_kubeadm() -> None:
    tokens: list[str] = []

    def mint(claim: str) -> str:
        tokens.append(claim)
        return "abcdef.0123456789abcdef"

    text = rendered(UserData(SHIPPED, {}, join=JOIN, token=mint))
    assert text.startswith("#cloud-config\n")
    files = {each["path"]: each["content"] for each in yaml.safe_load(text)["write_files"]}
    join = yaml.safe_load(files["/run/htas-join.yaml"])
    assert join["discovery"]["bootstrapToken"] == {
        "apiServerEndpoint": "192.0.2.10:6443",
        "token": "abcdef.0123456789abcdef",
        "caCertHashes": [JOIN["ca_cert_hash"]],
    }
    options = {each["name"]: each["value"] for each in join["nodeRegistration"]["kubeletExtraArgs"]}
    assert options["node-labels"] == (
        "htas.io/claim=test-batch-1,htas.io/cluster=test,htas.io/group=batch,"
        "node.kubernetes.io/instance-type=m1.large,team=a,topology.kubernetes.io/zone=nova"
    )
    assert options["register-with-taints"] == "only=batch:NoSchedule,new:NoExecute"
    assert "$(date +%s)" in files["/usr/local/sbin/htas-join"]  # what is the shell's stays the shell's
    assert tokens == ["test-batch-1"]


@pytest.mark.parametrize(("kind", "port"), [("rke2", 9345), ("k3s", 6443)])
def test_the_templates_of_rke2_and_k3s_join_by_a_token_of_each_machines_own(kind: str, port: int) -> None:
    values = {"server": "192.0.2.10", "ca_digest": "a1" * 32}
    data = UserData(SHIPPED.with_name(f"{kind}.yaml"), values, join=JOIN, token=lambda _: "abcdef.0123456789abcdef")
    text = rendered(data)
    assert text.startswith("#cloud-config\n")
    files = {each["path"]: each["content"] for each in yaml.safe_load(text)["write_files"]}
    agent = yaml.safe_load(files[f"/etc/rancher/{kind}/config.yaml"])
    assert agent["server"] == f"https://192.0.2.10:{port}"
    assert agent["token"] == f"K10{'a1' * 32}::abcdef.0123456789abcdef"
    assert agent["node-name"] == "test-batch-1"
    options = dict(each.split("=", 1) for each in agent["kubelet-arg"])
    assert options["provider-id"] == "openstack:///INSTANCE_ID"
    assert "htas.io/claim=test-batch-1" in options["node-labels"].split(",")
    assert options["register-with-taints"] == "only=batch:NoSchedule,new:NoExecute"
    assert f"{kind}-agent.service" in files["/usr/local/sbin/htas-join"]


def test_the_shipped_template_has_keys_for_moves_to_take_in(tmp_path: Path) -> None:
    taken_in = tmp_path / "cloud-init.yaml"
    taken_in.write_text("".join(line.removeprefix("#: ") for line in SHIPPED.read_text().splitlines(keepends=True)))
    plain, moving = (
        yaml.safe_load(rendered(UserData(path, {}, join=JOIN, token=lambda _: "abcdef.0123456789abcdef")))
        for path in (SHIPPED, taken_in)
    )
    assert not {"ssh_keys", "users"} & plain.keys()
    assert moving["ssh_keys"]["ed25519_private"].startswith("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    (user,) = moving["users"]
    assert (user["name"], moving["disable_root"]) == ("root", False)
    assert {key: moving[key] for key in plain} == plain, "all else is as it was"


def test_a_script_of_the_operators_own_is_filled_in_and_needs_no_token(tmp_path: Path) -> None:
    path = tmp_path / "join.sh"
    path.write_text('#!/bin/sh\necho $$ ${PATH} ${htas.values.site} ${htas.node_name} "$1"\n')
    text = rendered(UserData(path, {"site": "north"}, token=lambda claim: pytest.fail("no token is asked for")))
    assert text == '#!/bin/sh\necho $$ ${PATH} north test-batch-1 "$1"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("${htas.nodename}", r"nothing is known for \$\{htas.nodename\}; there is claim, ", id="misspelt"),
        pytest.param("${htas.node-name}", r"nothing is known for \$\{htas.node-name\}", id="with a hyphen"),
        pytest.param("${htas.NODE_NAME}", "nothing is known for", id="in capitals"),
        pytest.param("echo ${htas.node_nam\n", "nothing is known for", id="never closed"),
        pytest.param("${htas.kubeadm_token}", "nothing is known for", id="a token without kubeadm"),
        pytest.param("${htas.values.x}", "nothing is known for", id="a value that was not given"),
    ],
)
def test_a_placeholder_that_nobody_fills_in_is_told_at_the_start(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "t"
    path.write_text(text)
    with pytest.raises(RefusedError, match=words):
        UserData(path, {})


def test_a_template_that_is_not_there_is_told_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="cannot be read"):
        UserData(tmp_path / "none", {})


def test_what_nova_would_not_take_is_not_sent(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_text("x" * 50_000)
    with pytest.raises(RefusedError, match="more than Nova takes"):
        rendered(UserData(path, {}))


@pytest.mark.parametrize(
    ("label", "may"),
    [
        ("team", True),
        ("example.com/team", True),
        ("htas.io/claim", True),
        ("node.kubernetes.io/instance-type", True),
        ("node.kubernetes.io/anything", True),
        ("kubelet.kubernetes.io/x", True),
        ("topology.kubernetes.io/zone", True),
        ("topology.kubernetes.io/rack", False),
        ("node-role.kubernetes.io/batch", False),
        ("node-restriction.kubernetes.io/x", False),
        ("kubernetes.io/hostname", False),
        ("x.k8s.io/y", False),
    ],
)
def test_labels_that_a_kubelet_may_give_itself(label: str, may: bool) -> None:
    assert may_give_itself(label) is may
