"""Which pods are a DaemonSet's, whoever came first, and what a node will run of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.adapters.kubernetes.daemon_sets import NONE_SUCH
from htas.adapters.kubernetes.dump_view import ViewBuilder
from htas.adapters.kubernetes.live import LiveView
from htas.adapters.kubernetes.resources import RESOURCES
from htas.model.constraints import Effect, Toleration
from htas.model.snapshot import ClusterView

Json = dict[str, Any]
RESOURCE = {resource.kind: resource for resource in RESOURCES}


def daemon_set(uid: str = "real", cpu: str = "100m", **spec: Any) -> Json:
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    template = {"metadata": {"labels": {"app": "logs"}}, "spec": {"containers": containers, **spec}}
    meta = {"name": "logs", "namespace": "default", "uid": uid}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta, "spec": {"template": template}}


def pod(uid: str = "real", version: str = "apps/v1", name: str = "logs-1") -> Json:
    owner = {"apiVersion": version, "kind": "DaemonSet", "name": "logs", "uid": uid, "controller": True}
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [{"name": "c"}]}}


def live(*objects: Json) -> LiveView:
    view = LiveView("htas")
    for item in objects:
        view.put(RESOURCE[item["kind"]], msgspec.json.encode(item))
    return view


def dump(*objects: Json) -> ClusterView:
    view = ViewBuilder()
    for item in objects:
        view.add(msgspec.json.encode(item), "here")
    return view.view()


def owners(view: ClusterView) -> list[str]:
    return [each.owner.kind for each in view.pods if each.owner is not None]


@pytest.mark.parametrize(
    ("objects", "kind"),
    [
        pytest.param([daemon_set(), pod()], "DaemonSet", id="the DaemonSet first"),
        pytest.param([pod(), daemon_set()], "DaemonSet", id="its pod first"),
        pytest.param([daemon_set(), pod("another")], NONE_SUCH, id="a uid of no DaemonSet"),
        pytest.param([pod("real"), daemon_set("another")], NONE_SUCH, id="of one that was there before"),
        pytest.param([daemon_set(), pod(version="apps/v1beta2")], "DaemonSet", id="an older version of the group"),
        pytest.param([daemon_set(), pod(version="apps.kruise.io/v1alpha1")], "DaemonSet.apps.kruise.io", id="OpenKruise's, of the same name"),
        pytest.param([pod(version="apps.kruise.io/v1alpha1"), daemon_set()], "DaemonSet.apps.kruise.io", id="and its pod first"),
        pytest.param([pod()], NONE_SUCH, id="none at all"),
    ],
)  # fmt: skip
def test_an_owner_is_believed_where_there_is_such_a_daemon_set(objects: list[Json], kind: str) -> None:
    assert owners(live(*objects).view()) == [kind]


def test_a_daemon_set_that_goes_leaves_pods_of_nobody_and_has_them_again_when_it_is_back() -> None:
    view = live(daemon_set(), pod())
    view.remove(RESOURCE["DaemonSet"], msgspec.json.encode(daemon_set()))
    assert (owners(view.view()), view.view().daemons) == ([NONE_SUCH], ())
    view.put(RESOURCE["DaemonSet"], msgspec.json.encode(daemon_set()))
    assert owners(view.view()) == ["DaemonSet"]


def test_a_template_has_the_priority_that_its_class_has_now_whoever_came_first() -> None:
    ours = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "infra"}, "value": 900}
    view = live(daemon_set(priorityClassName="infra"), ours)
    assert [each.priority for each in view.view().daemons or ()] == [900]
    view.put(RESOURCE["PriorityClass"], msgspec.json.encode(ours | {"value": 1000}))
    assert [each.priority for each in view.view().daemons or ()] == [1000]
    view.remove(RESOURCE["PriorityClass"], msgspec.json.encode(ours))
    assert [each.priority for each in view.view().daemons or ()] == [0]
    view.remove(RESOURCE["DaemonSet"], msgspec.json.encode(daemon_set()))
    view.put(RESOURCE["PriorityClass"], msgspec.json.encode(ours))
    assert view.view().daemons == ()


def test_a_template_is_what_a_node_will_run_of_it() -> None:
    (made,) = live(daemon_set(cpu="250m", tolerations=[{"key": "own", "operator": "Exists"}])).view().daemons or ()
    assert (made.requests.cpu_m, made.requests.pods, made.node, dict(made.labels)) == (250, 1, None, {"app": "logs"})
    tolerated = made.constraints.tolerations
    assert Toleration("own", "Exists") in tolerated
    assert Toleration("node.kubernetes.io/unschedulable", "Exists", "", Effect.NO_SCHEDULE) in tolerated


def test_in_a_dump_without_daemon_sets_references_count_and_no_template_is_known() -> None:
    view = dump(pod())
    assert (owners(view), view.daemons) == (["DaemonSet"], None)
    view = dump(pod(), pod("forged", name="logs-2"), daemon_set())
    assert owners(view) == ["DaemonSet", NONE_SUCH]
    assert [each.owner.uid for each in view.daemons or () if each.owner is not None] == ["real"]
