"""Experiments: `python -m tools.lab run`, `workload`, `list` and `report`."""

from __future__ import annotations

from tools.lab.commands import app

if __name__ == "__main__":
    app(prog_name="python -m tools.lab")
