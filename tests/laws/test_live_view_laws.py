"""However it got there: a live view says what a view made at once of the same objects says."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from htas.adapters.kubernetes.dump import read_dump
from htas.adapters.kubernetes.live import LiveView
from htas.adapters.kubernetes.resources import RESOURCES
from htas.model.snapshot import ClusterView
from tests.unit.adapters.kubernetes.manifests import manifest, node, pod

Json = dict[str, Any]
BY_KIND = {resource.kind: resource for resource in RESOURCES}


def node_of(i: int, variant: int) -> Json:
    spec = [
        {},
        {"unschedulable": True},
        {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        {"taints": [{"key": "k", "effect": "No"}]},
    ]
    ready = [{"type": "Ready", "status": "True" if variant % 2 else "False"}]
    return node(f"n{i}", {"uid": f"n{i}"}, spec[variant], allocatable={"cpu": "4"}, conditions=ready)


def pod_of(i: int, variant: int) -> Json:
    owner = [{"kind": "ReplicaSet", "name": f"r{i % 2}", "uid": "r", "controller": True}]
    bound = {"nodeName": f"n{i}"} if variant == 1 else {}
    annotations = {"htas.io/runtime": "soon"} if variant == 3 else {}
    meta = {"uid": f"p{i}-{variant // 2}", "namespace": "default", "ownerReferences": owner, "annotations": annotations}
    made = pod(f"p{i}", meta, schedulerName="htas", **bound)
    if variant == 2:
        made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "a lot"
    return made


def replica_set(i: int, variant: int) -> Json:
    return manifest("ReplicaSet", f"r{i % 2}", {"uid": "r", "namespace": "default"}, spec={"replicas": variant + 1})


def budget(i: int, variant: int) -> Json:
    return manifest(
        "PodDisruptionBudget",
        f"b{i}",
        {"namespace": "default"},
        spec={"selector": {}},
        status={"disruptionsAllowed": variant},
    )


def limits(i: int, variant: int) -> Json:
    return manifest("CSINode", f"n{i}", spec={"drivers": [{"name": "d", "allocatable": {"count": variant + 1}}]})


MAKERS = {"Node": node_of, "Pod": pod_of, "ReplicaSet": replica_set, "PodDisruptionBudget": budget, "CSINode": limits}
STEPS = st.lists(
    st.tuples(
        st.sampled_from(sorted(MAKERS)),
        st.integers(0, 2),
        st.integers(0, 3),
        st.sampled_from(["put", "put", "put", "remove", "list"]),
    ),
    max_size=30,
)


class World:
    """What there is, and a live view that is told of each change in turn."""

    def __init__(self) -> None:
        self.live = LiveView("htas")
        self.objects: dict[tuple[str, str], Json] = {}
        for resource in RESOURCES:
            self.live.end_list(resource, self.live.take_page(resource, []))

    def take(self, kind: str, i: int, variant: int, verb: str) -> None:
        made = MAKERS[kind](i, variant)
        key = kind, made["metadata"]["name"]
        resource = BY_KIND[kind]
        if verb == "list":  # a watch was lost; meanwhile this object went
            self.objects.pop(key, None)
            there = [json.dumps(item).encode() for (k, _), item in self.objects.items() if k == kind]
            self.live.end_list(resource, self.live.take_page(resource, there))
        elif verb == "remove":
            self.objects.pop(key, None)
            self.live.remove(resource, json.dumps(made).encode())
        else:
            self.objects[key] = made
            self.live.put(resource, json.dumps(made).encode())


def plain(view: ClusterView) -> Any:
    """What a view says, whatever the order it was told in."""
    problems = sorted(problem.where.rpartition("dump.json: ")[2] for problem in view.problems)
    sort = sorted
    return (
        sort((msgspec.to_builtins(each) for each in view.nodes), key=lambda each: each["name"]),
        sort((msgspec.to_builtins(each) for each in view.pods), key=lambda each: each["name"]),
        sort((msgspec.to_builtins(each) for each in view.budgets), key=lambda each: each["name"]),
        problems,
    )


@given(STEPS)
def test_it_is_what_a_dump_of_the_same_objects_is(steps: list[tuple[str, int, int, str]]) -> None:
    world = World()
    for step in steps:
        world.take(*step)
    document = {"kind": "List", "items": list(world.objects.values())}
    expected = plain(read_dump(json.dumps(document).encode(), "dump.json"))
    assert plain(world.live.view()) == expected


@given(STEPS)
def test_a_view_once_given_never_changes_and_stays_the_same_while_nothing_happens(
    steps: list[tuple[str, int, int, str]],
) -> None:
    world = World()
    for step in steps:
        world.take(*step)
        view = world.live.view()
        before = msgspec.json.encode(view)
        assert world.live.view() is view
    if steps:
        world.take("Node", 0, 1, "put")
        assert msgspec.json.encode(view) == before
