"""Who asked for what: whether that is written down, and where."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from htas.config.values import Section, Text, Units


class Audited(StrEnum):
    """What of it."""

    ALL = "all"
    CHANGES = "changes"
    """What changes something, and what was refused: no reading of pages and plans."""


class AuditSetting(Section):
    """A line of JSON for each request over HTTP (probes, metrics, empty pages aside), and for what commands change."""

    to: Text | None = Field(
        default=None,
        description='A file, relative to this one unless absolute, or "-": standard output (no commands). null: none.',
    )
    what: Audited = Field(
        default=Audited.ALL, description="all; changes: what changes something, and what was refused."
    )
    max_bytes: Units = Field(
        default=16 * 2**20,
        ge=65_536,
        description="A file that long becomes FILE.1, replacing the last; 16Mi: 60,000 lines.",
    )
