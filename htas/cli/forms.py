"""How results are printed, and by what they are split: the choices that options offer."""

from __future__ import annotations

from enum import StrEnum


class Form(StrEnum):
    """How one result is printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class Export(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    CSV = "csv"
    JSONL = "jsonl"


class Shell(StrEnum):
    """Shells that can complete commands."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


class SimulationForm(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    YAML = "yaml"
