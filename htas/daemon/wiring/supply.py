"""Where machines come from in a real cluster: the provider that is configured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from htas.adapters.kubernetes.api import ApiServer
from htas.adapters.kwok.machines import Faults
from htas.adapters.kwok.provider import KwokProvider
from htas.config.kwok import KwokSetting
from htas.config.loader import Loaded
from htas.execution.crash_points import reached
from htas.ports import JoinPort, ProviderPort


@dataclass(frozen=True, slots=True)
class Supply:
    """A provider. `start` and `close` are for the daemon that leads, `look` is for who asks once.

    Up to `calls_at_once` go to the cloud at one time; `fence` is given what tells whether it may be changed at all.
    `problems` asks the cloud what the configuration names in vain.
    """

    provider: ProviderPort
    start: Callable[[], None]
    close: Callable[[], None]
    look: Callable[[], None]
    calls_at_once: int
    fence: Callable[[Callable[[], bool]], None]
    problems: Callable[[], list[str]]
    join: JoinPort | None = None


def kwok_supply(loaded: Loaded, setting: KwokSetting, api: ApiServer, namespace: str) -> Supply:
    """Machines that KWOK plays. They are objects of the API server, whose fence is theirs."""
    faults = setting.faults
    provider = KwokProvider(
        api,
        loaded.policy.cluster,
        namespace,
        setting.startup_delay,
        Faults(setting.seed, faults.out_of_stock, faults.never_registers, faults.registers_late, faults.late),
        reached=reached,
    )
    calls = loaded.settings.kubernetes.connections
    return Supply(provider, provider.start, provider.close, lambda: None, calls, lambda may_write: None, list)
