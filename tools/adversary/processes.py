"""Attacks on a daemon process while it buys, places and gives back: network, files, cloud, clock, signals."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from random import Random

import msgspec

from tools.adversary import network
from tools.adversary.attack import Attack, Verdict
from tools.adversary.disk import allow_writes, refuse_writes
from tools.adversary.scene import jobs
from tools.adversary.siege import SPEED, Siege, Spoil, siege
from tools.testenv.cluster import eventually
from tools.testenv.daemon import Htas, htas

STRUCK_S = 2.0
"""How long an attack lasts: eight minutes of the world, 24 cycles of each kind."""
LEASE_S = 15.0 / SPEED
"""The lease that a daemon has by default (leaderElection.leaseDuration), in real seconds."""


def besieged_network() -> Verdict:
    """Every attack of `network` on one daemon that has work to do meanwhile."""
    with siege() as world:
        world.let_work_begin()
        tried: dict[str, Callable[[network.Serving], Verdict]] = {
            "nothing sent": partial(network.slowloris, 300, b""),
            "half a head": partial(network.slowloris, 300, b"GET / HTTP/1.1\r\nHost: ht"),
            "100 MB without a token": partial(network.large_bodies, 100_000_000, shows_the_token=False),
            "100 MB with the token": partial(network.large_bodies, 100_000_000, shows_the_token=True),
            "wrong tokens": partial(network.wrong_tokens, 60),
            "cross-origin posts": network.cross_origin,
        }
        found = {words: attack(world.as_target) for words, attack in tried.items()}
        faults = {f"{words}: {fault}": True for words, each in found.items() for fault in each.faults}
        return world.ended(", ".join(tried), faults)


def besieged_by_smugglers() -> Verdict:
    with siege() as world:
        world.let_work_begin()
        found = network.smuggling(world.as_target)
        return world.ended(found.happened, dict.fromkeys(found.faults, True))


def unwritable_store() -> Verdict:
    """Every write of the journal is refused for a while: nothing is bought unwritten, and all ends afterwards."""
    with siege() as world:
        world.let_work_begin()
        refuse_writes(world.store)
        time.sleep(STRUCK_S / 4)  # an order that was journalled before may still be on its way
        before = world.bought()
        time.sleep(STRUCK_S)
        more = world.bought() - before
        allow_writes(world.store)
        return world.ended(f"{more} bought meanwhile", {f"{more} machines were bought unwritten": more > 0})


def spoiled_store(spoil: Callable[[Path], None]) -> Verdict:
    """The journal is spoiled under the daemon; it goes on or ends naming the file, and a new one adopts."""
    with siege() as world:
        world.let_work_begin()
        spoil(world.store)
        time.sleep(STRUCK_S)
        lived = world.is_running()
        is_named = lived or world.store.name in world.daemon.tail()
        if lived:
            world.daemon.kill()
        for end in ("", "-wal", "-shm"):
            world.store.with_name(world.store.name + end).unlink(missing_ok=True)
        world.begin()
        return world.ended(
            f"the daemon {'lived' if lived else 'ended'}", {"it ended without naming the file": not is_named}
        )


def _overwrite(path: Path) -> None:
    for end in ("", "-wal"):
        file = path.with_name(path.name + end)
        with file.open("r+b") as opened:
            size = file.stat().st_size
            opened.seek(min(size, 4096))
            opened.write(b"\xa5" * max(0, size - 4096))


def _delete(path: Path) -> None:
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def _truncate(path: Path) -> None:
    with path.open("r+b") as opened:
        opened.truncate(4096 + 100)


def senseless(spoil: Spoil) -> Verdict:
    """Every second answer is spoiled for a while; the daemon lives, and all ends once."""
    with siege() as world:
        world.let_work_begin()
        turns = count()
        world.server.spoil = lambda asked, said: spoil(asked, said) if next(turns) % 2 else said
        time.sleep(STRUCK_S)
        world.server.spoil = None
        is_alive = world.is_running()
        return world.ended(f"{next(turns)} answers", {"the daemon did not live": not is_alive})


def _only(call: bytes, words: bytes) -> Spoil:
    """Where `call` is asked for, `words` are answered."""
    return lambda asked, said: words if b'"' + call in asked else said


def _stepped(seconds: float) -> Spoil:
    """The clock is so many seconds off."""

    def spoil(asked: bytes, said: bytes) -> bytes:
        if b'"clock.now"' not in asked:
            return said
        answer: dict[str, float] = msgspec.json.decode(said)
        return msgspec.json.encode({"ok": answer["ok"] + seconds})

    return spoil


def frozen(seconds: float) -> Verdict:
    """SIGSTOP and SIGCONT; what the daemon believed is old when it goes on."""
    with siege() as world:
        world.let_work_begin()
        world.stopped(seconds)
        return world.ended(f"frozen for {seconds / LEASE_S:.0f} leases")


def killed_in_a_burst(kills: int) -> Verdict:
    """SIGKILL at random moments while machines for 300 jobs are journalled, bought and given work."""
    random = Random(7)
    with siege(jobs(300, every_s=0.0, cpu_m=400)) as world:
        for _ in range(kills):
            eventually(lambda: world.daemon.said("listens"), 20.0, "the daemon listens")
            time.sleep(random.uniform(0.2, 1.0))
            world.daemon.kill()
            world.begin()
        return world.ended(f"{kills} kills")


def two_on_one_store() -> Verdict:
    """Another daemon on the same file is refused while the first works, or is frozen; not once it is dead."""
    with siege(jobs(24, every_s=150.0)) as world:
        world.let_work_begin()
        beside = htas("run", "--for", "1", config=world.config)
        world.daemon.process.send_signal(signal.SIGSTOP)
        frozen_beside = htas("run", "--for", "1", config=world.config)
        world.daemon.process.send_signal(signal.SIGCONT)
        world.daemon.kill()
        world.begin()
        return world.ended(
            f"exit status {beside.returncode} and {frozen_beside.returncode}",
            {
                f"let in beside: {beside.stderr[-200:]}": beside.returncode == 0,
                f"let in beside a frozen one: {frozen_beside.stderr[-200:]}": frozen_beside.returncode == 0,
                "the file is not named": world.store.name not in beside.stderr,
            },
        )


BAD = {
    "empty": lambda sound: "",
    "not text": lambda sound: "\x00\x01\x02" * 1000,
    "not YAML": lambda sound: "a: [b\n" * 50,
    "cut off": lambda sound: sound[: len(sound) // 2],
    "another cluster": lambda sound: sound.replace("cluster: demo", "cluster: other"),
    "no price file": lambda sound: sound.replace("nectar.yaml", "missing.yaml"),
    "a wrong unit": lambda sound: sound.replace("scheduling: 20s", "scheduling: 20 parsecs"),
    "aliases of aliases": lambda sound: _laughs(),
    "nested": lambda sound: "[" * 100_000,
    "20,000 unknown keys": lambda sound: sound + "".join(f"key{number}: 1\n" for number in range(20_000)),
}


def _laughs() -> str:
    """Nine levels of nine: 400 million if they were written out."""
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    return "\n".join(levels) + "\n"


def bad_reloads() -> Verdict:
    """Each is refused and told, and the daemon works on; a good one is adopted afterwards."""
    with siege() as world:
        world.let_work_begin()
        unheard = [words for words, bad in BAD.items() if not _is_refused(world, bad(world.sound))]
        world.config.write_text(world.sound)
        world.daemon.process.send_signal(signal.SIGHUP)
        return world.ended(f"{len(BAD)} bad ones", {f"not refused: {unheard}": bool(unheard)})


def _is_refused(world: Siege, text: str) -> bool:
    """Whether the daemon says so within some seconds, and lives."""

    def refusals(daemon: Htas) -> int:
        return sum("refused" in str(line.get("event")) for line in daemon.lines)

    before = refusals(world.daemon)
    world.config.write_text(text)
    world.daemon.process.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + 15.0
    while time.monotonic() < deadline and world.is_running():
        if refusals(world.daemon) > before:
            return True
        time.sleep(0.05)
    return False


def attacks() -> list[Attack]:
    """All are long: each starts a process."""
    spoiled = {"overwritten with noise": _overwrite, "deleted": _delete, "cut off": _truncate}
    answers: dict[str, Spoil] = {
        "the cloud answers half a line": _only(b"cloud.", b'{"ok": [{"id'),
        "the cloud answers null": _only(b"cloud.", b'{"ok": null}'),
        "the cloud answers with another kind": _only(b"cloud.", b'{"ok": {"id": 7, "claims": [[]]}}'),
        "the cloud answers an error of no kind": _only(b"cloud.", b'{"error": {"kind": "Gone", "message": "\\u0000"}}'),
        "the cluster answers what is no text": _only(b"cluster.", b"\xff\xfe\x00"),
        "the clock is three hours ahead": _stepped(10_800.0),
        "the clock is five minutes behind": _stepped(-300.0),
        "the clock says NaN": _only(b"clock.now", b'{"ok": "NaN"}'),
    }
    runs: dict[str, Callable[[], Verdict]] = {
        "all of the network's attacks": besieged_network,
        "smuggling": besieged_by_smugglers,
        "the store cannot be written": unwritable_store,
        **{f"the store is {how}": partial(spoiled_store, spoil) for how, spoil in spoiled.items()},
        **{words: partial(senseless, spoil) for words, spoil in answers.items()},
        "frozen for longer than a lease": partial(frozen, 4.0),
        "killed in a burst": partial(killed_in_a_burst, 5),
        "two on one store": two_on_one_store,
        "bad configurations": bad_reloads,
    }
    return [Attack(f"process: {words}", run, is_long=True) for words, run in runs.items()]
