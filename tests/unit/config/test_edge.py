"""The edge tier's settings."""

from pathlib import Path

import pytest

from htas.config.loader import load_configuration
from htas.model.edge import EdgePolicy, Tier
from tests.unit.config.files import GOOD, group, told

MISTAKES = [
    pytest.param(
        GOOD + "edge: {beta: 1}\n",
        "htas.yaml:6 edge.beta: 1 is not below alpha (1); lower it or raise alpha",
        id="more is worth as much as enough",
    ),
    pytest.param(
        GOOD + "edge: {beta: -0.1}\n", "htas.yaml:6 edge.beta: '-0.1' is too small; write at least 0", id="a fine"
    ),
    pytest.param(
        GOOD + "edge: {alpha: 0, beta: 0}\n",
        "htas.yaml:6 edge.alpha: '0' is too small; write more than 0",
        id="nothing is lost below the target",
    ),
    pytest.param(
        GOOD + "edge: {gamma: 9.5}\n",
        "htas.yaml:6 edge.gamma: 9.5 is less than 10 times alpha; raise it to 10 or more",
        id="a target worth little",
    ),
    pytest.param(
        GOOD + "edge: {alpha: 2}\n",
        "htas.yaml:6 edge.gamma: 10 is less than 10 times alpha; raise it to 20 or more",
        id="a default that alpha has outgrown",
    ),
    pytest.param(
        GOOD + "edge: {cloudToEdgeMoves: -1}\n",
        "htas.yaml:6 edge.cloudToEdgeMoves: '-1' is too small; write at least 0",
        id="fewer moves than none",
    ),
    pytest.param(
        GOOD + "edge: {cloudToEdgeMoves: 51}\n",
        "htas.yaml:6 edge.cloudToEdgeMoves: '51' is too great; write at most 50",
        id="all pods at once",
    ),
    pytest.param(
        GOOD + "edge: {reorderMoves: 51}\n",
        "htas.yaml:6 edge.reorderMoves: '51' is too great; write at most 50",
        id="the whole edge rearranged",
    ),
    pytest.param(
        GOOD + "edge: {edgeToCloudMoves: 51}\n",
        "htas.yaml:6 edge.edgeToCloudMoves: '51' is too great; write at most 50",
        id="the whole edge emptied",
    ),
    pytest.param(
        GOOD + "edge: {period: 0s}\n",
        "htas.yaml:6 edge.period: '0s' is too small; write at least 1s",
        id="looks without a pause",
    ),
    pytest.param(
        GOOD + "edge: {period: 999ms}\n",
        "htas.yaml:6 edge.period: '999ms' is too small; write at least 1s",
        id="looks every moment",
    ),
    pytest.param(
        GOOD + "edge: {pricePerHour: cheap}\n",
        "htas.yaml:6 edge.pricePerHour: 'cheap' is not a decimal number; write a price an hour such as \"0.1371\"",
        id="a price that is none",
    ),
    pytest.param(
        group("tier: fog"), "htas.yaml:5 nodeGroups[0].tier: found 'fog'; write edge or cloud", id="a tier in between"
    ),
    pytest.param(
        group("elastic: true"),
        "htas.yaml:5 nodeGroups[0].elastic: has an effect with `tier: edge` alone: other groups are elastic; "
        "write that or remove it",
        id="an elastic cloud",
    ),
]


@pytest.mark.parametrize(
    ("key", "value", "default"),
    [
        ("minNodes", "1", "0"),
        ("maxNodes", "0", "null"),
        ("maxCpu", "8", "null"),
        ("maxMemory", "8Gi", "null"),
        ("maxPricePerHour", "'1'", "null"),
        ("flavours", "[small]", "['*']"),
        ("labels", "{site: shop}", "{}"),
        ("taints", "[{key: site, effect: NoSchedule}]", "[]"),
        ("startupTaints", "[{key: site, effect: NoSchedule}]", "[]"),
        ("autoscaling", "{algorithm: cheapest-mix}", "{algorithm: greedy}"),
    ],
)
def test_what_counts_for_purchases_alone_is_refused_where_nothing_is_bought(
    tmp_path: Path, key: str, value: str, default: str
) -> None:
    assert told(tmp_path, group(f"tier: edge, {key}: {value}")) == [
        f"htas.yaml:5 nodeGroups[0].{key}: nothing is launched for an edge group that is not elastic; "
        "write `elastic: true` or remove it"
    ]
    for sound in (f"tier: edge, {key}: {default}", f"tier: edge, elastic: true, {key}: {value}"):
        (tmp_path / "htas.yaml").write_text(group(sound))
        assert load_configuration(tmp_path / "htas.yaml").policy.groups[0].tier is Tier.EDGE


def test_limits_that_nothing_fits_are_no_mistake_where_nothing_is_bought(tmp_path: Path) -> None:
    (tmp_path / "htas.yaml").write_text(group("tier: edge") + "limits: {maxCpu: 500m}\n")
    assert load_configuration(tmp_path / "htas.yaml").policy.limits.max_cpu_m == 500


@pytest.mark.parametrize(("text", "want"), MISTAKES)
def test_a_mistake_is_told_alone_with_its_place(tmp_path: Path, text: str, want: str) -> None:
    assert told(tmp_path, text) == [want]


def test_without_the_section_the_defaults_are_the_models(tmp_path: Path) -> None:
    (tmp_path / "htas.yaml").write_text(GOOD)
    policy = load_configuration(tmp_path / "htas.yaml").policy
    assert policy.edge == EdgePolicy()
    assert [(each.tier, each.is_elastic) for each in policy.groups] == [(Tier.CLOUD, True)]


def test_what_is_written_is_what_the_planner_gets(tmp_path: Path) -> None:
    section = (
        "edge: {alpha: 2, beta: 0, gamma: 30, cloudToEdgeMoves: 2, reorderMoves: 1, edgeToCloudMoves: 4, period: 30s, "
        "settle: 1m, pricePerHour: '0'}\n"
    )
    (tmp_path / "htas.yaml").write_text(group("tier: edge") + section)
    policy = load_configuration(tmp_path / "htas.yaml").policy
    assert policy.edge == EdgePolicy(2.0, 0.0, 30.0, 2, 1, 4, 30.0, 60.0, 0)
    assert [(each.tier, each.is_elastic) for each in policy.groups] == [(Tier.EDGE, False)]
