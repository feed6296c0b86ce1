"""The chart's rights by mode: a daemon that only recommends may read, and write its own lease and status. helm alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.real.harness import Json
from tests.real.test_chart import MOVING, ON_CASSANDRA, ON_OPENSTACK, rendered
from tests.real.test_chart_moves import with_values

READS = {"get", "list", "watch"}
OWN = {
    ("leases", "create", ()),
    ("leases", "get", ("htas-main",)),
    ("leases", "update", ("htas-main",)),
    ("configmaps", "create", ()),
    ("configmaps", "get", ("htas-main-status",)),
    ("configmaps", "patch", ("htas-main-status",)),
}
VALUES: list[Any] = [
    pytest.param({}, id="with KWOK"),
    pytest.param(ON_OPENSTACK, id="machines from OpenStack"),
    pytest.param(MOVING, id="moves by checkpoint"),
    pytest.param(ON_CASSANDRA, id="a store in Cassandra"),
    pytest.param({"handback": {"onUninstall": True}}, id="handing back"),
    pytest.param({"config": {"fallback": {"promises": "as-kube-scheduler"}}}, id="preemption past budgets"),
    pytest.param(
        {"moves": {"agentSecret": "a"}, "config": {"migration": {"registry": {"url": "https://r"}}}}, id="agents"
    ),
]


def granted(items: list[Json], *kinds: str) -> set[tuple[str, str, tuple[str, ...]]]:
    return {
        (resource, verb, tuple(rule.get("resourceNames", ())))
        for item in items
        if item["kind"] in kinds
        for rule in item["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize("values", VALUES)
def test_who_only_recommends_may_read_and_write_lease_and_status(values: Json, helm: Path) -> None:
    items = rendered(helm, with_values(values, config={"mode": "recommend"}))
    assert {verb for _, verb, _ in granted(items, "ClusterRole")} <= READS
    assert granted(items, "Role") == OWN
    roles = [item for item in items if item["kind"] == "Role"]
    assert len(roles) == 1, "none in another namespace"
    assert not {"DaemonSet", "Job", "ValidatingAdmissionPolicy"} & {item["kind"] for item in items}


def test_reviews_of_who_asks_are_its_own_wish(helm: Path) -> None:
    items = rendered(helm, with_values({"http": {"tokenReview": True}}, config={"mode": "recommend"}))
    writes = {each for each in granted(items, "ClusterRole") if each[1] not in READS}
    assert writes == {("tokenreviews", "create", ()), ("subjectaccessreviews", "create", ())}


@pytest.mark.parametrize("values", VALUES)
def test_it_sees_as_much_as_one_that_acts(values: Json, helm: Path) -> None:
    """Else it would recommend by another view than it will act on."""
    acts, recommends = (
        rendered(helm, with_values(values, config={"mode": mode})) for mode in ("automatic", "recommend")
    )
    seen = [
        {each for each in granted(items, "ClusterRole") if each[1] in ("list", "watch")} for items in (acts, recommends)
    ]
    assert seen[0] == seen[1]


def test_who_asks_first_may_do_what_it_must(helm: Path) -> None:
    assert granted(rendered(helm, with_values({}, config={"mode": "approve"})), "ClusterRole", "Role") == granted(
        rendered(helm, {}), "ClusterRole", "Role"
    )
