"""Twenty thousand jobs at one instant, played to their end."""

from __future__ import annotations

from functools import partial

from tools.adversary.attack import Attack, Verdict, verdict
from tools.adversary.scene import DAY_S, Scene, jobs


def burst(count: int) -> Verdict:
    """All of them run, once each; machines come for what waits and go afterwards."""
    scene = Scene(jobs(count, every_s=0.0, runs_s=120.0, cpu_m=400))
    scene.play_to_its_end(7 * DAY_S)
    return verdict(
        f"{scene.most_machines} machines at most, mean wait {scene.world.ledger.mean_wait_s():.0f} s; {scene.told()}",
        scene.unfinished() | scene.broken(),
    )


def attacks() -> list[Attack]:
    return [
        Attack("burst: 500 jobs at once", partial(burst, 500)),
        Attack("burst: 20,000 jobs at once", partial(burst, 20_000), is_long=True),
    ]
