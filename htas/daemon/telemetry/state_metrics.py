"""The state of the cluster as metrics, worked out at each scrape from the newest cycle."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from htas.daemon.loops.cycle import CycleResult
from htas.documents.month import Month
from htas.model.holds import HoldReason
from htas.model.money import NANOS
from htas.model.nodes import Node
from htas.model.orphans import OrphanReason
from htas.model.plan import Cost
from htas.model.policy import Limits, Policy
from htas.model.resources import PODS
from htas.model.savings import Savings
from htas.model.snapshot import ClusterSnapshot, ClusterView
from htas.planning.cluster.initialization import registered_nodes
from htas.planning.cluster.machines import learned_allocatable
from htas.planning.namespaces import pins
from htas.planning.place.edge_present import edge_nodes, present
from htas.planning.solvers.edge.search import edge_ratios, node_fragmentation, service_qualities
from htas.ports import HTASError

NO_GROUP = "none"
"""The label of nodes that HTAS did not buy."""


class StateCollector(Collector):
    """Says nothing before the first cycle; a stand-by never does. Policy and costs are asked for at each scrape."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.last: CycleResult | None = None
        self.policy: Callable[[], Policy] | None = None
        self.spent_nano_seconds: Callable[[float], int] | None = None
        self.month: Callable[[float], Month] | None = None
        self.budget_nanos: Callable[[], int | None] = lambda: None
        self.awaits: Callable[[], int] | None = None
        self._spent_most = 0
        registry.register(self)

    def describe(self) -> Iterable[Metric]:
        return []  # what it will say depends on the cycle: asked at registration, it would be asked in vain

    def collect(self) -> Iterator[Metric]:
        result = self.last
        if result is None:
            return
        yield from _work(result)
        yield from _machines(result)
        yield from _room(result)
        yield from _money(result.plan.cost)
        yield GaugeMetricFamily(
            "htas_bills_unconfirmed",
            "Bills of machines that are gone whose end the cloud's usage has not confirmed.",
            value=float(result.unconfirmed_bills),
        )
        if result.savings is not None:
            yield from _recommended(result.savings, result.plan.cost.currency)
        if self.policy is not None:
            yield from _limits(self.policy())
            yield from _initialized(result.snapshot, self.policy())
            yield from _edge(result.snapshot.cluster, self.policy())
            yield from _pinned(result, self.policy())
        if self.awaits is not None:
            yield GaugeMetricFamily(
                "htas_approvals_pending", "Disruptions pending approval.", value=float(self.awaits())
            )
        with suppress(HTASError):  # bills that cannot be read now: the rest is worth telling
            yield from self._spent(result)
            yield from self._budget(result)

    def _spent(self, result: CycleResult) -> Iterator[Metric]:
        if self.spent_nano_seconds is not None:
            # A bill may turn out to have ended earlier; a counter that went back would count as begun anew.
            self._spent_most = max(self._spent_most, self.spent_nano_seconds(result.snapshot.taken_at))
            spent = self._spent_most / (NANOS * 3600)
            labels = ["currency"]
            total = CounterMetricFamily("htas_cost", "Total cost of all machines so far.", labels=labels)
            total.add_metric([result.plan.cost.currency], spent)
            yield total

    def _budget(self, result: CycleResult) -> Iterator[Metric]:
        """The month's cost compared with `monthlyBudget`; nothing without one."""
        budget = self.budget_nanos()
        if self.month is None or budget is None:
            return
        month, currency = self.month(result.snapshot.taken_at), result.plan.cost.currency
        parts = [((currency, "so-far"), month.so_far), ((currency, "forecast"), month.forecast)]
        yield _gauge(
            "htas_month_cost",
            "Cost of all machines in this month (UTC), where monthlyBudget is set.",
            ["currency", "part"],
            [(labels, amount / (NANOS * 3600)) for labels, amount in parts],
        )
        yield _gauge(
            "htas_month_budget", "The configured monthlyBudget.", ["currency"], [((currency,), budget / NANOS)]
        )


def _gauge(name: str, text: str, labels: list[str], values: Iterable[tuple[tuple[str, ...], float]]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for key, value in sorted(values):
        family.add_metric(list(key), value)
    return family


def _counted(name: str, text: str, labels: list[str], keys: Iterable[tuple[str, ...]]) -> Metric:
    return _gauge(name, text, labels, [(key, float(count)) for key, count in Counter(keys).items()])


def _work(result: CycleResult) -> Iterator[Metric]:
    snapshot, plan = result.snapshot, result.plan
    states = [("running" if pod.node is not None else "pending",) for pod in snapshot.cluster.pods]
    yield _counted("htas_pods", "Pods that have not ended.", ["state"], states)
    yield _counted(
        "htas_unschedulable_pods",
        "Unschedulable pods, by reason.",
        ["reason"],
        ((u.reason.value,) for u in plan.unplaced),
    )
    yield GaugeMetricFamily("htas_nominated_pods", "Pending pods with a reservation.", value=float(len(plan.nominate)))
    holds = [*(item.reason for item in plan.nominate), *(HoldReason.MOVE for _ in snapshot.moves)]
    what = "Reservations of pods, by reason."
    yield _counted("htas_reservations", what, ["reason"], ((reason.value,) for reason in holds))
    yield GaugeMetricFamily("htas_moves", "Pods that migrate to another node.", value=float(len(snapshot.moves)))
    problems = float(len(snapshot.cluster.problems))
    yield GaugeMetricFamily("htas_unusable_objects", "Objects, or parts of them, ignored as invalid.", value=problems)


def _pinned(result: CycleResult, policy: Policy) -> Iterator[Metric]:
    snapshot = result.snapshot
    found = pins.by_namespace(snapshot.cluster, policy, snapshot.taken_at)
    labels = ["namespace"]
    pods = [((name,), float(each.pods)) for name, each in found.items()]
    yield _gauge("htas_pinned_pods", "Running pods that their annotations or data keep on their node.", labels, pods)
    prices = [((name,), each.nanos / NANOS) for name, each in found.items()]
    what = "Price per hour charged to pinned pods, in the currency of htas_cost_total."
    yield _gauge("htas_pinned_price_per_hour", what, labels, prices)
    over = [((name,), float(each.passed_over)) for name, each in found.items()]
    yield _gauge("htas_passed_over_pins", "Pinned pods beyond their namespace's limits.", labels, over)


def _machines(result: CycleResult) -> Iterator[Metric]:
    snapshot = result.snapshot
    nodes = ((node.group or NO_GROUP, _state(node)) for node in snapshot.cluster.nodes)
    yield _counted("htas_nodes", "Nodes.", ["group", "state"], nodes)
    claims = ((claim.group, claim.state.value) for claim in snapshot.claims)
    yield _counted("htas_claims", "Machines requested or running.", ["group", "state"], claims)
    orphans = Counter(each.reason for each in snapshot.orphans)
    what = "Machines of HTAS that match no node group."
    yield _gauge("htas_orphans", what, ["reason"], [((each.value,), float(orphans[each])) for each in OrphanReason])
    yield GaugeMetricFamily("htas_drains", "Nodes being drained.", value=float(len(snapshot.drains)))
    kept = ((item.reason.value,) for item in result.plan.kept)
    yield _counted("htas_kept_nodes", "Nodes that scale-down keeps, by reason.", ["reason"], kept)
    away = float(bool(snapshot.cloud_problem))
    yield GaugeMetricFamily("htas_cloud_away", "1 while the cloud does not answer.", value=away)
    waits = ((each.flavour or "all", each.zone or "") for each in snapshot.backoffs)
    launches = snapshot.memory.launches
    unused = {(owner, at) for owner, each in launches.counted().items() for at in each.launched_at}
    unused |= {(owner, at) for owner, instants in launches.of_nobody.items() for at in instants}
    what = "Launches within the last hour that none of their pods used."
    yield GaugeMetricFamily("htas_unused_launches", what, value=float(len(unused)))
    yield _counted("htas_backoffs", "Flavours that back off after a failure.", ["flavour", "zone"], waits)


def _initialized(snapshot: ClusterSnapshot, policy: Policy) -> Iterator[Metric]:
    waiting = registered_nodes(snapshot, policy)
    groups = ((node.group or NO_GROUP,) for node in snapshot.cluster.nodes if node.name in waiting)
    what = "Ready nodes that lack a device or have a start-up taint."
    yield _counted("htas_nodes_not_initialized", what, ["group"], groups)
    learned = learned_allocatable(snapshot, policy.catalogue)
    shares = [
        ((each.name, name), learned[each.name].amount(name) / amount)
        for each in policy.catalogue.flavours
        if each.name in learned
        for name, amount in each.allocatable.amounts().items()
        if amount and name != PODS
    ]
    what = "Allocatable resources of a flavour as a share of the price file's figure, where learned."
    yield _gauge("htas_flavour_offered_ratio", what, ["flavour", "resource"], shares)


def _state(node: Node) -> str:
    if node.is_draining:
        return "draining"
    return "ready" if node.is_ready else "not-ready"


def _room(result: CycleResult) -> Iterator[Metric]:
    """What nodes offer and what their pods request, in cores and bytes, by group."""
    offered: dict[tuple[str, str], int] = defaultdict(int)
    asked: dict[tuple[str, str], int] = defaultdict(int)
    group_of = {node.name: node.group or NO_GROUP for node in result.snapshot.cluster.nodes}
    for node in result.snapshot.cluster.nodes:
        offered[group_of[node.name], "cpu"] += node.allocatable.cpu_m
        offered[group_of[node.name], "memory"] += node.allocatable.memory_bytes
    for pod in result.snapshot.cluster.pods:
        if pod.node in group_of:
            asked[group_of[pod.node], "cpu"] += pod.requests.cpu_m
            asked[group_of[pod.node], "memory"] += pod.requests.memory_bytes
    labels = ["group", "resource"]
    yield _gauge("htas_allocatable", "Allocatable resources of nodes: cores, bytes.", labels, _in_cores(offered))
    yield _gauge("htas_requested", "Requests of pods on nodes: cores, bytes.", labels, _in_cores(asked))


def _in_cores(amounts: dict[tuple[str, str], int]) -> list[tuple[tuple[str, ...], float]]:
    return [(key, amount / 1000 if key[1] == "cpu" else float(amount)) for key, amount in amounts.items()]


def _money(cost: Cost) -> Iterator[Metric]:
    label = (cost.currency,)
    for name, text, nanos in (
        ("htas_cost_per_hour", "Price per hour of all machines now.", cost.before_nanos),
        ("htas_planned_cost_per_hour", "Price per hour once the plan is carried out.", cost.after_nanos),
    ):
        yield _gauge(name, text, ["currency"], [(label, nanos / NANOS)])


def _limits(policy: Policy) -> Iterator[Metric]:
    """Limits that are set; the group label is empty for those over all groups."""
    values = [*_of("", policy.limits)]
    for group in policy.groups:
        values += _of(group.name, group.limits)
    yield _gauge("htas_limit", "Configured limits: nodes, cores, bytes, price per hour.", ["group", "resource"], values)


def _of(group: str, limits: Limits) -> Iterator[tuple[tuple[str, ...], float]]:
    for resource, bound, unit in (
        ("nodes", limits.max_nodes, 1),
        ("cpu", limits.max_cpu_m, 1000),
        ("memory", limits.max_memory_bytes, 1),
        ("price", limits.max_nanos_per_hour, NANOS),
    ):
        if bound is not None:
            yield (group, resource), bound / unit


def _recommended(savings: Savings, currency: str) -> Iterator[Metric]:
    """Both courses since the beginning: gauges, since a course that machines leave may be corrected downwards."""
    courses = (("real", savings.real), ("with-htas", savings.with_htas))
    cost = GaugeMetricFamily(
        "htas_recommended_cost", "Cost of machines, real and with HTAS.", labels=["course", "currency"]
    )
    machines = GaugeMetricFamily(
        "htas_recommended_machines", "Number of machines, real and with HTAS.", labels=["course"]
    )
    waits = GaugeMetricFamily(
        "htas_recommended_wait_seconds",
        "Average seconds that pods were pending, real and with HTAS.",
        labels=["course"],
    )
    for name, course in courses:
        cost.add_metric([name, currency], course.nano_seconds / (NANOS * 3600))
        machines.add_metric([name], course.machines)
        waits.add_metric([name], course.waits.mean_s)
    disturbed = GaugeMetricFamily(
        "htas_recommended_disrupted_pods", "Pods that HTAS would have evicted or moved.", labels=["how"]
    )
    disturbed.add_metric(["evicted"], savings.evicted)
    disturbed.add_metric(["moved"], savings.moved)
    since = GaugeMetricFamily("htas_recommended_since_timestamp_seconds", "Start of the comparison.")
    since.add_metric([], savings.since)
    yield from (cost, machines, waits, disturbed, since)


def _edge(view: ClusterView, policy: Policy) -> Iterator[Metric]:
    """How near services come to their targets, and how much of each edge node nobody can use; nothing but the names
    where no node is of tier edge."""
    ratio = GaugeMetricFamily("htas_edge_ratio", "Share of a service's pods on the edge.", labels=["service"])
    qos = GaugeMetricFamily("htas_edge_qos", "Quality of service by its target for edge nodes.", labels=["service"])
    unused = GaugeMetricFamily(
        "htas_edge_fragmentation", "Free share of an edge node that no service can use.", labels=["node"]
    )
    if edge_nodes(view.nodes, policy):
        state = present(view, policy)
        names = [service.name for service in state.services]
        for service, share in zip(names, edge_ratios(state), strict=True):
            ratio.add_metric([service], share)
        for service, worth in zip(names, service_qualities(state, policy.edge), strict=True):
            qos.add_metric([service], worth)
        for node, share in zip(state.nodes, node_fragmentation(state), strict=True):
            unused.add_metric([node.name], share)
    yield from (ratio, qos, unused)
