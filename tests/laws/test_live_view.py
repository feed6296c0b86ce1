"""Every kind in every order: a live view forgets nothing of what is there, and keeps nothing of what is gone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.adapters.kubernetes.dump import read_dump
from htas.adapters.kubernetes.live import LiveView
from htas.adapters.kubernetes.resources import RESOURCES, Resource
from htas.adapters.kubernetes.shelves import Key
from htas.model.snapshot import ClusterView
from tests.unit.adapters.kubernetes.manifests import manifest, node, pod

Json = dict[str, Any]
BY_KIND = {resource.kind: resource for resource in RESOURCES}
SPACES = ("default", "team")
VARIANTS = 4
MALFORMED: Json = {"spec": 7, "value": "much", "provisioner": []}
"""Parts that no kind can be read with; a Namespace has none of them, and is read whatever it says."""


def place(i: int, **meta: Any) -> Json:
    return {"namespace": SPACES[i % 2], **meta}


def a_node(i: int, variant: int) -> Json:
    specs: list[Json] = [
        {},
        {"unschedulable": True},
        {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        {"taints": [{"key": "k", "effect": "Sometimes"}]},  # understood by nobody
    ]
    ready = [{"type": "Ready", "status": "True" if variant % 2 else "False"}]
    return node(f"n{i}", {"uid": f"n{i}"}, specs[variant], allocatable={"cpu": "4"}, conditions=ready)


def a_pod(i: int, variant: int) -> Json:
    """Each variant is another pod of the same name, of another owner; the API server has filled in its priority."""
    owners: list[list[Json]] = [
        [{"kind": "ReplicaSet", "name": "c0", "uid": "r", "controller": True}],
        [{"kind": "Job", "name": "c1", "uid": "j", "controller": True}],
        [{"kind": "StatefulSet", "name": "c0", "uid": "s", "controller": True}, {"kind": "Job", "name": "c0"}],
        [],
    ]
    meta = place(i, uid=f"p{i}-{variant}", ownerReferences=owners[variant])
    meta["annotations"] = {"htas.io/runtime": "soon" if i == 2 else "5m"} if i >= 2 else {}
    made = pod(f"p{i // 2}", meta, schedulerName="htas", priority=7, priorityClassName=f"x{i % 2}")
    match variant:
        case 0:
            made["spec"]["nodeName"] = f"n{i}"
        case 2:
            made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "a lot" if i == 3 else "2"
            made["spec"] |= {"nodeName": "n3"} if i == 3 else {}
        case 3:
            made["status"]["phase"] = "Succeeded" if i % 2 else "Running"
    return made


def a_controller(kind: str) -> Callable[[int, int], Json]:
    def make(i: int, variant: int) -> Json:
        wanted = {"parallelism" if kind == "Job" else "replicas": variant} if variant else {}
        deadline = {"activeDeadlineSeconds": 90 * (variant - 1)} if kind == "Job" and variant else {}
        return manifest(kind, f"c{i // 2}", place(i), spec={**wanted, **deadline})

    return make


def a_budget(i: int, variant: int) -> Json:
    operators = ["In", "Exists", "NotIn", "Perhaps"]
    values = {"values": ["x"]} if variant in (0, 2) else {}
    selector = {"matchExpressions": [{"key": "app", "operator": operators[variant], **values}]}
    status = {"disruptionsAllowed": variant}
    return manifest("PodDisruptionBudget", f"b{i // 2}", place(i), spec={"selector": selector}, status=status)


def limits(i: int, variant: int) -> Json:
    drivers = [{"name": f"d{n}", "allocatable": {"count": variant}, "topologyKeys": [f"k{i}"]} for n in range(variant)]
    return manifest("CSINode", f"n{i}", spec={"drivers": drivers})


def a_volume(i: int, variant: int) -> Json:
    operators = ["In", "Exists", "Gt", "Perhaps"]
    values = {"values": ["1"]} if variant in (0, 2) else {}
    terms = [{"matchExpressions": [{"key": "zone", "operator": operators[variant], **values}]}]
    spec = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    return manifest("PersistentVolume", f"v{i}", spec=spec)


MAKERS: dict[str, Callable[[int, int], Json]] = {
    "Namespace": lambda i, variant: manifest("Namespace", SPACES[i % 2], {"labels": {"v": str(variant)}}),
    "CSINode": limits,
    "Node": a_node,
    "PriorityClass": lambda i, variant: manifest("PriorityClass", f"x{i}", value=variant, globalDefault=variant == 3),
    "StorageClass": lambda i, variant: manifest("StorageClass", f"s{i}", provisioner=f"d{variant}"),
    "PersistentVolume": a_volume,
    "PersistentVolumeClaim": lambda i, variant: manifest(
        "PersistentVolumeClaim", f"m{i // 2}", place(i), spec={"volumeName": f"v{variant}"}
    ),
    "PodDisruptionBudget": a_budget,
    **{kind: a_controller(kind) for kind in ("ReplicationController", "ReplicaSet", "StatefulSet", "Job")},
    "Pod": a_pod,
}
# Half of all steps are of kinds that speak of each other, where order could matter.
KINDS = st.one_of(st.sampled_from(sorted(MAKERS)), st.sampled_from(["Pod", "Job", "ReplicaSet", "Node", "CSINode"]))
NUMBERS = st.integers(0, 3)
Step = tuple[str, str, int, int]


def steps_of(looks: st.SearchStrategy[int]) -> st.SearchStrategy[list[Step]]:
    """Objects that come, change and go; those of a "lost" step do so while a watch is broken, until the next list."""
    verbs = st.sampled_from(["put", "put", "remove", "lost put", "lost remove"])
    return st.lists(st.tuples(verbs, KINDS, NUMBERS, looks), max_size=40)


STEPS = steps_of(st.integers(0, VARIANTS))
Law = settings(max_examples=300, deadline=None, derandomize=True)


def made(kind: str, i: int, look: int) -> Json:
    """An object; the last look is one that cannot be read."""
    if look < VARIANTS:
        return MAKERS[kind](i, look)
    whole = MAKERS[kind](i, 0)
    bound = {"spec": {"nodeName": f"n{i}", "containers": 7}} if kind == "Pod" and i % 2 else {}
    return {"kind": kind, "metadata": whole["metadata"], **MALFORMED, **bound}


class World:
    """What there is, and a live view that is told of each change in turn."""

    def __init__(self) -> None:
        self.live = LiveView("htas")
        self.objects: dict[tuple[str, Key], Json] = {}
        for resource in RESOURCES:
            self.relist(resource, page_size=1)

    def take(self, step: Step) -> None:
        verb, kind, i, look = step
        item, resource = made(kind, i, look), BY_KIND[kind]
        key = kind, (item["metadata"].get("namespace", ""), item["metadata"]["name"])
        if verb.endswith("put"):
            self.objects[key] = item
        else:
            self.objects.pop(key, None)
        if verb.startswith("lost"):
            self.relist(resource, page_size=1 + i)
        elif verb == "put":
            self.live.put(resource, encoded(item))
        else:
            self.live.remove(resource, encoded(item))

    def relist(self, resource: Resource, page_size: int) -> None:
        there = [encoded(item) for (kind, _), item in self.objects.items() if kind == resource.kind]
        listed: set[Key] = set()
        for begin in range(0, len(there), page_size):
            listed |= self.live.take_page(resource, there[begin : begin + page_size])
        self.live.end_list(resource, listed)

    def fresh(self) -> LiveView:
        """A live view of a process that has just started."""
        live = LiveView("htas")
        for resource in RESOURCES:
            there = [encoded(item) for (kind, _), item in self.objects.items() if kind == resource.kind]
            live.end_list(resource, live.take_page(resource, there))
        return live


def encoded(item: Json) -> bytes:
    return json.dumps(item).encode()


def plain(view: ClusterView) -> Json:
    """All that a view says of the present, whatever the order it was told in; a dump leads each problem with its name.

    What ended is the past: who came later has not seen it.
    """
    told: Json = msgspec.to_builtins(view)
    del told["ended"]
    told["problems"] = [each | {"where": each["where"].removeprefix("dump.json: ")} for each in told["problems"]]
    for part in (told, told["volumes"]):
        for name, items in part.items():
            if isinstance(items, list | tuple):
                part[name] = sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
    return told


@Law
@given(STEPS)
def test_a_live_view_is_what_a_process_that_starts_now_would_see(steps: list[Step]) -> None:
    world = World()
    for step in steps:
        world.take(step)
    assert plain(world.live.view()) == plain(world.fresh().view())
    assert world.live.missing == ()


@Law
@given(STEPS)
def test_a_live_view_is_what_a_dump_shows(steps: list[Step]) -> None:
    world = World()
    for step in steps:
        world.take(step)
    dump = encoded({"kind": "List", "items": list(world.objects.values())})
    live, dumped = world.live.view(), read_dump(dump, "dump.json")
    assert (live.daemons, dumped.daemons) == ((), None), "a dump without DaemonSets may have left them out"
    assert plain(live) == plain(msgspec.structs.replace(dumped, daemons=()))


@Law
@given(STEPS)
def test_what_is_asked_for_by_name_is_what_the_view_shows(steps: list[Step]) -> None:
    world = World()
    for step in steps:
        world.take(step)
        view = world.live.view()
        assert {each.name: each for each in view.nodes} == {
            name: found for i in range(4) if (found := world.live.node(name := f"n{i}")) is not None
        }
        keys = [(space, f"p{i}") for space in SPACES for i in range(2)]
        assert sorted(each.key for each in view.pods) == sorted(
            found.key for key in keys if (found := world.live.pod(key)) is not None
        )


@Law
@given(steps_of(st.integers(0, 1)))
def test_a_list_that_tells_nothing_new_changes_nothing(steps: list[Step]) -> None:
    """A watch that is lost and taken up again brings no cycle forward by itself; all here can be understood."""
    world = World()
    for step in steps:
        world.take(step)
    before, seen = plain(world.live.view()), world.live.changes
    for resource in RESOURCES:
        world.relist(resource, page_size=2)
    assert plain(world.live.view()) == before
    assert world.live.changes == seen
