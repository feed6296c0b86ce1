"""A daemon in a process of its own (`htas run`) and a sandbox served to it over a socket, for attacks from outside."""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import yaml

from htas.adapters.sqlite.store import SqliteStore
from htas.config.places import config_file
from htas.ports import HTASError
from htas.sandbox.remote import RemoteWorld
from htas.sandbox.server import WorldServer
from htas.sandbox.workload import Arrival, Workload
from htas.sandbox.world import World
from tools.adversary.attack import Verdict, verdict
from tools.adversary.network import Target
from tools.adversary.scene import broken, jobs, unfinished
from tools.testenv.cluster import eventually
from tools.testenv.daemon import TOKEN, Htas, free_port

SPEED = 240.0
"""Seconds of the world in a real one: a machine comes in a quarter of a second, a job of ten minutes takes 2.5."""
ENDS_WITHIN_S = 45.0
"""In which all work must have ended and every machine be gone, when the attack is over: some 5 by themselves."""
Spoil = Callable[[bytes, bytes], bytes]
"""What a request's answer becomes on its way: (request, answer)."""


class _SpoiledServer(WorldServer):
    """A world whose answers can be spoiled on their way, and are as they should be for whoever asks `World` itself."""

    spoil: Spoil | None = None

    def answer(self, line: bytes) -> bytes:
        said = super().answer(line)
        spoil = self.spoil
        return said if spoil is None else spoil(line, said)


class Siege:
    """A world with work in `folder`, and the daemons that are started on it."""

    def __init__(self, folder: Path, arrivals: Iterable[Arrival], closes: ExitStack) -> None:
        self.folder, self._closes = folder, closes
        self.config, self.store = folder / "htas.yaml", folder / "htas.db"
        world = World()
        arrivals = tuple(arrivals)
        self.arrivals = sum(arrival.replicas for arrival in arrivals)
        world.load(Workload("attacked", arrivals))
        self.server = _SpoiledServer(world, folder / "world.sock", SPEED)
        self.server.start()
        closes.callback(self.server.stop)
        self.world = RemoteWorld(folder / "world.sock", SPEED)
        closes.callback(self.world.close)
        (folder / "token").write_text(f"{TOKEN}\n")
        self.sound = self._configuration()
        self.config.write_text(self.sound)
        self._begun = 0
        self.begin()

    def _configuration(self) -> str:
        document = yaml.safe_load(config_file("htas.yaml").read_text())
        document["flavours"] = str(config_file("flavours/nectar.yaml"))
        document["provider"]["sandbox"]["address"] = "world.sock"
        document["http"] |= {"listen": f"127.0.0.1:{free_port()}", "tokenFile": "token"}
        document["logging"]["format"] = "json"
        return yaml.safe_dump(document, sort_keys=False)

    def begin(self) -> None:
        """Start another daemon, with a log of its own; it is killed at the end, if it is still there."""
        self._begun += 1
        self.daemon = self._closes.enter_context(Htas(self.config, self.folder / f"htas-{self._begun}.log"))

    def is_running(self) -> bool:
        return self.daemon.process.poll() is None

    def let_work_begin(self) -> None:
        """Wait until machines are there: attacks strike while there is something to lose."""
        self.daemon.says("listens")
        eventually(self.world.cloud.instances, 20.0, "a machine was bought")

    def unfinished(self) -> dict[str, bool]:
        """What is not over yet; empty before all has arrived."""
        with closing(SqliteStore(str(self.store))) as store:
            return unfinished(self.world.ledger(), self.arrivals, self.world, store)

    def ended(self, happened: str, faults: dict[str, bool] | None = None) -> Verdict:
        """Wait until all is over, at most `ENDS_WITHIN_S`, end the daemon, and judge."""
        deadline = time.monotonic() + ENDS_WITHIN_S
        left = {"the daemon has ended": True}
        if self.is_running():
            self.daemon.says("listens")
        while self.is_running():
            left = self.unfinished()
            if not left or time.monotonic() > deadline:
                break
            time.sleep(0.2)
        status = self.daemon.stop() if self.is_running() else self.daemon.process.returncode
        ledger = self.world.ledger()
        claims = [rental.claim for rental in ledger.rentals]
        return verdict(
            f"{happened}; {ledger.finished}/{self.arrivals} tasks, {len(claims)} machines",
            left
            | broken(ledger)
            | {"a claim has two machines": len(set(claims)) != len(claims)}
            | {f"the daemon's exit status is {status}": status != 0}
            | (faults or {}),
        )

    @contextmanager
    def as_target(self) -> Iterator[Target]:
        """The daemon's HTTP server, for the attacks of `network`; its connections are closed afterwards."""
        listens = self.daemon.says("listens")
        with ExitStack() as closes:
            yield Target(int(listens["port"]), TOKEN, closes)

    def stopped(self, seconds: float) -> None:
        """The daemon is frozen for so long (SIGSTOP), and goes on (SIGCONT)."""
        self.daemon.process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            with suppress(ProcessLookupError):
                self.daemon.process.send_signal(signal.SIGCONT)

    def bought(self) -> int:
        with suppress(HTASError):
            return len(self.world.ledger().rentals)
        return 0


@contextmanager
def siege(arrivals: Iterable[Arrival] | None = None) -> Iterator[Siege]:
    """A world in which twelve jobs come within ten minutes, and a daemon that serves it."""
    with tempfile.TemporaryDirectory(prefix="htas-siege-") as name, ExitStack() as closes:
        yield Siege(Path(name), jobs(12, every_s=50.0) if arrivals is None else arrivals, closes)
