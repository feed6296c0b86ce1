"""The daemon is killed again and again while its world lives on, and everything must come out right.

A sandbox world runs in a process of its own with time passing; `htas run` is started against it, ended with SIGKILL
at a random moment, started again, and so on. Then it is left to finish. The same day is played without any kill, and
the two are compared: the same tasks finished once each, no machine left, no claim with two machines.

    python -m tools.kill_test --hours 24 --speed 600 --kills 20
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from htas.config.places import config_file
from htas.ports import TransientError
from htas.sandbox.ledger import Ledger
from htas.sandbox.remote import RemoteWorld
from htas.sandbox.server import WorldServer
from htas.sandbox.workload import Rescale, Workload
from htas.sandbox.workloads.day import SERVICES, day
from htas.sandbox.world import World

TAIL_S = 7200.0
"""Virtual time after the last arrival in which everything must have ended."""


@dataclass(frozen=True, slots=True)
class Outcome:
    ledger: Ledger
    kills: int
    left_claims: int
    machines: int
    nodes: int

    def faults(self) -> list[str]:
        """What is wrong, in words."""
        ledger = self.ledger
        claims = [rental.claim for rental in ledger.rentals]
        checks = {
            f"{ledger.arrived - ledger.finished} tasks did not end": ledger.finished != ledger.arrived,
            "a task ended twice": len(set(ledger.finished_tasks)) != len(ledger.finished_tasks),
            f"{self.machines} machines are left": self.machines > 0,
            f"{self.nodes} nodes are left": self.nodes > 0,
            f"{self.left_claims} claims are still open": self.left_claims > 0,
            "a claim has two machines": len(set(claims)) != len(claims),
            f"{ledger.killed_by_release} pods were killed by a release": ledger.killed_by_release > 0,
            f"{ledger.overcommitted} pods were bound without room": ledger.overcommitted > 0,
            f"{ledger.lost} tasks were lost": ledger.lost > 0,
        }
        return [words for words, is_wrong in checks.items() if is_wrong]


def work(hours: float, seed: int) -> Workload:
    """The demo's day, at whose end the services are closed, so that every machine must go."""
    base = day(seed, length_s=hours * 3600)
    closing = tuple(Rescale(hours * 3600, "default", f"web-{i}", 0) for i in range(SERVICES))
    return Workload(base.name, base.arrivals, (*base.rescales, *closing), base.daemons, base.budgets)


def serve(socket: Path, hours: float, speed: float, seed: int) -> None:
    """The world's process: ends when its standard input does."""
    world = World(seed=seed)
    world.load(work(hours, seed))
    server = WorldServer(world, socket, speed)
    server.start()
    sys.stdin.read()
    server.stop()


def play(hours: float, speed: float, kills: int, seed: int) -> Outcome:
    """One day with so many kills."""
    random = Random(seed)
    with tempfile.TemporaryDirectory(prefix="htas-kill-") as name:
        folder = Path(name)
        config = _configure(folder, speed)
        socket = folder / "world.sock"
        options = ["--serve", str(socket), "--hours", str(hours), "--speed", str(speed), "--seed", str(seed)]
        command = [sys.executable, "-m", "tools.kill_test", *options]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as world_process:
            _wait_for(socket.exists, "the world did not start")
            world = RemoteWorld(socket, speed)
            try:
                start, real_s = world.clock.now(), hours * 3600 / speed
                for number in range(1, kills + 1):
                    daemon = _start(config)
                    _wait_for(partial(_has_begun, config, number), "the daemon did not start")
                    time.sleep(random.uniform(0.3, 2.0) * real_s / max(1, kills))
                    os.kill(daemon.pid, signal.SIGKILL)
                    daemon.wait()
                return _finish(config, world, start, hours, kills, folder)
            finally:
                world.connection.close()
                assert world_process.stdin is not None
                world_process.stdin.close()
                world_process.wait(30)


def _configure(folder: Path, speed: float) -> Path:
    """The demo's configuration against the world's socket; run lengths are stated, so nothing else differs."""
    text = config_file("htas.yaml").read_text()
    prices = config_file("flavours/nectar.yaml")
    text = text.replace("flavours: flavours/nectar.yaml", f"flavours: {prices}")
    text = text.replace("address: null", "address: world.sock").replace("speed: 1.0", f"speed: {speed}")
    config = folder / "htas.yaml"
    config.write_text(text)
    return config


def _start(config: Path) -> subprocess.Popen[bytes]:
    code = "from htas.cli.main import main; main()"
    with (config.parent / "daemon.log").open("ab") as log:
        return subprocess.Popen([sys.executable, "-c", code, "run", "--config", str(config)], stderr=log, stdout=log)


def _finish(config: Path, world: RemoteWorld, start: float, hours: float, kills: int, folder: Path) -> Outcome:
    """Let a last daemon finish the day; then look."""
    from htas.adapters.sqlite.store import SqliteStore

    daemon = _start(config)
    end = start + hours * 3600
    while world.clock.now() < end + TAIL_S and not (world.clock.now() > end and _is_over(world)):
        time.sleep(0.2)
    daemon.terminate()
    daemon.wait(30)
    store = SqliteStore(str(folder / "htas.db"))
    left = len(store.claims())
    store.close()
    return Outcome(world.ledger(), kills, left, len(world.cloud.instances()), len(world.cluster.observe().nodes))


def _is_over(world: RemoteWorld) -> bool:
    try:
        view = world.cluster.observe()
        return not view.pods and not view.nodes and not world.cloud.instances()
    except TransientError:
        return False


def _has_begun(config: Path, number: int) -> bool:
    """Whether so many daemons have begun: one that is killed while it still loads leaves nothing undone."""
    return (config.parent / "daemon.log").read_bytes().count(b"htas runs") >= number


def _wait_for(has_come: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + 30
    while not has_come():
        if time.monotonic() > deadline:
            raise TimeoutError(otherwise)
        time.sleep(0.02)


def report(outcome: Outcome) -> str:
    ledger = outcome.ledger
    return (
        f"kills {outcome.kills}: tasks {ledger.finished}/{ledger.arrived} ended, "
        f"{len(ledger.rentals)} machines bought, {outcome.machines} left, "
        f"claims {outcome.left_claims} open, restarts {ledger.restarts}, mean wait {ledger.mean_wait_s():.0f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=24.0, help="length of the day")
    parser.add_argument("--speed", type=float, default=600.0, help="seconds of the world in a real one")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--serve", type=Path, default=None, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve is not None:
        serve(chosen.serve, chosen.hours, chosen.speed, chosen.seed)
        return
    calm = play(chosen.hours, chosen.speed, 0, chosen.seed)
    killed = play(chosen.hours, chosen.speed, chosen.kills, chosen.seed)
    for outcome in (calm, killed):
        print(report(outcome))
    faults = killed.faults() + [f"never killed: {fault}" for fault in calm.faults()]
    if sorted(calm.ledger.finished_tasks) != sorted(killed.ledger.finished_tasks):
        faults.append("other tasks ended than without kills")
    print("\n".join(faults) if faults else "same tasks finished, no machine left over, none bought twice")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
