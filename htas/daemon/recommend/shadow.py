"""The course with HTAS: the daemon itself, in a sandbox to which everything happens that really does.

It begins with the cluster as it is. From then on pods come when they really come and run for as long as they really
run, and nodes that HTAS would not be in charge of are as they really are; machines, places and moves are the daemon's.
What its machines cost up to now, beside what the real ones did, is what it would have saved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from htas.daemon.loops.cycle import REMEMBERED_RUNS, CycleResult, Daemon
from htas.daemon.loops.virtual import VirtualDriver
from htas.daemon.recommend.in_charge import is_in_charge_of, left_alone, pod_in_charge, policy_in_charge, taken_over
from htas.daemon.recommend.recorded import RecordedCourse
from htas.execution.ports import Ports
from htas.model.claims import Instance, InstanceState
from htas.model.modes import Charge
from htas.model.nodes import Node
from htas.model.pods import Phase, Pod
from htas.model.policy import Policy
from htas.model.record import CycleRecord
from htas.model.savings import Course, Savings, Waits
from htas.model.snapshot import ClusterView, Ended
from htas.planning.cluster.daemon_sets import examples
from htas.planning.cluster.default_requests import lacking_requests
from htas.ports import StorePort
from htas.sandbox.mirroring import MirroringCluster, mirrored_uid
from htas.sandbox.workload import Task
from htas.sandbox.world import World


class Shadow:
    """One course with HTAS. `follow` takes it to the present; `history` is given its cycles, in which nothing was done.

    `before` is its last recorded cycle, where it goes on from one: an earlier process's.
    """

    def __init__(
        self,
        view: ClusterView,
        policy: Policy,
        charge: Charge,
        now: float,
        history: StorePort,
        before: CycleRecord | None = None,
    ) -> None:
        self._charge = charge
        self._before = before.savings if before is not None else None
        self._ours = frozenset(node.name for node in view.nodes if is_in_charge_of(node, policy, charge))
        """Nodes that were taken over: from then on their lives here are their own."""
        self._seen: dict[str, Pod] = {}
        self._daemons: set[tuple[str, str]] = set()
        self._statics: set[str] = set()
        self._closed = self._before.with_htas.nano_seconds if self._before is not None else 0
        self._waits = self._before.with_htas.waits if self._before is not None else Waits()
        self._real = Course()
        self.policy = policy_in_charge(policy, [node for node in view.nodes if node.name in self._ours])
        startup_s = charge.startup_s if charge.startup_s is not None else max(each.startup_s for each in policy.groups)
        start = min(now, self._before.at) if self._before is not None else now
        self._world = World(start=start, startup_s=startup_s, cluster=MirroringCluster)
        assert isinstance(self._world.cluster, MirroringCluster)
        self._cluster = self._world.cluster
        world = self._world
        self._store = RecordedCourse(history, self.savings)
        self._store.add_runs(history.runs(limit=REMEMBERED_RUNS))
        ports = Ports(world.clock, self._cluster, world.cloud, world.migration, self._store, world.announcer)
        self._daemon = Daemon(ports, self.policy)
        self.since = self._before.since if self._before is not None else now
        self._begin(view, before)
        self._driver = VirtualDriver(world, self._daemon)

    @property
    def listeners(self) -> list[Callable[[CycleResult], None]]:
        """Told of each cycle of the course."""
        return self._daemon.listeners

    @property
    def recorded(self) -> int | None:
        return self._daemon.recorded

    def adopt(self, policy: Policy) -> None:
        """Go on with a new policy."""
        self.policy = policy_in_charge(policy, ())
        self.policy = msgspec.structs.replace(self.policy, catalogue=policy.catalogue)
        self._daemon.adopt(self.policy)
        self._driver = VirtualDriver(self._world, self._daemon)

    def follow(self, view: ClusterView, now: float, real: Course) -> None:
        """What has really happened since the last look happens here, each at its time; `real` is what it has cost."""
        self._real = real
        began = self._world.clock.now()
        if now <= began:  # the clock was put back: nothing happens until it has caught up
            return
        self._cluster.other = view
        self._cluster.show_budgets(view.budgets)
        self._follow_nodes(view.nodes)
        self._follow_daemons(view)
        self._follow_statics(view)
        self._follow_pods(view, began, now)
        self._driver.run_until(now)
        self._cluster.forget_ended()
        self._fold()

    def savings(self) -> Savings:
        """Both courses up to now."""
        ledger, before = self._world.ledger, self._before or Savings(0.0, 0.0)
        now = self._world.clock.now()
        running = [each for each in ledger.rentals if each.ended_at is None]
        course = Course(
            self._closed + ledger.nano_seconds(self.policy.catalogue.billing, now),
            sum(each.nanos_per_hour for each in running),
            len(running),
            self._waits.plus(sum(ledger.first_waits_s), len(ledger.first_waits_s)),
        )
        return Savings(
            self.since,
            now,
            self._real,
            course,
            before.evicted + ledger.evictions + ledger.preempted,
            before.moved + ledger.migrations,
            before.overrun_s + self._cluster.overrun_s,
            lacking_requests(self._cluster.other.pods, self.policy.default_requests),
        )

    def close(self) -> None:
        self._store.close()

    # How it begins.

    def _begin(self, view: ClusterView, before: CycleRecord | None) -> None:
        self._cluster.other = view
        self._cluster.show_budgets(view.budgets)
        if before is None:
            for node in view.nodes:
                if node.name in self._ours:
                    self._rent(taken_over(node, self.policy), f"real-{node.name}")
        else:
            machines = {each.id for each in before.snapshot.instances}
            for node in before.snapshot.cluster.nodes:
                if node.claim is not None and node.machine in machines:
                    self._rent(node, node.machine)
        self._follow_nodes(view.nodes)
        self._follow_daemons(view)
        there = {node.name for node in self._cluster.observe().nodes}
        for pod in view.pods if before is None else before.snapshot.cluster.pods:
            if self._is_work(pod):
                self._seat(pod, there)
        self._follow_statics(view)

    def _rent(self, node: Node, machine: str) -> None:
        flavour = self.policy.catalogue.named(node.flavour)
        if flavour is None:  # it is in no price file any more
            return
        instance = Instance(
            id=machine,
            name=node.name,
            flavour=flavour.name,
            state=InstanceState.ACTIVE,
            created_at=self._world.clock.now(),
            zone=node.zone,
            cluster=self.policy.cluster,
            claim=node.claim,
            group=node.group,
        )
        self._world.cloud.add_rented(instance, flavour, node)

    def _seat(self, pod: Pod, there: set[str]) -> None:
        """A pod that is there from the beginning, where it is, or (after a restart) where the course had it."""
        pod = msgspec.structs.replace(self._in_charge(pod), uid=mirrored_uid(pod.uid), nominated_node=None)
        self._seen[pod.uid] = pod
        self._cluster.mirror(pod if pod.node in there else _unplaced(pod))

    # What really happens.

    def _is_work(self, pod: Pod) -> bool:
        return pod.is_work and not pod.is_terminating

    def _in_charge(self, pod: Pod) -> Pod:
        return pod_in_charge(pod, self.policy, self._charge)

    def _follow_nodes(self, nodes: Iterable[Node]) -> None:
        """Nodes that HTAS is not in charge of come, change and go; of the others those that came later are others'."""
        beside = [n for n in nodes if n.name not in self._ours and not is_in_charge_of(n, self.policy, self._charge)]
        here = {node.name for node in self._cluster.observe().nodes if node.claim is None}
        for name in sorted(here - {node.name for node in beside}):
            self._cluster.delete_node(name)
        for node in beside:
            self._cluster.show_node(left_alone(node))

    def _follow_daemons(self, view: ClusterView) -> None:
        """DaemonSets run on every node that suits them, on those that the course buys as well."""
        for pod in examples(view):
            name = (pod.namespace, pod.owner.name if pod.owner is not None else pod.name)
            if name not in self._daemons:
                self._daemons.add(name)
                task = Task(name[1], pod.requests, namespace=pod.namespace, labels=pod.labels)
                self._cluster.add_daemon(msgspec.structs.replace(task, constraints=pod.constraints))

    def _follow_statics(self, view: ClusterView) -> None:
        """Static pods stay on their nodes, and go with them."""
        there = {node.name for node in self._cluster.observe().nodes}
        for pod in view.pods:
            if pod.is_mirror and pod.uid not in self._statics and pod.node in there:
                self._statics.add(pod.uid)
                self._cluster.add_pod(pod)

    def _follow_pods(self, view: ClusterView, began: float, now: float) -> None:
        """Pods end as they did, are removed as they were, and come as they came, in this order where all at once."""
        work = {pod.uid: pod for pod in view.pods if self._is_work(pod)}
        going = {pod.uid for pod in view.pods if pod.is_terminating}
        ended = {end.uid: end for end in view.ended}
        for uid in [uid for uid in self._seen if uid not in work]:
            if uid in going and uid not in ended:
                continue  # it still takes its room
            pod = self._seen.pop(uid)
            if self._cluster.has_mirrored(pod):
                self._leave(pod, ended.get(uid), began, now)
        for uid, pod in work.items():
            if uid not in self._seen:
                self._come(pod, began, now)
            self._seen[uid] = pod

    def _leave(self, pod: Pod, ended: Ended | None, began: float, now: float) -> None:
        at = min(now, max(began, ended.at if ended is not None and ended.at is not None else now))
        if ended is not None and pod.started_at is not None:
            runs_s = max(0.0, (ended.at if ended.at is not None else now) - pod.started_at)
            self._world.queue.at(at, lambda: self._cluster.ends_after(pod, runs_s))
        else:
            self._world.queue.at(at, lambda: self._cluster.withdraw(pod))

    def _come(self, pod: Pod, began: float, now: float) -> None:
        at = min(now, max(began, pod.created_at))
        waiting = msgspec.structs.replace(_unplaced(self._in_charge(pod)), created_at=at)
        self._world.queue.at(at, lambda: self._cluster.mirror(waiting))

    def _fold(self) -> None:
        """Rentals and waits that are over become sums: the course may go on for years."""
        ledger, billing = self._world.ledger, self.policy.catalogue.billing
        over = [each for each in ledger.rentals if each.ended_at is not None]
        for each in over:
            self._closed += each.nano_seconds(billing, each.ended_at or 0.0)
        ledger.rentals = [each for each in ledger.rentals if each.ended_at is None]
        self._waits = self._waits.plus(sum(ledger.first_waits_s), len(ledger.first_waits_s))
        ledger.first_waits_s.clear()
        ledger.waits_s.clear()
        ledger.finished_tasks.clear()


def _unplaced(pod: Pod) -> Pod:
    return msgspec.structs.replace(
        pod, node=None, phase=Phase.PENDING, started_at=None, ready_since=None, nominated_node=None
    )
