"""Orphans that the journal alone shows.

A module of its own: `htas check` asks neither cluster nor cloud, unless it is told to, and loads nothing for them.
"""

from __future__ import annotations

from htas.config.loader import Loaded
from htas.daemon.wiring.stores import has_store, reading_store
from htas.execution.orphans import orphans
from htas.model.claims import NodeClaim
from htas.model.orphans import Orphan


def journalled(loaded: Loaded) -> tuple[NodeClaim, ...]:
    """The claims of the journal; none where there is none, as on another machine than the daemon's."""
    if (loaded.sqlite is not None and loaded.sqlite.path == ":memory:") or not has_store(loaded):
        return ()
    with reading_store(loaded) as store:
        return tuple(store.claims())


def orphans_recorded(loaded: Loaded) -> tuple[Orphan, ...]:
    """Machines of groups and flavours that the configuration has no more, by the journal's file here."""
    return orphans((), journalled(loaded), (), loaded.policy) if loaded.sqlite is not None else ()
