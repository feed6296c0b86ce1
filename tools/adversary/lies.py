"""A cloud that lies: what it lists, what it says it made and what it says it deleted are not so, for an hour.

Work may be done again for it: a machine that is said to be broken is given back. But nothing is lost or over-committed,
no more machines are bought than the limit allows, and once it tells the truth all ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from htas.model.claims import Headroom, Instance, InstanceState
from htas.model.policy import Limits
from htas.ports import PermanentError
from tools.adversary.attack import Attack, Verdict, verdict
from tools.adversary.cloud import BEGINS_S, ENDS_S, Answer, Between
from tools.adversary.scene import DAY_S, HOUR_S, Scene, jobs, shipped_policy

MOST_NODES = 12


def _each(**fields: Any) -> Answer:
    """Every machine of the list with other fields: a function of the machine, or the value itself."""

    def told(instance: Instance) -> Instance:
        new = {name: value(instance) if callable(value) else value for name, value in fields.items()}
        return msgspec.structs.replace(instance, **new)

    def answer(real: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        listed = real(*arguments)
        return tuple(map(told, listed)) if isinstance(listed, Sequence) else told(listed)

    return answer


def _always(value: object) -> Answer:
    return lambda _, __: value


def _changed(change: Callable[[Any], Any]) -> Answer:
    return lambda real, arguments: change(real(*arguments))


def _in_a_ring(listed: Sequence[Instance]) -> Sequence[Instance]:
    """Everybody under the next one's id."""
    ids = [instance.id for instance in listed]
    return tuple(
        msgspec.structs.replace(instance, id=other) for instance, other in zip(listed, ids[1:] + ids[:1], strict=True)
    )


def _later(seconds: float) -> Callable[[Instance], float]:
    return lambda instance: instance.created_at + seconds


LIES: dict[str, tuple[str, Answer]] = {
    "lists nothing": ("instances", _always(())),
    "lists everything twice": ("instances", _changed(lambda listed: (*listed, *listed))),
    "lists backwards": ("instances", _changed(lambda listed: tuple(reversed(listed)))),
    "lists every other machine": ("instances", _changed(lambda listed: listed[::2])),
    "lists ids of others": ("instances", _changed(_in_a_ring)),
    "lists no claims": ("instances", _each(claim=None)),
    "lists claims of nobody": ("instances", _each(claim="of-nobody")),
    "lists another cluster's": ("instances", _each(cluster="another")),
    "lists flavours of nobody": ("instances", _each(flavour="of.nobody")),
    "lists all as being built": ("instances", _each(state=InstanceState.BUILDING)),
    "lists all in error": ("instances", _each(state=InstanceState.ERROR)),
    "lists all as leaving": ("instances", _each(state=InstanceState.DELETING)),
    "lists machines of tomorrow": ("instances", _each(created_at=_later(86_400.0))),
    "lists machines of 1970": ("instances", _each(created_at=0.0)),
    "lists machines of no time": ("instances", _each(created_at=math.nan)),
    "grants less than nothing": ("headroom", _always(Headroom(-5, -1, -1))),
    "sells nothing": ("headroom", _always(Headroom(sold=()))),
    "says another machine was made": ("create", _each(claim="of-another", id="vm-of-another")),
    "says nothing was made": ("create", _each(id="")),
    "makes machines in error": ("create", _each(state=InstanceState.ERROR)),
    "says deleted, and is not": ("delete", _always(None)),
}


@dataclass(frozen=True, slots=True)
class _Lie:
    call: str
    answer: Answer

    def run(self) -> Verdict:
        policy = msgspec.structs.replace(shipped_policy(), limits=Limits(max_nodes=MOST_NODES))
        scene = Scene(jobs(10, every_s=90.0), policy=policy)
        between = Between(scene.world.cloud, self.call)
        scene.between["provider"] = between
        scene.begin()
        scene.play(BEGINS_S)
        between.answer = self.answer
        scene.play(ENDS_S)
        between.answer = None
        scene.play_to_its_end(2 * DAY_S)
        too_many = {f"{scene.most_machines} machines under a limit of {MOST_NODES}": scene.most_machines > MOST_NODES}
        broken = {fault: True for fault in scene.broken() if "killed by a release" not in fault}
        return verdict(f"asked {between.asked} times; {scene.told()}", scene.unfinished() | broken | too_many)


def refuses_deletes(for_s: float) -> Verdict:
    """No delete succeeds for a day; the limit counts what is still billed, and few deletes are asked for."""
    policy = msgspec.structs.replace(shipped_policy(), limits=Limits(max_nodes=MOST_NODES))
    scene = Scene(jobs(60, every_s=900.0), policy=policy)
    scene.world.cloud.faults.refuse("delete", PermanentError("you may not"))
    scene.play(for_s)
    asked, machines = scene.world.cloud.faults.struck["delete"], scene.most_machines
    scene.world.cloud.faults.refuse("delete", None)
    scene.play_to_its_end(for_s + 2 * DAY_S)
    return verdict(
        f"{asked} deletes for {machines} machines in {for_s / HOUR_S:.0f} h; {scene.told()}",
        {
            f"{machines} machines under a limit of {MOST_NODES}": machines > MOST_NODES,
            f"{asked} deletes": asked > machines * (12 * for_s / HOUR_S + 1),
        }
        | scene.unfinished()
        | scene.broken(),
    )


def machines_vanish(count: int) -> Verdict:
    """So many machines break down one after the other, each while it works."""
    scene = Scene(jobs(12, every_s=60.0, runs_s=1800.0))
    for number in range(count):
        scene.play(600.0 * (number + 1))
        listed = scene.world.cloud.instances()
        if listed:
            scene.world.cloud.vanish(listed[number % len(listed)].id)
    scene.play_to_its_end(DAY_S)
    off = scene.bills_off_by()
    most = 60.0 * count / max(1.0, HOUR_S * scene.world.ledger.machine_hours(scene.world.clock.now()))
    return verdict(
        f"{count} machines vanished; {scene.told()}",
        scene.unfinished() | scene.broken() | {f"bills are off by {off:+.1%}": not -1e-9 <= off <= max(0.01, 2 * most)},
    )


def attacks() -> list[Attack]:
    lies = [
        Attack(f"cloud: {name}", _Lie(call, answer).run, is_long=number % 3 > 0)
        for number, (name, (call, answer)) in enumerate(LIES.items())
    ]
    return [
        *lies,
        Attack("cloud: machines vanish", partial(machines_vanish, 8)),
        Attack("cloud: no delete succeeds for an hour", partial(refuses_deletes, HOUR_S)),
        Attack("cloud: no delete succeeds for a day", partial(refuses_deletes, DAY_S), is_long=True),
    ]
