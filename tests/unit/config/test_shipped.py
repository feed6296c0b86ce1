"""The files in config/: they load, and what they say of the settings is so."""

import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from htas.config.catalogue import CatalogueSetting, TaintSetting
from htas.config.document import Document, Steps, key_text, read_document
from htas.config.loader import load_catalogue, load_configuration
from htas.config.problems import section_at
from htas.config.settings import Configuration
from htas.model.money import NANOS
from htas.model.moves import MigrationMethod
from tests.unit.config.files import GOOD, SHIPPED
from tools.bench.defaults import in_sandbox, sandboxed

GPU_PRICES = {
    "P100": "0.45",
    "T4": "0.35",
    "V100M16": "0.90",
    "V100M32": "1.20",
    "G2": "0.80",
    "G3": "1.60",
    "A10": "0.70",
}


@pytest.mark.parametrize("name", ["htas.yaml", "paper.yaml", "kwok.yaml", "openstack.yaml", "cassandra.yaml"])
def test_configurations_load(name: str) -> None:
    assert [group.workload.value for group in load_configuration(SHIPPED / name).policy.groups] == ["service", "batch"]


def test_the_papers_parameters() -> None:
    policy = load_configuration(SHIPPED / "paper.yaml").policy
    services, batch = policy.groups
    assert (policy.cycles.scheduling_s, policy.cycles.autoscaling_s, policy.cycles.batch_max_s) == (20, 300, 0)
    assert batch.cleaning.utilization_threshold == 0.5
    assert batch.cleaning.queue_empty_for_s == 0  # not the paper's example of five minutes: told in the file's head
    assert (batch.cleaning.migration, services.cleaning.enabled) == (MigrationMethod.CHECKPOINT, False)
    assert (services.min_nodes, batch.min_nodes) == (1, 1)
    assert policy.look_ahead_s == 0  # what waits is bought for, by the next cycle
    assert policy.max_wait_for_capacity_s is None  # but for what bin 0 will have room for
    assert policy.migration.attempts == 3


def test_the_papers_prices() -> None:
    catalogue = load_catalogue(SHIPPED / "flavours/nectar.yaml")
    assert [
        (f.name, f.capacity.cpu_m // 1000, f.capacity.memory_bytes >> 30, f.nanos_per_hour) for f in catalogue.flavours
    ] == [
        ("t3.xsmall", 1, 1, 19_800_000),
        ("m3.xsmall", 1, 2, 34_400_000),
        ("m3.small", 2, 4, 68_600_000),
        ("m1.medium", 2, 8, 137_100_000),
        ("m1.large", 4, 16, 274_600_000),
        ("m1.xlarge", 8, 32, 547_900_000),
    ]
    assert (catalogue.billing.granularity_s, catalogue.billing.minimum_s) == (60, 60)


def test_the_traces_prices_follow_the_formula_in_their_file() -> None:
    header = (SHIPPED / "flavours/openb.yaml").read_text().partition("currency:")[0]
    assert "THE PRICES ARE OURS" in header
    assert all(f"{model} {price}" in header for model, price in GPU_PRICES.items())
    flavours = load_catalogue(SHIPPED / "flavours/openb.yaml").flavours
    assert len(flavours) == 27
    for flavour in flavours:
        price = Decimal("0.02") * flavour.capacity.cpu_m / 1000
        price += Decimal("0.0025") * (flavour.capacity.memory_bytes >> 30)
        gpus = flavour.capacity.amount("alibabacloud.com/gpu-milli") // 1000
        if gpus:
            price += gpus * Decimal(GPU_PRICES[flavour.labels["alibabacloud.com/gpu-card-model"]])
        assert flavour.nanos_per_hour == price * NANOS, flavour.name


def leaves(model: type[BaseModel], base: Steps = ()) -> Iterator[tuple[Steps, Any]]:
    """Every key of the settings tree that holds no further keys, with its default; lists of sections by their first."""
    for name, field in model.model_fields.items():
        steps = (*base, field.alias or name)
        section = section_at(model, (field.alias or name,))
        if steps == ("nodeGroups",):
            assert section is not None
            yield from leaves(section, (*steps, 0))
        elif section is None or steps[-1] in (
            "taints",
            "startupTaints",
            "resources",
            "shape",
            "topology",
            "namespaces",
        ):
            yield steps, field.get_default(call_default_factory=True)
        else:
            yield from leaves(section, steps)


def default_of(text: str) -> str | None:
    """What a comment says the default is: `default: any; …`, or `required`."""
    comment = text.partition(" # ")[2]
    match = re.match(r"default: ([^;( ]+)", comment)
    return match.group(1) if match else ("required" if comment.startswith("required") else None)


@pytest.mark.parametrize(
    ("steps", "default"), [pytest.param(*leaf, id=key_text(leaf[0])) for leaf in leaves(Configuration)]
)
def test_the_shipped_file_lists_every_key_with_its_default(steps: Steps, default: Any) -> None:
    has_a_file = steps[0] in ("provider", "store") and steps[1] not in ("sandbox", "sqlite")
    path = SHIPPED / (f"{steps[1]}.yaml" if has_a_file else "htas.yaml")
    document, problems = read_document(path)
    assert isinstance(document, Document)
    assert not problems
    assert steps[-1] in parent_of(document, steps), f"not in {path.name}"
    line = path.read_text().splitlines()[
        int(re.search(r":(\d+)", document.place(steps).removeprefix(str(path)))[1]) - 1
    ]  # type: ignore[index] # every place has a line
    written = settings_value(Configuration.model_validate(document.raw), steps)
    if default is PydanticUndefined:
        assert default_of(line) == "required" or steps[-1] in ("apiVersion", "kind")
    elif written != default:
        assert default_of(line) == {None: "null", (): "none"}.get(default, str(default)), line
    else:
        assert default_of(line) is None, line


def parent_of(document: Document, steps: Steps) -> dict[str, Any]:
    found = document.at(steps[:-1]) if len(steps) > 1 else document.raw
    assert isinstance(found, dict), f"{key_text(steps[:-1])} is not in htas.yaml"
    return found


def settings_value(settings: Any, steps: Steps) -> Any:
    for step in steps:
        if isinstance(step, int):
            settings = settings[step]
        else:
            names = {field.alias or name: name for name, field in type(settings).model_fields.items()}
            settings = getattr(settings, names[step])
    return settings


def sections(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield model
    for name, field in model.model_fields.items():
        inner = section_at(model, (field.alias or name,))
        if inner is not None:
            yield from sections(inner)


@pytest.mark.parametrize(
    "section", sorted({*sections(Configuration), *sections(CatalogueSetting)}, key=lambda s: s.__name__)
)
def test_every_key_is_described(section: type[BaseModel]) -> None:
    assert section.__doc__
    for name, field in section.model_fields.items():
        assert field.description is not None, name
        assert field.description.endswith(".") or ";" in field.description, name


def test_the_example_of_a_taint_is_one() -> None:
    text = (SHIPPED / "htas.yaml").read_text()
    example = re.search(r"taints: \[\] +# \{key: (\S+), value: \"\", effect: (\w+)\}", text)
    assert example is not None
    assert TaintSetting.model_validate({"key": example[1], "value": "", "effect": example[2]})


@pytest.mark.parametrize("name", ["openstack.yaml", "kwok.yaml", "cassandra.yaml", "chart"])
def test_every_shipped_configuration_decides_alike(name: str) -> None:
    """What was measured with `htas.yaml` is what people get who begin with another one, prices and limits aside."""
    assert sandboxed(name) == sandboxed("htas.yaml")


def test_the_reference_decides_by_the_defaults_alone() -> None:
    least = "{apiVersion: htas.io/v1alpha1, kind: HTASConfiguration, cluster: main, nodeGroups: [{name: services, "
    least += "workload: service}, {name: batch, workload: batch}]}"
    assert in_sandbox(least) == sandboxed("htas.yaml")


def test_the_papers_policy_states_what_it_does_not_take_over() -> None:
    """A default that is changed does not change the paper's experiment."""
    document, _ = read_document(SHIPPED / "paper.yaml")
    assert isinstance(document, Document)
    stated = {"lookAhead", "maxWaitForCapacity", "maxRentalLengthening", "moveInsteadOfLaunch"}
    assert stated <= document.raw.keys()
    assert {"scheduling", "autoscaling", "cleaning", "batchMax"} <= document.raw["cycles"].keys()
    rules = {"utilizationThreshold", "underutilizedFor", "queueEmptyFor", "migration", "emptyRelease", "migrationTime"}
    assert rules <= document.raw["nodeGroups"][1]["cleaning"].keys()


@pytest.mark.parametrize(
    ("provider", "cleaning", "want"),
    [
        pytest.param(
            "sandbox: {}", "{}", (MigrationMethod.CHECKPOINT, 0.7, 60.0, 0.0), id="the sandbox's pods can be moved"
        ),
        pytest.param("kwok: {}", "{}", (MigrationMethod.CHECKPOINT, 0.7, 60.0, 0.0), id="and so can KWOK's"),
        pytest.param(
            "openstack: {image: i, networks: []}", "{}", (MigrationMethod.EVICT, 0.5, 300.0, 300.0), id="real ones"
        ),
        pytest.param("sandbox: {}", "{migration: evict}", (MigrationMethod.EVICT, 0.5, 300.0, 300.0), id="evicted"),
        pytest.param(
            "openstack: {image: i, networks: []}",
            "{migration: command}",
            (MigrationMethod.COMMAND, 0.7, 60.0, 0.0),
            id="real ones with commands that keep progress",
        ),
        pytest.param("sandbox: {}", "{queueEmptyFor: 1m}", (MigrationMethod.CHECKPOINT, 0.7, 60.0, 60.0), id="stated"),
    ],
)
def test_batch_groups_are_cleaned_early_where_moves_repeat_nothing(
    tmp_path: Path, provider: str, cleaning: str, want: tuple[object, ...]
) -> None:
    commands = "migration: {commands: {checkpoint: /c, transfer: /t, restore: /r, abort: /a}}"
    text = GOOD.replace("{name: any}", f"{{name: any, workload: batch, cleaning: {cleaning}}}")
    text += f"provider: {{{provider}}}\n" + (commands if "command" in cleaning else "")
    (tmp_path / "htas.yaml").write_text(text)
    rules = load_configuration(tmp_path / "htas.yaml").policy.groups[0].cleaning
    found = rules.migration, rules.utilization_threshold, rules.underutilized_for_s, rules.queue_empty_for_s
    assert found == want
