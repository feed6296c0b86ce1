"""The journal's file is filled, forbidden, damaged, emptied or put back from a copy, while machines come and go."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from htas.adapters.sqlite.store import SqliteStore
from htas.ports import HTASError
from tools.adversary.attack import Attack, Verdict, verdict
from tools.adversary.scene import DAY_S, HOUR_S, Scene, jobs

STRUCK_S, MENDED_S = 600.0, 600.0 + HOUR_S
FILES = ("", "-wal", "-shm")


def refuse_writes(path: Path) -> None:
    """Have every write of a claim or disruption refused, as by a full disk: by another connection to the file."""
    _with_trigger(path, is_there=True)


def allow_writes(path: Path) -> None:
    _with_trigger(path, is_there=False)


def _with_trigger(path: Path, is_there: bool) -> None:
    with closing(sqlite3.connect(path)) as other:
        for table in ("claims", "disruptions"):
            for verb in ("INSERT", "UPDATE"):
                name = f"full_{table}_{verb}"
                other.execute(f"DROP TRIGGER IF EXISTS {name}")
                if is_there:
                    other.execute(
                        f"CREATE TRIGGER {name} BEFORE {verb} ON {table} "
                        "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
                    )
        other.commit()


def cannot_be_written(folder: Path) -> Verdict:
    """For an hour nothing is written: what has room is placed, and all ends once there is room."""
    path = folder / "htas.db"
    with closing(SqliteStore(str(path))) as store:
        scene = Scene(jobs(12), store=store).play(STRUCK_S)
        refuse_writes(path)
        bought = len(scene.world.ledger.rentals)
        scene.play(MENDED_S)
        more = len(scene.world.ledger.rentals) - bought
        allow_writes(path)
        scene.play_to_its_end(DAY_S)
        return verdict(
            f"{more} machines bought meanwhile; {scene.told()}",
            scene.unfinished() | scene.broken() | {f"{more} machines were bought unwritten": more > 0},
        )


@dataclass(frozen=True, slots=True)
class _Spoiled:
    """The daemon ends, its file is spoiled, and it is started again; what cannot be opened is moved away, as told."""

    spoil: Callable[[Path, dict[str, bytes]], None]

    def run(self) -> Verdict:
        with tempfile.TemporaryDirectory() as name:
            return self._in(Path(name) / "htas.db")

    def _in(self, path: Path) -> Verdict:
        store = SqliteStore(str(path))
        scene = Scene(jobs(12), store=store).play(STRUCK_S / 2)
        early = {end: Path(f"{path}{end}").read_bytes() for end in FILES if Path(f"{path}{end}").exists()}
        scene.play(2 * STRUCK_S)
        store.close()
        self.spoil(path, early)
        said = "it is opened"
        try:
            store = SqliteStore(str(path))
            store.claims()
        except HTASError as error:
            said = "it is refused"
            is_named = path.name in str(error)
            for end in FILES:
                Path(f"{path}{end}").unlink(missing_ok=True)
            store = SqliteStore(str(path))
        else:
            is_named = True
        scene.store = store
        scene.begin()
        with closing(store):
            scene.play_to_its_end(DAY_S)
            return verdict(
                f"{said}; {scene.told()}",
                scene.unfinished() | scene.broken() | {"the refusal does not name the file": not is_named},
            )


def _with_noise(path: Path, _: dict[str, bytes]) -> None:
    """Every page but the first is overwritten."""
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xa5" * max(0, len(whole) - 4096))


def _cut_off(path: Path, _: dict[str, bytes]) -> None:
    path.write_bytes(path.read_bytes()[: 4096 + 100])


def _emptied(path: Path, _: dict[str, bytes]) -> None:
    path.write_bytes(b"")


def _another_file(path: Path, _: dict[str, bytes]) -> None:
    path.write_text("apiVersion: v1\n" * 1000)


def _put_back(path: Path, early: dict[str, bytes]) -> None:
    """A backup of a quarter of an hour ago: it knows machines that are gone, and lacks those that came since."""
    for end in FILES:
        Path(f"{path}{end}").unlink(missing_ok=True)
    for end, content in early.items():
        Path(f"{path}{end}").write_bytes(content)


def _in_a_folder(attack: Callable[[Path], Verdict]) -> Verdict:
    with tempfile.TemporaryDirectory() as name:
        return attack(Path(name))


def attacks() -> list[Attack]:
    spoiled = {
        "overwritten with noise": _with_noise,
        "cut off": _cut_off,
        "emptied": _emptied,
        "replaced by another file": _another_file,
        "put back from a copy": _put_back,
    }
    return [
        Attack("disk: full for an hour", partial(_in_a_folder, cannot_be_written)),
        *(Attack(f"disk: the store is {how}", _Spoiled(spoil).run) for how, spoil in spoiled.items()),
    ]
