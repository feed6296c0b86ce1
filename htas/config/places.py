"""Where the shipped configuration and price files are: beside the package in a checkout, inside it when installed."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def config_file(name: str) -> Path:
    """The path of a shipped file, such as `htas.yaml` or `flavours/openb.yaml`."""
    installed = _PACKAGE / "shipped" / name
    return installed if installed.exists() else _PACKAGE.parent / "config" / name
