"""`htas notices test`: each receiver is sent a notice, by the same way as the daemon's."""

from __future__ import annotations

import getpass
import time

from htas.cli.console import InputError
from htas.config.loader import Loaded
from htas.daemon.audit import note_command
from htas.daemon.notice_receivers import receivers_of
from htas.model.notices import Notice, Occasion
from htas.ports import HTASError


def tried(loaded: Loaded) -> list[tuple[str, str]]:
    """Each receiver's name, and why it could not be told; empty: it acknowledged. Raises InputError without any."""
    if not loaded.settings.notices:
        raise InputError(
            "notices: none is configured; write such as notices: [{name: chat, url: https://…, form: slack}]"
        )
    note_command(loaded, "htas notices test")
    said = f"Sent by {getpass.getuser()} with htas notices test."
    notice = Notice(Occasion.TEST, "test", "A test of HTAS's notices", said, time.time(), loaded.policy.cluster)
    found = []
    for receiver in receivers_of(loaded, keeps=False):
        try:
            receiver.port.send(notice)
            found.append((receiver.name, ""))
        except HTASError as error:
            found.append((receiver.name, str(error).removeprefix(f"{receiver.name}: ")))
    return found
