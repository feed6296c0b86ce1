"""Services that grow or shrink in What if: as their controllers would have it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.documents.replicas import services_of, with_replicas
from htas.model.pods import Owner, Phase, Pod
from htas.model.snapshot import ClusterView
from tests.builders import NOW, constrained, make_node, make_pod, running


def of(kind: str, name: str, came: float, *, node: str | None = "n", **fields: Any) -> Pod:
    made = make_pod(name, owner=Owner(kind, "db", "u"), created_at=NOW + came, **fields)
    return running(made, node) if node is not None else msgspec.structs.replace(made, phase=Phase.PENDING)


def names(view: ClusterView) -> set[str]:
    return {pod.name for pod in view.pods}


def grown(count: int, *pods: Pod) -> ClusterView:
    view = ClusterView((make_node("n"),), pods)
    (service,) = services_of(view)
    return with_replicas(view, {service: count})


@pytest.mark.parametrize(
    ("pods", "stay"),
    [
        pytest.param(
            [of("ReplicaSet", "old", 0), of("ReplicaSet", "new", 9), of("ReplicaSet", "mid", 5)],
            {"old", "mid"},
            id="the newest goes",
        ),
        pytest.param(
            [of("ReplicaSet", "waits", 0, node=None), of("ReplicaSet", "b", 9), of("ReplicaSet", "c", 5)],
            {"b", "c"},
            id="first what has no node",
        ),
        pytest.param(
            [of("StatefulSet", "db-10", 0), of("StatefulSet", "db-9", 9), of("StatefulSet", "db-2", 5)],
            {"db-2", "db-9"},
            id="of a StatefulSet the highest ordinal, as a number",
        ),
    ],
)
def test_who_goes_is_whom_the_controller_would_delete(pods: list[Pod], stay: set[str]) -> None:
    assert names(grown(2, *pods)) == stay


def test_a_replica_more_of_a_stateful_set_has_volumes_of_its_own() -> None:
    """With those of db-0 five replicas more had no node: a volume that one node alone reaches held them all."""
    claims = constrained(claims=("data-db-0", "shared"))
    view = grown(2, of("StatefulSet", "db-0", 0, constraints=claims))
    (more,) = [pod for pod in view.pods if pod.name != "db-0"]
    assert more.constraints.claims == ("shared",)


def test_of_a_deployment_all_share_their_volume() -> None:
    view = grown(2, of("ReplicaSet", "db-0", 0, constraints=constrained(claims=("data-db-0",))))
    assert [pod.constraints.claims for pod in view.pods] == [("data-db-0",)] * 2


def test_a_rollout_goes_on_with_the_new_template_and_what_ends_is_no_replica() -> None:
    old = of("ReplicaSet", "old", 0, cpu="1", deleted_at=NOW)
    new = of("ReplicaSet", "new", 9, cpu="2")
    view = grown(2, old, new)
    (more,) = [pod for pod in view.pods if pod.name not in ("old", "new")]
    assert (more.requests.cpu_m, more.is_terminating, more.node) == (2000, False, None)
