from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from htas.config.loader import load_configuration
from htas.config.names import checked_label_value, checked_qualified_name
from htas.config.values import Nanos, Seconds
from htas.model.billing import Billing
from htas.model.constraints import Effect, Taint
from htas.model.packing import Packing, PackingAlgorithm, Scoring, ScoringStrategy
from htas.model.policy import (
    AutoscalingAlgorithm,
    CleaningRules,
    Consolidation,
    Cycles,
    Limits,
    NamespaceLimit,
    NodeGroup,
    Policy,
    RunLengths,
    Timeouts,
    Value,
    Workload,
)
from htas.model.resources import Resources
from htas.model.volumes import TopologyLabel, VolumeRules
from tests.unit.config.files import GOOD, flavour, group, without

DURATION, PRICE = TypeAdapter(Seconds), TypeAdapter(Nanos)


def policy_of(tmp_path: Path, text: str) -> Policy:
    (tmp_path / "htas.yaml").write_text(text)
    return load_configuration(tmp_path / "htas.yaml").policy


def test_defaults_are_the_models(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, GOOD)
    assert policy == Policy("test", policy.catalogue, (NodeGroup("any"),))
    assert (policy.cycles, policy.timeouts, policy.run_lengths) == (Cycles(), Timeouts(), RunLengths())
    assert policy.groups[0].cleaning == CleaningRules()


@pytest.mark.parametrize(
    ("cycles", "idle_s", "longest_s"),
    [
        pytest.param("batchMax: 500ms", 0.5, 0.5, id="who waits for half a second at most waits no second"),
        pytest.param("batchIdle: 15s", 15.0, 15.0, id="nor is 15 s cut to ten"),
        pytest.param("batchMax: 0s", 1.0, 0.0, id="no cycles on events"),
        pytest.param("batchIdle: 2s, batchMax: 3s", 2.0, 3.0, id="both"),
    ],
)
def test_a_window_of_which_one_end_is_stated(tmp_path: Path, cycles: str, idle_s: float, longest_s: float) -> None:
    found = policy_of(tmp_path, GOOD + f"cycles: {{{cycles}}}").cycles
    assert (found.batch_idle_s, found.batch_max_s) == (idle_s, longest_s)


def test_how_run_lengths_are_learned(tmp_path: Path) -> None:
    text = GOOD + "runLengths: {default: 5m, learn: false, quantile: 0.75, minRuns: 5, halfLife: 7.5}"
    assert policy_of(tmp_path, text).run_lengths == RunLengths(300.0, False, 0.75, 5, 7.5)


def test_how_long_work_waits_before_it_is_bought_for(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, GOOD + "maxWaitForCapacity: 90s\nlookAhead: 3m")
    assert (policy.max_wait_for_capacity_s, policy.look_ahead_s) == (90.0, 180.0)


def test_what_restarts_are_worth(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, GOOD + 'value: {restart: "0.01"}')
    assert policy.value == Value(10_000_000)


def test_what_namespaces_may_have(tmp_path: Path) -> None:
    text = 'namespaces: [{names: [a, "b-*"], maxCpu: 2500m, maxPricePerHour: "0.25"}, {names: ["*"], maxCpu: 40}]'
    policy = policy_of(tmp_path, GOOD + text)
    assert policy.namespaces == (NamespaceLimit(("a", "b-*"), 2500, 250_000_000), NamespaceLimit(("*",), 40_000))
    assert [policy.limit_of(name) for name in ("a", "b-1", "c")] == [*policy.namespaces[:1] * 2, policy.namespaces[1]]


def test_what_namespaces_may_pin(tmp_path: Path) -> None:
    text = 'namespaces: [{names: [a], maxPins: 3, maxPinnedPricePerHour: "0.5", pinnedFor: 6h}]'
    (limit,) = policy_of(tmp_path, GOOD + text).namespaces
    assert limit == NamespaceLimit(("a",), None, None, 3, 500_000_000, 21_600.0)
    assert (limit.limits_machines, limit.limits_pins) == (False, True)


def test_how_nodes_of_no_group_are_placed_on(tmp_path: Path) -> None:
    text = GOOD + "scheduling: {algorithm: scored, strategy: LeastAllocated}"
    assert policy_of(tmp_path, GOOD).packing is None
    assert policy_of(tmp_path, text).packing == Packing(
        PackingAlgorithm.SCORED, Scoring(ScoringStrategy.LEAST_ALLOCATED)
    )


def test_what_is_taken_for_granted_of_volumes(tmp_path: Path) -> None:
    topology = "topology: [{key: example.com/zone, zones: {az-1: room-1}, otherwise: room-0}]"
    policy = policy_of(tmp_path, f"{GOOD}volumes: {{{topology}, attachLimits: {{b: 2, a: 25}}}}")
    label = TopologyLabel("example.com/zone", {"az-1": "room-1"}, "room-0")
    assert policy.volumes == VolumeRules((label,), (("a", 25), ("b", 2)))


def test_batch_groups_are_packed_by_time_bins_unless_told_otherwise(tmp_path: Path) -> None:
    batch = policy_of(tmp_path, group("workload: batch")).groups[0]
    assert (batch.workload, batch.packing.algorithm) == (Workload.BATCH, PackingAlgorithm.TIME_BIN_BFD)
    told = policy_of(tmp_path, group("workload: batch, scheduling: {algorithm: bfd}")).groups[0]
    assert told.packing.algorithm is PackingAlgorithm.BFD


def test_a_flavour_in_full(tmp_path: Path) -> None:
    text = flavour(
        "pods: 30, ephemeralStorage: 10Gi, extended: {nvidia.com/gpu: 2, hugepages-2Mi: 4Mi}, zones: [NO, a-1], "
        "reserved: {cpu: 100m, memory: 256Mi}, stock: 3, labels: {example.com/disk: ssd, rank: 1}, "
        "taints: [{key: gpu, effect: NoSchedule}]"
    ).replace("{flavours: [", "{currency: AUD, billing: {granularity: 1h, minimum: 10m}, flavours: [")
    catalogue = policy_of(tmp_path, text).catalogue
    (found,) = catalogue.flavours
    assert found.capacity == Resources(
        1000, 2**30, 10 * 2**30, 30, (("hugepages-2Mi", 4 * 2**20), ("nvidia.com/gpu", 2))
    )
    assert found.reserved == Resources(100, 256 * 2**20)
    assert (found.zones, found.stock) == (("NO", "a-1"), 3)
    assert found.labels == {"example.com/disk": "ssd", "rank": "1"}
    assert found.taints == (Taint("gpu", Effect.NO_SCHEDULE),)
    assert (catalogue.currency, catalogue.billing) == ("AUD", Billing(3600, 600))


def test_a_nodes_fee_is_part_of_its_price(tmp_path: Path) -> None:
    """The file's fee holds for flavours that do not name their own; both are taken exactly."""
    text = GOOD.replace("flavours: {", 'flavours: {billing: {feePerHour: "0.05"}, ', 1)
    small = policy_of(tmp_path, text).catalogue.flavours[0]
    assert (small.nanos_per_hour, small.fee_nanos_per_hour) == (150_000_000, 50_000_000)
    own = policy_of(tmp_path, text.replace('pricePerHour: "0.1"', 'pricePerHour: "0.1", feePerHour: "0.000000001"'))
    assert own.catalogue.flavours[0].nanos_per_hour == 100_000_001


def test_the_mix_is_chosen_by_group(tmp_path: Path) -> None:
    one = policy_of(tmp_path, group("autoscaling: {algorithm: cheapest-mix, budget: 5s, startup: 90s}")).groups[0]
    assert (one.autoscaling, one.mix_budget_s, one.startup_s) == (AutoscalingAlgorithm.CHEAPEST_MIX, 5.0, 90.0)


def test_consolidation_is_off_unless_asked_for(tmp_path: Path) -> None:
    assert not policy_of(tmp_path, GOOD).groups[0].cleaning.consolidation.enabled
    text = group("cleaning: {consolidation: {enabled: true, ratio: 0.25, minSaving: 0.2, after: 1h}}")
    assert policy_of(tmp_path, text).groups[0].cleaning.consolidation == Consolidation(True, 0.25, 0.2, 3600.0)


def test_conditions_that_nodes_are_repaired_for_are_off_unless_they_are_named(tmp_path: Path) -> None:
    assert policy_of(tmp_path, GOOD).groups[0].cleaning.repair_s == ()
    text = group("cleaning: {enabled: false, repair: {}}")
    assert policy_of(tmp_path, text).groups[0].cleaning.repair_s == (), "as a chart's values would have it"
    text = group("cleaning: {repair: {ReadonlyFilesystem: 1h30m, example.com/DiskWorn: 10m}}")
    want = (("ReadonlyFilesystem", 5400.0), ("example.com/DiskWorn", 600.0))
    assert policy_of(tmp_path, text).groups[0].cleaning.repair_s == want


def test_flavours_may_be_a_file_a_mapping_or_a_list(tmp_path: Path) -> None:
    in_place = policy_of(tmp_path, GOOD)
    listed = "[{name: small, cpu: 1, memory: 1Gi, pricePerHour: 0.1}]"
    (tmp_path / "prices.yaml").write_text(f"flavours: {listed}")
    assert policy_of(tmp_path, without("flavours", "flavours: prices.yaml")) == in_place
    assert policy_of(tmp_path, without("flavours", f"flavours: {listed}")) == in_place


def test_limits_are_read_as_kubernetes_and_people_write_them(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, GOOD + 'limits: {maxNodes: 7, maxCpu: 1500m, maxMemory: 2Gi, maxPricePerHour: "3.5"}')
    assert policy.limits == Limits(7, 1500, 2 * 2**30, 3_500_000_000)


@pytest.mark.parametrize("text", [group("maxNodes: 0, maxCpu: 500m"), GOOD + "limits: {maxNodes: 0, maxCpu: 500m}"])
def test_no_nodes_at_all_may_be_asked_for(tmp_path: Path, text: str) -> None:
    assert policy_of(tmp_path, text).groups


def test_anchors_and_merged_mappings_are_understood(tmp_path: Path) -> None:
    groups = "nodeGroups: [&a {name: a, maxNodes: 3, cleaning: {emptyFor: 5m}}, {<<: *a, name: b, maxNodes: 4}]"
    first, second = policy_of(tmp_path, without("nodeGroups", groups)).groups
    assert (second.name, second.limits.max_nodes, second.cleaning) == ("b", 4, first.cleaning)


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    assert policy_of(tmp_path, "\ufeff" + GOOD).cluster == "test"


@pytest.mark.parametrize(
    ("text", "want"),
    [("200ms", 0.2), ("20s", 20.0), ("5m", 300.0), ("1h30m", 5400.0), ("1.5h", 5400.0), ("0s", 0.0), ("1d", 86400.0)],
)
def test_durations(text: str, want: float) -> None:
    assert DURATION.validate_python(text) == want


@settings(max_examples=50, derandomize=True)
@given(st.integers(0, 23), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
def test_a_duration_is_the_sum_of_its_parts(hours: int, minutes: int, seconds: int, millis: int) -> None:
    want = ((hours * 60 + minutes) * 60_000 + seconds * 1000 + millis) / 1000
    assert DURATION.validate_python(f"{hours}h{minutes}m{seconds}s{millis}ms") == want


@settings(max_examples=50, derandomize=True)
@given(st.decimals(0, 1_000_000, places=9))
def test_a_price_is_taken_exactly_as_written(price: Decimal) -> None:
    assert PRICE.validate_python(f"{price:f}") == int(price.scaleb(9))


@pytest.mark.parametrize("key", ["a", "A.b_c-1", "example.com/a", "a.b.c/D", f"{'a' * 63}", f"{'d.' * 126}d/a"])
def test_keys_kubernetes_takes(key: str) -> None:
    assert checked_qualified_name(key) == key


@pytest.mark.parametrize("key", ["", "-a", "a-", "a/b/c", "/a", "a/", "é", f"{'a' * 64}", f"{'d.' * 127}d/a", "a\n"])
def test_keys_kubernetes_refuses(key: str) -> None:
    with pytest.raises(ValueError, match="is no key"):
        checked_qualified_name(key)


@pytest.mark.parametrize("value", ["", "a", "v1.2_3-4", "0"])
def test_label_values_kubernetes_takes(value: str) -> None:
    assert checked_label_value(value) == value
