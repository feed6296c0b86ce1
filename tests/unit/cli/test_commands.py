"""The command line: exit codes, forms, and a plan for a dump of every kind of object."""

from __future__ import annotations

import contextlib
import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import htas
from htas.adapters.sqlite.store import SqliteStore
from htas.cli.main import app
from htas.model.outcomes import Action
from htas.model.policy import NodeGroup
from htas.sandbox.server import WorldServer
from htas.sandbox.world import World
from tests.builders import make_policy
from tests.stories.play import Story, job
from tests.unit.cli.dump import everything, named, node, pod, running

PRICES = Path(__file__).parents[3] / "config/flavours/nectar.yaml"
CONFIG = f"""
apiVersion: htas.io/v1alpha1
kind: HTASConfiguration
cluster: demo
flavours: {PRICES}
provider: {{sandbox: {{workload: day, speed: 600}}}}
nodeGroups: [{{name: services, workload: service}}, {{name: batch, workload: batch}}]
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    config, dump = tmp_path / "htas.yaml", tmp_path / "dump.json"
    config.write_text(CONFIG)
    dump.write_text(json.dumps({"kind": "List", "items": everything()}))
    return config, dump


def htas_says(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def plan_json(config: Path, dump: Path) -> dict[str, Any]:
    result = htas_says("plan", "--config", config, "--from", dump, "-o", "json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_version() -> None:
    assert htas_says("--version").stdout.strip() == f"htas {htas.__version__}"


@pytest.mark.parametrize(
    ("labels", "is_told"),
    [
        pytest.param({}, True, id="no flavour"),
        pytest.param({"node.kubernetes.io/instance-type": "k3s"}, True, id="one that is not on sale"),
        pytest.param({"node.kubernetes.io/instance-type": "m3.small"}, False, id="one that is"),
        pytest.param({"node-role.kubernetes.io/control-plane": ""}, False, id="a control plane, which nobody prices"),
    ],
)
def test_nodes_without_a_known_price_are_told(files: tuple[Path, Path], labels: dict[str, str], is_told: bool) -> None:
    config, dump = files
    made = node("plain", "5", "17Gi", "z")
    made["metadata"]["labels"] = labels
    dump.write_text(json.dumps({"kind": "List", "items": [made]}))
    said = htas_says("plan", "--config", config, "--from", dump)
    assert ("1 node without a known price, such as plain, counted as free" in said.stderr) is is_told
    assert ("without 1 node of unknown price" in said.stdout) is is_told


def test_a_plan_guesses_flavours_by_size_as_simulate_does(files: tuple[Path, Path]) -> None:
    """Its headline was 0.0000, "0.0% above" the least there is, for a cluster whose nodes bear no instance type."""
    config, dump = files
    made = node("plain", "4", "16Gi", "z")
    made["metadata"]["labels"] = {}
    dump.write_text(json.dumps({"kind": "List", "items": [made]}))
    said = htas_says("plan", "--config", config, "--from", dump)
    assert "A guess by size: 1 node without an instance type is taken for m1.large: plain." in said.stderr
    assert "  0.2746 → 0.2746 USD/h" in said.stdout
    stated = htas_says("plan", "--config", config, "--from", dump, "--type", "pl*=m1.xlarge")
    assert ("A guess" in stated.stderr, "  0.5479 → 0.5479 USD/h" in stated.stdout) == (False, True)
    told = htas_says("explain", "node", "plain", "--config", config, "--from", dump)
    assert "plain: m1.large, group none" in told.stdout


def test_a_pod_that_has_ended_is_told_as_such(files: tuple[Path, Path]) -> None:
    """It was "there is none (it may have ended)", with the pod in the dump."""
    config, dump = files
    done = pod("done")
    done["status"]["phase"] = "Failed"
    dump.write_text(json.dumps({"kind": "List", "items": [node("n", "4", "16Gi", "z"), done]}))
    for name in ("done", "default/done"):
        said = htas_says("explain", "pod", name, "--config", config, "--from", dump)
        assert said.stdout == "default/done: has ended (Failed): it needs no resources\n"


def test_a_pod_that_was_deleted_is_ending(files: tuple[Path, Path]) -> None:
    config, dump = files
    going = running("going", "n", meta={"deletionTimestamp": "2026-01-05T08:00:00Z"})
    dump.write_text(json.dumps({"kind": "List", "items": [node("n", "4", "16Gi", "z"), going]}))
    said = htas_says("explain", "pod", "going", "--config", config, "--from", dump)
    assert "is terminating" in said.stdout.splitlines()


def test_types_are_of_a_dump_alone(files: tuple[Path, Path]) -> None:
    said = htas_says("plan", "--config", files[0], "--type", "a=m1.large")
    assert "--type: names the flavour of nodes of a dump; name one with --from" in said.stderr


def test_the_plan_has_the_documented_form(files: tuple[Path, Path]) -> None:
    made = plan_json(*files)
    assert list(made) == [
        "apiVersion", "kind", "takenAt", "cost", "bind", "nominate", "launch", "preempt", "optimize", "rearrange", "migrate", "remove",
        "unplaced", "kept",
    ]  # fmt: skip
    assert (made["apiVersion"], made["kind"]) == ("htas.io/v1alpha1", "Plan")
    assert set(made["cost"]) == {"currency", "pricePerHourBefore", "pricePerHourAfter", "lowerBoundPerHour"}
    assert set(made["launch"][0]) == {"claim", "group", "flavour", "zone", "pricePerHour", "pods"}
    assert set(made["unplaced"][0]) == {"pod", "reason", "message", "nodes"}
    assert set(made["kept"][0]) == {"node", "reason", "message"}


def test_a_dump_of_every_kind_is_planned_for(files: tuple[Path, Path]) -> None:
    made = plan_json(*files)
    bound = {item["pod"]: item["node"] for item in made["bind"]}
    assert bound["default/volume-user"] == "fixed-1"
    assert bound["default/near-web"] == "fixed-1"
    told = {"node": "fixed-2", "reason": "BoundByOtherScheduler", "why": "bound by default-scheduler"}
    assert made["nominate"] == [{"pod": "default/foreign", **told}]
    assert {item["pod"]: item["reason"] for item in made["unplaced"]} == {
        "default/dra": "NotSupported",
        "default/gated": "SchedulingGated",
        "default/huge": "NoFlavourFits",
    }
    assert {pod for item in made["launch"] for pod in item["pods"]} == {"default/batch-1", "default/batch-2"}


def test_a_pod_is_bought_for_in_the_zone_of_its_cinder_volume(tmp_path: Path) -> None:
    """No node of the zone is there; the one of another zone shows how Cinder's label reads."""
    key = "topology.cinder.csi.openstack.org/zone"
    zone_2 = {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "In", "values": ["az-2"]}]}]}
    driver = {"name": "cinder.csi.openstack.org", "topologyKeys": [key], "allocatable": {"count": 25}}
    objects = [
        node("control-plane", "10m", "1Gi", "az-1", **{key: "az-1"}),
        named("CSINode", "control-plane", spec={"drivers": [driver]}),
        pod("db", spec={"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}),
        named("PersistentVolume", "pv", spec={"nodeAffinity": {"required": zone_2}, "csi": {"driver": driver["name"]}}),
        named("PersistentVolumeClaim", "data", spec={"volumeName": "pv", "accessModes": ["ReadWriteOnce"]}),
    ]
    config, dump = tmp_path / "htas.yaml", tmp_path / "dump.json"
    prices = "{flavours: [{name: small, cpu: 1, memory: 2Gi, pricePerHour: '0.02', zones: [az-1, az-2]}]}"
    config.write_text(CONFIG.replace(str(PRICES), prices))
    dump.write_text(json.dumps({"kind": "List", "items": objects}))
    (launch,) = plan_json(config, dump)["launch"]
    assert (launch["zone"], launch["pods"]) == ("az-2", ["default/db"])


def test_the_same_dump_gives_the_same_bytes(files: tuple[Path, Path]) -> None:
    first, second = (htas_says("plan", "-c", files[0], "--from", files[1], "-o", "json").stdout for _ in range(2))
    assert first == second


def test_shuffling_the_dump_changes_no_cost(files: tuple[Path, Path]) -> None:
    want = plan_json(*files)
    objects = everything()
    random.Random(5).shuffle(objects)
    files[1].write_text(json.dumps({"kind": "List", "items": objects}))
    assert plan_json(*files) == want


@pytest.mark.parametrize("form", ["table", "yaml"])
def test_other_forms(files: tuple[Path, Path], form: str) -> None:
    result = htas_says("plan", "-c", files[0], "--from", files[1], "-o", form)
    assert result.exit_code == 0
    assert "default/huge" in result.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        pytest.param(("pod", "huge"), "pending: NoFlavourFits", id="a pod that waits"),
        pytest.param(("pod", "default/batch-1"), "is to be launched for it", id="a pod bought for"),
        pytest.param(("pod", "web-1"), "runs on fixed-1", id="a pod that runs"),
        pytest.param(("node", "fixed-1"), "kept: NotAutoscaled", id="a node that stays"),
    ],
)
def test_explain(files: tuple[Path, Path], words: tuple[str, str], told: str) -> None:
    result = htas_says("explain", *words, "-c", files[0], "--from", files[1])
    assert result.exit_code == 0
    assert told in result.stdout


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        pytest.param(("plan", "-c", "{tmp}/none.yaml"), 2, "none.yaml: cannot be read", id="no configuration"),
        pytest.param(("plan", "-c", "{config}", "--from", "{tmp}/none.json"), 2, "none.json: cannot be", id="no dump"),
        pytest.param(
            ("plan", "-c", "{config}", "--from", "{bad}"), 2, "metadata.name: missing", id="a nameless object"
        ),
        pytest.param(("plan", "-c", "{config}", "--from", "{bad}"), 2, "is not a quantity", id="and a bad quantity"),
        pytest.param(("plan", "-c", "{config}", "--from", "{cut}"), 2, "cut.json:1:", id="malformed JSON"),
        pytest.param(
            ("explain", "pod", "nobody", "-c", "{config}", "--from", "{dump}"), 2, "there is none", id="no pod"
        ),
        pytest.param(("plan", "--no-such"), 2, "No such option", id="bad usage"),
        pytest.param(("plan", "-c", "{config}", "--at", "noon", "--from", "{dump}"), 2, "--at", id="no instant"),
        pytest.param(("replay", "99", "-c", "{config}"), 1, "nothing has been recorded yet", id="no database yet"),
        pytest.param(("history", "-c", "{config}"), 1, "nothing has been recorded yet", id="no history yet"),
    ],
)
def test_bad_input_ends_with_2(
    files: tuple[Path, Path], tmp_path: Path, words: tuple[str, ...], code: int, told: str
) -> None:
    bad, cut = tmp_path / "bad.json", tmp_path / "cut.json"
    broken = {"kind": "Pod", "metadata": {"name": "x"}, "spec": {"overhead": {"cpu": "1x"}}}
    bad.write_text(json.dumps({"kind": "List", "items": [{"kind": "Pod", "metadata": {}}, broken]}))
    cut.write_text('{"kind": "List", "items": [')
    places = {"tmp": tmp_path, "config": files[0], "dump": files[1], "bad": bad, "cut": cut}
    result = htas_says(*(word.format(**places) for word in words))
    assert result.exit_code == code
    assert told in " ".join(result.stderr.split())
    assert result.stdout == ""


def test_check_tells_what_a_configuration_comes_to(files: tuple[Path, Path]) -> None:
    result = htas_says("check", "-c", files[0])
    assert result.exit_code == 0
    assert "ok: cluster demo" in result.stdout


REFUSED_COSTS = [
    (("--against", "many"), "--against: 'many' is no alternative; write"),
    (("--against", "3 m9.huge"), "--against: there is no flavour 'm9.huge'; the price file has"),
    (("--against", "peak m9.huge"), "there is no flavour 'm9.huge'"),
    (("--against", "² m1.large"), "is no alternative"),
    (("--against", "0 m1.large"), "is no alternative"),
    (("--against", "peak", "-o", "csv"), "--against: is printed under a table"),
    (("--since", "2026-01-06", "--until", "2026-01-05"), "--since: is not before --until"),
    (("--since", "yesterday"), "--since: 'yesterday' is no instant"),
]


def test_a_short_run_leaves_history_that_can_be_told_and_replayed(files: tuple[Path, Path]) -> None:
    assert htas_says("run", "-c", files[0], "--for", "3").exit_code == 0
    for words in (("history",), ("cost",), ("cost", "--by", "day"), ("cost", "--against", "3 m1.large"), ("top",)):
        result = htas_says(*words, "-c", files[0])
        assert result.exit_code == 0
        assert result.stdout.strip()
    history = htas_says("history", "-c", files[0], "--verb", "launch").stdout
    assert "USD/h for" in history
    number = history.splitlines()[1].split()[0]
    node = next(word for word in history.split() if word.startswith("demo-"))
    assert "provisioning" in htas_says("history", "-c", files[0], "--node", node).stdout
    assert htas_says("replay", "99999", "-c", files[0]).exit_code == 2
    unknown = htas_says("history", "-c", files[0], "--verb", "lanch")
    assert (unknown.exit_code, "did you mean launch?" in unknown.stderr) == (2, True)
    assert node in htas_says("top", "--recorded", "-c", files[0]).stdout
    for words, why in REFUSED_COSTS:
        refused = htas_says("cost", *words, "-c", files[0])
        assert (refused.exit_code, why in " ".join(refused.stderr.split())) == (2, True), refused.stderr
    assert "these cycles have no such event" in htas_says("history", "-c", files[0], "--since", "2100-01-01").stdout
    assert "nothing was billed in this window" in htas_says("cost", "-c", files[0], "--since", "2100-01-01").stdout
    assert htas_says("history", "-c", files[0], "--node", node, "-o", "csv").exit_code == 2
    again = htas_says("replay", number, "-c", files[0])
    assert (again.exit_code, again.stdout.strip()) == (0, f"cycle {number}: the same plan again")


def test_what_is_gone_is_explained_by_what_was_decided_about_it(tmp_path: Path) -> None:
    """It was "there is none", with the reason of its end in the store."""
    story = Story(make_policy([NodeGroup("any")]), job("train", runs_s=60.0))
    story.store = SqliteStore(str(tmp_path / "htas.db"))
    story.crash()
    with contextlib.closing(story.store):
        story.play(400).assert_over(1)
        [node] = {o.subject for result in story.seen for o in result.outcomes if o.action is Action.DRAIN}
    config, socket = tmp_path / "htas.yaml", tmp_path / "w.sock"
    config.write_text(CONFIG.replace("workload: day, speed: 600", f"address: {socket}"))
    server = WorldServer(World(), socket, None)
    server.start()
    try:
        told = htas_says("explain", "node", node, "-c", config)
        unknown = htas_says("explain", "node", "nobody", "-c", config)
        past = htas_says("history", "--node", node, "-c", config)
    finally:
        server.stop()
    first, *decided = told.stdout.splitlines()
    assert first == f"node {node}: there is none now; what was decided about it:"
    assert [line.split()[1].rstrip(":") for line in decided] == ["launch", "drain", "delete"]
    assert all(re.match(r"2026-\d\d-\d\dT", line) for line in decided)
    assert (unknown.exit_code, "there is none" in unknown.stderr) == (2, True)
    assert (past.exit_code, "deprovisioning" in past.stdout) == (0, True)


def test_the_demo_prints_plain_lines_without_a_terminal() -> None:
    result = htas_says("demo", "--hours", "0.5", "--seconds", "0")
    assert result.exit_code == 0, result.stderr
    assert "Summary" in result.stdout
    assert "alone, the cheapest single flavour: " in result.stdout
    assert "HTAS spends " in result.stdout
    assert "0 lost" in result.stdout


def test_a_sandbox_replaces_no_file_and_no_living_world(files: tuple[Path, Path], tmp_path: Path) -> None:
    result = htas_says("sandbox", "-c", files[0], "--socket", files[0])
    assert (result.exit_code, "is no socket" in result.stderr) == (1, True)
    assert files[0].read_text() == CONFIG
    server = WorldServer(World(), tmp_path / "w.sock", None)
    server.start()
    result = htas_says("sandbox", "-c", files[0], "--socket", tmp_path / "w.sock")
    server.stop()
    assert (result.exit_code, "listens there already" in result.stderr) == (1, True)


def test_a_journal_of_an_earlier_sandbox_is_refused(files: tuple[Path, Path]) -> None:
    assert htas_says("run", "-c", files[0], "--for", "5").exit_code == 0  # on busy cores the first cycle takes a while
    result = htas_says("run", "-c", files[0], "--for", "2")
    assert (result.exit_code, "journal of an earlier sandbox" in " ".join(result.stderr.split())) == (1, True)


MISTAKEN = [
    pytest.param("batch-1", "annotations", "htas.io/runtime", "soon", id="no duration"),
    pytest.param("batch-1", "annotations", "htas.io/runtime", "9" * 400, id="a run without end"),
    pytest.param("web-1", "annotations", "htas.io/qos", "50%", id="a share in per cent"),
    pytest.param("web-1", "annotations", "htas.io/migrate", "True", id="a capital letter"),
    pytest.param("fixed-1", "labels", "htas.io/tier", "Edge", id="no tier"),
]


@pytest.mark.parametrize(("name", "place", "key", "value"), MISTAKEN)
def test_one_mark_does_not_stop_planning(files: tuple[Path, Path], name: str, place: str, key: str, value: str) -> None:
    """It is told on stderr, and a value is assumed."""
    objects = everything()
    for item in objects:
        if item["metadata"]["name"] == name:
            item["metadata"].setdefault(place, {})[key] = value
    files[1].write_text(json.dumps({"kind": "List", "items": objects}))
    for words in (("plan",), ("explain", "pod", "web-1")):
        result = htas_says(*words, "-c", files[0], "--from", files[1])
        assert result.exit_code == 0, result.stderr
        assert f"metadata.{place}[{key}]: " in result.stderr


def test_a_run_of_ages_can_be_counted(files: tuple[Path, Path]) -> None:
    objects = everything()
    for item in objects:
        if item["metadata"]["name"] == "batch-1":
            item["metadata"]["annotations"] = {"htas.io/runtime": "99999999999999999999h"}
    files[1].write_text(json.dumps({"kind": "List", "items": objects}))
    assert {item["pod"] for item in plan_json(*files)["unplaced"]} >= {"default/huge"}


@pytest.mark.parametrize("text", ["{}", "[]", '{"kind": "List", "items": []}'])
def test_a_dump_of_nothing_is_no_success(files: tuple[Path, Path], text: str) -> None:
    files[1].write_text(text)
    assert htas_says("plan", "-c", files[0], "--from", files[1]).exit_code == 2


def test_without_a_dump_or_a_world_there_is_nothing_to_plan_for(files: tuple[Path, Path]) -> None:
    result = htas_says("plan", "-c", files[0])
    assert (result.exit_code, "--from" in result.stderr) == (2, True)


@pytest.mark.parametrize("text", ["a: \x00", "? [a, b]\n: c", "!!timestamp foo", "[" * 3000])
def test_broken_yaml_is_told(files: tuple[Path, Path], text: str) -> None:
    files[0].write_text(text)
    result = htas_says("check", "-c", files[0])
    assert result.exit_code == 2, result.exception


def test_an_empty_object_is_no_dump(files: tuple[Path, Path]) -> None:
    files[1].write_text("{}")
    result = htas_says("plan", "-c", files[0], "--from", files[1])
    assert (result.exit_code, "holds an empty object {}; write it with: kubectl get" in result.stderr) == (2, True)


@pytest.mark.parametrize("module", ["htas", "htas.cli.main"])
def test_it_runs_as_a_module(module: str) -> None:
    ended = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, f"htas {htas.__version__}\n"), ended.stderr


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        pytest.param((), "--all, --keep and --orphans", id="neither to go nor to stay"),
        pytest.param(("--all", "--keep"), "--all, --keep and --orphans", id="both"),
        pytest.param(("--all", "--orphans"), "--keep and --orphans", id="all, and the orphans alone"),
        pytest.param(
            ("--all", "--yes", "--cluster", "old"), "--orphans alone", id="another cluster's, without orphans"
        ),
        pytest.param(("--all", "--yes", "node-1"), "--orphans alone", id="one by its name, without orphans"),
        pytest.param(("--orphans", "--yes"), "is the sandbox", id="orphans of a world that ends with its machines"),
        pytest.param(("--all", "--yes", "--timeout", "15"), "--timeout", id="a time without a unit"),
        pytest.param(("--all",), "--yes", id="nobody there to be asked"),
        pytest.param(("--keep", "--yes"), "is the sandbox", id="a world that ends with its machines"),
    ],
)
def test_handing_back_is_refused_before_anything_is_touched(
    options: tuple[str, ...], complaint: str, files: tuple[Path, Path]
) -> None:
    result = htas_says("handback", "--config", files[0], *options)
    assert result.exit_code == 2, result.stderr
    assert complaint in result.stderr


def test_adopting_is_refused_before_anything_is_touched(files: tuple[Path, Path]) -> None:
    result = htas_says("adopt", "--config", files[0], "--group", "none", "--yes")
    assert (result.exit_code, "is the sandbox" in result.stderr) == (2, True)
