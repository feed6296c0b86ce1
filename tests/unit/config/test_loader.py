from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from htas.config.loader import ConfigurationError, load_catalogue, load_configuration
from htas.config.settings import Configuration
from htas.model.policy import CleaningRules, Cycles, NodeGroup, Policy, RunLengths, Timeouts

SHIPPED = Path(__file__).parents[3] / "config"

GOOD = """
apiVersion: htas.io/v1alpha1
kind: HTASConfiguration
cluster: test
flavours: {flavours: [{name: small, cpu: 1, memory: 1Gi, pricePerHour: "0.1"}]}
nodeGroups: [{name: any}]
"""


def problems(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "htas.yaml"
    file.write_text(dedent(text))
    with pytest.raises(ConfigurationError) as raised:
        load_configuration(file)
    return [line.replace(f"{tmp_path}/", "") for line in str(raised.value).splitlines()]


def without(key: str, replacement: str = "") -> str:
    lines = [line for line in GOOD.strip().splitlines() if not line.startswith(f"{key}:")]
    return "\n".join([*lines, replacement])


@pytest.mark.parametrize("name", ["htas.yaml", "paper.yaml"])
def test_shipped_configurations_load(name: str) -> None:
    assert load_configuration(SHIPPED / name).policy.groups


def test_shipped_catalogues_load() -> None:
    assert len(load_catalogue(SHIPPED / "flavours/nectar.yaml").flavours) == 6
    assert len(load_catalogue(SHIPPED / "flavours/openb.yaml").flavours) == 27


def test_defaults_are_the_models(tmp_path: Path) -> None:
    (tmp_path / "htas.yaml").write_text(GOOD)
    policy = load_configuration(tmp_path / "htas.yaml").policy
    bare = Policy("test", policy.catalogue, (NodeGroup("any"),))
    assert policy == bare
    assert (policy.cycles, policy.timeouts, policy.run_lengths) == (Cycles(), Timeouts(), RunLengths())
    assert policy.groups[0].cleaning == CleaningRules()


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            without("cluster"), "htas.yaml: cluster: missing; this key is required", id="a key that is required"
        ),
        pytest.param(
            GOOD + "nodeGroup: []", "htas.yaml: nodeGroup: unknown key; did you mean nodeGroups?", id="an unknown key"
        ),
        pytest.param(
            GOOD + "cycles: {scheduling: 20}",
            "htas.yaml: cycles.scheduling: '20' is not a duration; write a number with ms, s, m, h or d, such as 20s"
            " or 1h30m",
            id="a bare number for a duration",
        ),
        pytest.param(
            GOOD.replace("1Gi", "1GB"),
            "htas.yaml: flavours.flavours[0].memory: '1GB' is not a quantity",
            id="a bad quantity",
        ),
        pytest.param(
            GOOD.replace('"0.1"', "-0.1"), "htas.yaml: flavours.flavours[0].pricePerHour: '-0.1' is negative", id="-0.1"
        ),
        pytest.param(
            GOOD.replace('"0.1"', ".nan"), "flavours[0].pricePerHour: '.nan' is not a decimal number", id="NaN in YAML"
        ),
        pytest.param(GOOD.replace('"0.1"', "NaN"), "flavours[0].pricePerHour: 'NaN' is not a finite", id="NaN"),
        pytest.param(
            without(
                "flavours",
                "flavours: {flavours: [{name: a, cpu: 1, memory: 1Gi, pricePerHour: 1}, "
                "{name: a, cpu: 2, memory: 1Gi, pricePerHour: 2}]}",
            ),
            "htas.yaml: flavours.flavours: a is defined more than once",
            id="two flavours of one name",
        ),
        pytest.param(
            without("nodeGroups", "nodeGroups: [{name: a}, {name: a}]"),
            "htas.yaml: nodeGroups: 2 groups are named a",
            id="two groups of one name",
        ),
        pytest.param(
            without("nodeGroups", "nodeGroups: [{name: a, flavours: [smal]}]"),
            "htas.yaml: nodeGroups[0].flavours: 'smal' matches no flavour of the price file; did you mean small?",
            id="a pattern without flavours",
        ),
        pytest.param(
            without("nodeGroups", 'nodeGroups: [{name: a, maxPricePerHour: "0.05"}]'),
            "htas.yaml: nodeGroups[0]: no flavour of group a fits within these limits",
            id="no flavour within the limits",
        ),
        pytest.param(
            without("nodeGroups", "nodeGroups: [{name: a, minNodes: 3, maxNodes: 2}]"),
            "htas.yaml: nodeGroups[0]: minNodes (3) is greater than maxNodes (2)",
            id="sizes that cross",
        ),
        pytest.param(
            without("nodeGroups", "nodeGroups: [{name: a, cleaning: {utilizationThreshold: 1.5}}]"),
            "htas.yaml: nodeGroups[0].cleaning.utilizationThreshold: input should be less than or equal to 1",
            id="a threshold above one",
        ),
        pytest.param(
            without("nodeGroups", "nodeGroups: [{name: a, autoscaling: {weights: {cpu: 0, memory: 0}}}]"),
            "htas.yaml: nodeGroups[0].autoscaling.weights: cpu and memory weigh nothing",
            id="no weight",
        ),
        pytest.param(
            GOOD + "provider: {openstack: {cloud: x}}",
            "htas.yaml: provider.openstack: provider openstack is not available in this release",
            id="a provider of a later release",
        ),
        pytest.param(
            GOOD + "cluster: other", "htas.yaml:7: malformed YAML: key 'cluster' is written twice", id="twice"
        ),
        pytest.param("- a list", "htas.yaml: is empty or no mapping of keys to values", id="a list"),
        pytest.param(
            without("flavours", "flavours: nowhere.yaml"),
            "nowhere.yaml: cannot be read: No such file or directory",
            id="no price file",
        ),
    ],
)
def test_each_mistake_has_its_place(tmp_path: Path, text: str, want: str) -> None:
    assert any(want in line for line in problems(tmp_path, text))


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text("flavours: [{name: a, cpu: 0, memory: x, pricePerHour: free}]")
    text = without("flavours", "flavours: prices.yaml\ncluster2: x\ncycles: {cleaning: soon}\n")
    told = problems(tmp_path, text)
    places = [line.split(": ")[0] + ": " + line.split(": ")[1] for line in told]
    assert places == [
        "htas.yaml: cycles.cleaning",
        "htas.yaml: cluster2",
        "prices.yaml: flavours[0].cpu",
        "prices.yaml: flavours[0].memory",
        "prices.yaml: flavours[0].pricePerHour",
    ]


def test_prices_are_taken_as_written(tmp_path: Path) -> None:
    (tmp_path / "htas.yaml").write_text(GOOD.replace('"0.1"', "0.100000001"))
    assert load_configuration(tmp_path / "htas.yaml").policy.catalogue.flavours[0].nanos_per_hour == 100_000_001


def keys_of(model: type[BaseModel]) -> set[str]:
    """Every key of the settings tree, except those of the price file."""
    schema = model.model_json_schema()
    return {key for part in [schema, *schema.get("$defs", {}).values()] for key in part.get("properties", {})}


def written(node: Any) -> set[str]:
    if isinstance(node, dict):
        return set(node) | {key for value in node.values() for key in written(value)}
    if isinstance(node, list):
        return {key for value in node for key in written(value)}
    return set()


def test_the_shipped_file_lists_every_key() -> None:
    shown = written(yaml.safe_load((SHIPPED / "htas.yaml").read_text()))
    in_comments = {"key", "value", "effect"}  # of a taint
    assert keys_of(Configuration) - shown - in_comments == set()
