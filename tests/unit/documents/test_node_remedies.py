"""What the pages say would change that a node is kept: something to do, with the names of who holds it."""

from __future__ import annotations

from typing import Any

import pytest

from htas.documents.node_remedies import OF_RULES, meaning_of_node
from htas.model.pods import Pod
from htas.model.reasons import Blocking, Kept
from tests.builders import NOW, constrained, make_node, make_pod, make_policy, make_snapshot, owned_node, running

ROLE = "node-role.kubernetes.io/control-plane"


def remedy(message: str, *pods: Pod, why: str = Kept.BLOCKED_BY_POD, labels: dict[str, str] | None = None) -> str:
    node = owned_node("a", created_at=NOW - 3600) if labels is None else make_node("a", labels=labels)
    there = [running(pod, "a") for pod in pods]
    return meaning_of_node(why, message, node, there, make_snapshot([node], there), make_policy()).remedy


def service(name: str, **fields: Any) -> Pod:
    return make_pod(name, namespace="shop", **fields)


@pytest.mark.parametrize(
    ("pods", "told"),
    [
        pytest.param(
            [service("web-1"), service("web-2")],
            "shop/web-1 and 1 other (ServiceNotOptedIn): kubectl annotate pod web-1 -n shop htas.io/migrate=true",
            id="a service that has not opted in: 'Explain the node', said the page that explains it",
        ),
        pytest.param(
            [service("db", disruption={"htas.io/migrate": "true", "karpenter.sh/do-not-disrupt": "true"})],
            "shop/db (DoNotDisrupt): kubectl annotate pod db -n shop karpenter.sh/do-not-disrupt-,",
            id="the annotation that it has, and no other",
        ),
        pytest.param(
            [service("odd", disruption={"htas.io/migrate": "true"}, constraints=constrained(unsupported=("a claim",)))],
            "nothing while it requests a claim",
            id="what no annotation would help",
        ),
    ],
)
def test_who_holds_a_node_is_named_with_what_to_do(pods: list[Pod], told: str) -> None:
    assert told in remedy("ServiceNotOptedIn: …", *pods)


def test_the_rule_that_the_plan_tells_comes_first() -> None:
    pods = [service("a", disruption={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}), service("b")]
    assert remedy("ServiceNotOptedIn: shop/b is", *pods).startswith("shop/b and 1 other (ServiceNotOptedIn)")
    assert remedy("NotSafeToEvictAnnotation: shop/a …", *pods).startswith("shop/a (NotSafeToEvictAnnotation)")


def test_a_budget_that_allows_some_but_not_all_of_a_node_is_spoken_of() -> None:
    pod = service("web", disruption={"htas.io/migrate": "true"})
    told = remedy("NotEnoughPdb: budget shop/web allows 1 more disruption (all 2 pods of the node have to move)", pod)
    assert told == "a disruption budget that allows so many at once, which often takes one replica more."


def test_a_control_plane_is_neither_replaced_nor_adopted() -> None:
    assert remedy("it is of the control plane", why=Kept.NOT_AUTOSCALED, labels={ROLE: ""}) == ""
    assert "adopt it" in remedy("", why=Kept.NOT_AUTOSCALED, labels={})


@pytest.mark.parametrize("why", ["Leaving", Kept.NEEDED])
def test_what_leaves_or_is_needed_has_a_remedy_too(why: str) -> None:
    assert remedy("", why=why)
    assert "NODE" not in remedy("", why=why)


@pytest.mark.parametrize("rule", list(Blocking))
def test_every_rule_of_pods_has_a_remedy(rule: Blocking) -> None:
    assert OF_RULES[rule]
