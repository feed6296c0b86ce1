"""Receivers of notices, as configured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import structlog

from htas.adapters.webhook.webhook import Secret, Webhook
from htas.config.loader import Loaded
from htas.config.notices import NoticeSetting, SecretSetting
from htas.daemon.cycle import CycleResult
from htas.daemon.notice_delivery import Notifier, Receiver
from htas.daemon.noticing import Noticing, Spending
from htas.daemon.stores import store_path
from htas.documents.books import Reading
from htas.documents.month import looked_at, month_of
from htas.ports import HTASError

log = structlog.get_logger()

BILLS_S = 60.0
"""Between two looks at the month's bills."""


def receivers_of(loaded: Loaded, *, keeps: bool = True) -> list[Receiver]:
    """Those of the configuration. What waits for them lies beside the store, where it is to be kept."""
    beside = Path(store_path(loaded))
    return [
        Receiver(
            setting.name,
            webhook_of(setting, loaded.directory),
            frozenset(setting.on),
            beside.with_name(f"{beside.name}.notices.{setting.name}") if keeps else None,
        )
        for setting in loaded.settings.notices
    ]


def webhook_of(setting: NoticeSetting, directory: Path) -> Webhook:
    address = _secret(setting.url_from, directory) if setting.url_from is not None else Secret(value=setting.url or "")
    token = _secret(setting.token_from, directory) if setting.token_from is not None else None
    return Webhook(setting.name, address, setting.form, token, is_insecure=setting.insecure)


def _secret(setting: SecretSetting, directory: Path) -> Secret:
    return Secret(file=directory / setting.file) if setting.file is not None else Secret(variable=setting.env or "")


class Telling:
    """Listens to cycles, looks at the month's bills beside them, and has people told. A cycle waits for none of it."""

    def __init__(self, loaded: Loaded, reading: Reading, now: Callable[[], float], told: Callable[[str], None]) -> None:
        self._loaded = loaded
        self._reading = reading
        self._now = now
        self._notifier = Notifier(receivers_of(loaded), told)
        self._noticing, self._of_bills = Noticing(loaded.policy.cluster), Noticing(loaded.policy.cluster)
        self._closing = Event()
        self._budget = Thread(target=self._watch_the_month, name="budget", daemon=True)

    def start(self) -> None:
        self._notifier.start()
        self._budget.start()

    def close(self) -> None:
        self._closing.set()
        self._notifier.close()

    def observe(self, result: CycleResult) -> None:
        """A cycle has ended."""
        self._notifier.tell(self._noticing.of_cycle(result))

    def adopt(self, loaded: Loaded) -> None:
        """A configuration that was read anew."""
        old, self._loaded = self._loaded, loaded
        if old.settings.notices != loaded.settings.notices:
            self._notifier.adopt(receivers_of(loaded))

    def _watch_the_month(self) -> None:
        while not self._closing.wait(BILLS_S):
            try:
                self.look_at_the_month()
            except HTASError as error:  # a store that is away is told of by metrics
                log.warning("the month's bills cannot be read, tried again", error=str(error))

    def look_at_the_month(self) -> None:
        """Tell where the budget stands, if there is news of it. Raises what the store raises."""
        budget, now = self._loaded.settings.monthly_budget, self._now()
        if budget is None:
            return
        with self._reading() as store:
            bills = store.bills(looked_at(now))
        catalogue = self._loaded.policy.catalogue
        month = month_of(bills, catalogue.billing, now)
        spending = Spending(month.so_far, month.forecast, budget * 3600, catalogue.currency)
        self._notifier.tell(self._of_bills.of_month(now, spending))
