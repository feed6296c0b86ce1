"""`htas handback`: takes the place of the daemon that leads, gives every machine back or lets go of them, and ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from secrets import token_hex
from time import monotonic, sleep

from htas.adapters.sqlite.store import SqliteStore
from htas.config.loader import Loaded
from htas.daemon.loops.leadership import Leadership, LeaseTiming
from htas.daemon.orphans import refuse_a_cluster_that_is_led
from htas.daemon.wiring.kubernetes import KubernetesWorld, identity
from htas.daemon.wiring.remote_store import begin
from htas.daemon.wiring.stores import has_store, open_store
from htas.execution.adopting import adopt, chosen
from htas.execution.backoff import Backoffs
from htas.execution.calls import Calls, ParallelCalls
from htas.execution.cloud_calls import CloudCalls
from htas.execution.handing_back import HandingBack, Left, forget
from htas.execution.identity import identify
from htas.execution.machines import Machines
from htas.execution.orphans import orphans
from htas.execution.ports import Ports
from htas.model.claims import Instance
from htas.model.orphans import OrphanReason
from htas.model.outcomes import Outcome, OutcomeStatus
from htas.ports import HTASError, PermanentError, StorePort, TransientError

STEP_S = 1.0
SYNC_S = 60.0
"""How long the API server may take to list the cluster."""
HOLD_S = 60.0
"""Daemons that stand by take the lease no sooner than this after it was removed: helm, or you, end them meanwhile."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Which:
    """The orphans that are handed back: those that are named, or all; of another `cluster` of HTAS only if named."""

    cluster: str | None
    names: tuple[str, ...]


@dataclass(slots=True)
class Handback:
    """One run of the command. `tell` is given lines of progress; all instants are real seconds."""

    loaded: Loaded
    tell: Tell
    timeout_s: float
    namespace: str | None = None
    needs_lease: bool = True
    pause: Callable[[float], None] = sleep
    orphans: Which | None = None
    """What alone is handed back; None: every machine."""
    _deadline: float = field(init=False)
    _told: set[tuple[str, str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._deadline = monotonic() + self.timeout_s

    def give_back(self) -> Sequence[Left]:
        """Empty and release every machine of ours, or the orphans alone; what is left, with the reason.

        Lease and status go where none of all machines is left.

        Raises PermanentError where the daemon does not make way or there is no lease, HTASError where cluster or cloud
        do not answer.
        """
        with self._leading() as (world, leadership):
            store = self._store()
            try:
                left = self._give_back(world, leadership, store)
            finally:
                store.close()
            if not left and self.orphans is None:
                self._leave_nothing(world, leadership)
            return left

    def keep(self) -> Sequence[Left]:
        """Let every machine run on as nobody's; what could not be let go of. Lease and status go where all was."""
        with self._leading() as (world, leadership):
            store = SqliteStore(":memory:")  # the journal is not touched: it knows of no daemon that has ended
            try:
                ports = world.ports(store)
                world.lead()
                self._wait_for_moves(ports)
                outcomes = forget(ports, self.loaded.policy)
            finally:
                store.close()
            self._tell_all(outcomes)
            left = [Left(each.subject, each.message) for each in outcomes if each.status is not OutcomeStatus.DONE]
            if not left:
                self._leave_nothing(world, leadership)
            return left

    @contextmanager
    def _leading(self) -> Iterator[tuple[KubernetesWorld, Leadership]]:
        """The world, seen and led by us; whoever led has made way."""
        with ExitStack() as stack:
            world = KubernetesWorld(self.loaded, namespace=self.namespace)
            stack.callback(world.close)
            if self.needs_lease and world.lease().read() is None:
                name = f"htas-{self.loaded.policy.cluster}"
                what = f"there is no lease {name} in namespace {world.namespace}: no daemon leads there"
                raise PermanentError(
                    f"{what}; name the namespace of HTAS by --namespace, or write --without-lease if none runs anywhere"
                )
            world.watch()
            leadership = self._leadership(world)
            stack.callback(leadership.stop)
            leadership.start()
            self._wait_until_synced(world)
            self._wait_to_lead(leadership)
            world.fence(lambda: leadership.is_leader)
            stack.callback(world.rest)
            yield world, leadership

    def _leadership(self, world: KubernetesWorld) -> Leadership:
        setting = self.loaded.settings.leader_election
        timing = LeaseTiming(setting.lease_duration, setting.renew_deadline, setting.retry_period)
        return Leadership(world.lease(), f"handback-{identity()}_{token_hex(4)}", timing, insists=True)

    def _wait_until_synced(self, world: KubernetesWorld) -> None:
        until = monotonic() + SYNC_S
        while world.cluster.live.missing:
            if monotonic() > until:
                raise TransientError(f"the cluster cannot be read: {world.cluster.complaint()}")
            self.pause(0.05)

    def _wait_to_lead(self, leadership: Leadership) -> None:
        """A leader makes way after its cycle; one that died holds its lease to the end."""
        asked = ""
        while not leadership.wait(0.1):
            if monotonic() > self._deadline:
                said = (
                    leadership.error
                    or f"{leadership.holder or 'another daemon'} holds the lease and does not release it"
                )
                raise PermanentError(f"{said}; end the daemons (replicas: 0), and try again")
            if leadership.holder not in ("", asked):
                asked = leadership.holder
                self.tell(f"asks {asked} to stop leading")
        self.tell("leads; no daemon acts now")

    def _store(self) -> StorePort:
        """The journal that daemons share, or that lies here; else an empty one: machines are known by their labels."""
        is_here = self.loaded.cassandra is not None or has_store(self.loaded)
        store = open_store(self.loaded) if is_here else SqliteStore(":memory:")
        begin(store)
        return store

    def _give_back(self, world: KubernetesWorld, leadership: Leadership, store: StorePort) -> Sequence[Left]:
        with ExitStack() as stack:
            calls = ParallelCalls(self.loaded.settings.kubernetes.connections, lambda: leadership.is_leader)
            stack.callback(calls.close)
            cloud_calls = ParallelCalls(world.supply.calls_at_once)
            stack.callback(cloud_calls.close)
            ports = world.ports(store)
            world.lead()
            only = self._claims_of_orphans(world, ports, self.orphans) if self.orphans is not None else None
            handing = self._handing(ports, calls, cloud_calls, world.namespace, only)
            self._tell_all(handing.begin())
            self._run(handing, leadership)
            if handing.left:
                self._tell_all(handing.give_up())
            return handing.left

    def _claims_of_orphans(self, world: KubernetesWorld, ports: Ports, which: Which) -> frozenset[str]:
        """The claims of the orphans that are meant. Those of another cluster are adopted first."""
        refuse_a_cluster_that_is_led(world, which.cluster)
        view, instances = ports.cluster.observe(), self._instances(ports)
        claims = tuple(ports.store.claims())
        nodes = identify(view.nodes, claims, instances, self.loaded.policy.cluster).nodes
        them = chosen(orphans(nodes, claims, instances, self.loaded.policy), instances, which.cluster, which.names)
        strange = [each for each in them if each.reason is OrphanReason.OTHER_CLUSTER]
        outcomes = adopt(ports, self.loaded.policy, strange, nodes, None)
        self._tell_all(outcomes)
        lost = {each.subject for each in outcomes if each.status is not OutcomeStatus.DONE}
        return frozenset(each.claim or each.machine for each in them if each.machine not in lost)

    def _instances(self, ports: Ports) -> tuple[Instance, ...]:
        """What the cloud lists; it is waited for where it has not been listed yet."""
        while True:
            try:
                return tuple(ports.provider.instances())
            except TransientError:
                if monotonic() > self._deadline:
                    raise
                self.pause(STEP_S)

    def _handing(
        self, ports: Ports, calls: Calls, cloud_calls: Calls, namespace: str, only: frozenset[str] | None
    ) -> HandingBack:
        policy = self.loaded.policy
        machines = Machines(ports, CloudCalls(cloud_calls, ports.clock), policy, Backoffs(policy.timeouts))
        return HandingBack(ports, calls, policy, machines, own_pod=f"{namespace}/{identity()}", only=only)

    def _run(self, handing: HandingBack, leadership: Leadership) -> None:
        """Step by step, until nothing is left that goes, or time is over."""
        while True:
            if not leadership.is_leader:
                raise TransientError("the lease was lost, and with it the right to act; try again")
            has_looked = self._step(handing)
            if (has_looked and handing.is_over) or monotonic() > self._deadline:
                return
            self.pause(STEP_S)

    def _step(self, handing: HandingBack) -> bool:
        """Whether cluster and cloud answered. Those that never do end the command with their own words."""
        try:
            outcomes = handing.step()
        except HTASError as error:
            if monotonic() > self._deadline:
                raise
            self._tell_once("wait", "", str(error))
            return False
        self._tell_all(outcomes)
        for each in handing.left:
            self._tell_once("held" if each.is_held else "wait", each.machine, each.why)
        return True

    def _wait_for_moves(self, ports: Ports) -> None:
        """A twin that nobody finishes would run beside its source."""
        while moving := ports.migration.moving():
            if monotonic() > self._deadline:
                raise TransientError(f"moves are still under way ({moving[0].pod}); try again when they have ended")
            self._tell_once("wait", moving[0].pod, "its move is finished first")
            self.pause(STEP_S)

    def _leave_nothing(self, world: KubernetesWorld, leadership: Leadership) -> None:
        world.rest()
        world.withdraw_status()
        leadership.retire(HOLD_S, self.pause)
        self.tell(f"lease and status are removed; daemons that still run lead again in {HOLD_S:.0f} s: end them before")

    def _tell_all(self, outcomes: Sequence[Outcome]) -> None:
        for each in outcomes:
            is_done = each.status is OutcomeStatus.DONE
            self._tell_once(
                each.action.value if is_done else f"{each.action} {each.status.value}", each.subject, each.message
            )

    def _tell_once(self, what: str, subject: str, why: str) -> None:
        if (what, subject, why) not in self._told:
            self._told.add((what, subject, why))
            self.tell(f"{what:<14} {subject}{': ' if subject and why else ''}{why}")
