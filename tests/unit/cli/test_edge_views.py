"""The edge in what commands print: plan, explain node, check."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from htas.cli.main import app
from htas.sandbox.server import WorldServer
from htas.sandbox.world import World
from tests.builders import make_node
from tests.unit.cli.dump import named, node, pod, running

CONFIG = """
apiVersion: htas.io/v1alpha1
kind: HTASConfiguration
cluster: demo
flavours: {flavours: [{name: small, cpu: 1, memory: 1Gi, pricePerHour: "0.1"}]}
provider: {sandbox: {}}
edge: {settle: 0s}
nodeGroups: GROUPS
"""
BOTH = "[{name: near, tier: edge}, {name: cloud, maxNodes: 0}]"
NEAR, FAR = {"htas.io/group": "near"}, {"htas.io/group": "cloud"}
EMPTY = "group near is of tier edge and no node belongs to it: label nodes htas.io/group=near"


def says(folder: Path, *words: str, groups: str = BOTH, items: tuple[dict[str, Any], ...] = ()) -> Result:
    (folder / "htas.yaml").write_text(CONFIG.replace("GROUPS", groups))
    (folder / "dump.json").write_text(json.dumps({"kind": "List", "items": items}))
    where = ("--from", str(folder / "dump.json")) if words[0] != "check" else ()
    return CliRunner().invoke(app, [*words, "-c", str(folder / "htas.yaml"), *where])


def of_web(name: str, where: str | None) -> dict[str, Any]:
    meta = {
        "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}],
        "annotations": {"htas.io/migrate": "true"},
    }
    return running(name, where, meta=meta) if where else pod(name, "500m", meta=meta)


def test_the_headline_counts_moves_to_the_edge(tmp_path: Path) -> None:
    pods = [of_web(f"web-{i}", "far") for i in range(3)]
    replicas = named("ReplicaSet", "web", spec={"replicas": 3})
    budget = named("PodDisruptionBudget", "any", spec={"selector": {}}, status={"disruptionsAllowed": 3})
    there = (node("e", "2", "4Gi", "z", **NEAR), node("far", "4", "8Gi", "z", **FAR))
    said = says(tmp_path, "plan", items=(*there, *pods, replicas, budget))
    assert (said.exit_code, "1 node without a known price" in said.stderr) == (0, True)  # far: no edge
    assert " 3 to move, " in said.stdout
    assert "Move, for the edge" in said.stdout


def test_an_edge_without_nodes_is_told(tmp_path: Path) -> None:
    """Of a plan on stderr, so that its JSON stays JSON."""
    there = (node("far", "4", "8Gi", "z", **FAR), of_web("web-1", "far"))
    said = says(tmp_path, "plan", "-o", "json", items=there)
    assert (said.exit_code, said.stderr.splitlines()[-1]) == (0, EMPTY)
    assert json.loads(said.stdout)["kind"] == "Plan"
    elastic = says(tmp_path, "plan", groups="[{name: near, tier: edge, elastic: true}]", items=there)
    assert elastic.exit_code == 0
    assert EMPTY not in elastic.stderr


@contextmanager
def world(folder: Path, *labels: dict[str, str]) -> Iterator[str]:
    """A sandbox in which such nodes are; gives the configuration's groups, with the world's address."""
    made = World()
    made.add_nodes([make_node(f"n{i}", labels=each) for i, each in enumerate(labels)])
    server = WorldServer(made, folder / "w.sock", None)
    server.start()
    try:
        yield f"{BOTH}\nprovider: {{sandbox: {{address: {folder / 'w.sock'}}}}}"
    finally:
        server.stop()


def checked_live(folder: Path, groups: str) -> Result:
    text = CONFIG.replace("provider: {sandbox: {}}\n", "").replace("GROUPS", groups)
    (folder / "live.yaml").write_text(text)
    return CliRunner().invoke(app, ["check", "--live", "-c", str(folder / "live.yaml")])


def test_a_live_check_looks_for_nodes_of_the_edge(tmp_path: Path) -> None:
    with world(tmp_path, FAR) as groups:
        said = checked_live(tmp_path, groups)
    assert (said.exit_code, said.stderr) == (0, f"{EMPTY}\n")
    with world(tmp_path, FAR, NEAR) as groups:
        said = checked_live(tmp_path, groups)
    assert (said.exit_code, said.stderr) == (0, "")
    gone = checked_live(tmp_path, groups)
    assert gone.exit_code == 0
    assert "whether the groups of tier edge have nodes is not known: " in gone.stderr


def test_check_shows_tiers_and_what_is_bought(tmp_path: Path) -> None:
    said = says(tmp_path, "check", groups="[{name: near, tier: edge}, {name: cloud}]").stdout
    lines = [line.split() for line in said.splitlines()]
    assert ["near", "edge", "any", "bfd", "not", "launched", "–"] in lines
    assert ["cloud", "cloud", "any", "bfd", "0–∞", "small", "(0.10)"] in lines
    assert "no group launches machines" not in said
    assert "tier" not in says(tmp_path, "check", groups="[{name: cloud}]").stdout


def test_an_edge_alone_buys_nothing_and_says_so(tmp_path: Path) -> None:
    alone = "[{name: near, tier: edge}]"
    assert "no group launches machines" in says(tmp_path, "check", groups=alone).stdout
    there = (node("e", "1", "4Gi", "z", **NEAR), of_web("web-1", "e"), pod("huge", "2"))
    said = says(tmp_path, "explain", "pod", "huge", groups=alone, items=there).stdout
    assert "pending: NoNodeGroup: no node group launches machines; 0/1 nodes are available: 1 Insufficient cpu." in said
    parted = "[{name: near, tier: edge, workload: service}, {name: cloud, workload: batch}]"
    said = says(tmp_path, "explain", "pod", "huge", groups=parted, items=there).stdout
    assert "pending: NoNodeGroup: no node group that takes service work launches machines; 0/1" in said


def test_the_tier_of_a_node_is_told_and_who_states_it(tmp_path: Path) -> None:
    there = (
        node("e", "1", "4Gi", "z", **NEAR),
        node("shop-7", "1", "4Gi", "z", **{"htas.io/tier": "edge"}),
        node("far", "1", "4Gi", "z", **FAR),
        node("stray", "1", "4Gi", "z"),
    )
    told = {
        name: says(tmp_path, "explain", "node", name, items=there).stdout for name in ("e", "shop-7", "far", "stray")
    }
    assert "is of tier edge (its group near)" in told["e"]
    assert "is of tier edge (its label htas.io/tier)" in told["shop-7"]
    assert "is of tier cloud (its group cloud)" in told["far"]
    assert "is of tier cloud (no label and no group states another tier)" in told["stray"]
    assert "tier" not in says(tmp_path, "explain", "node", "far", items=there[2:]).stdout
