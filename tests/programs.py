"""Programs that a test writes and runs."""

from __future__ import annotations

import subprocess
from pathlib import Path


def write_program(path: Path, text: str) -> None:
    """Write an executable by another process, for whoever forks in this one while a file is open keeps it open.

    What somebody holds open for writing cannot be run ("Text file busy"), and a shell takes the next of that name on PATH.
    """
    subprocess.run(["install", "-m", "755", "/dev/stdin", str(path)], input=text, text=True, check=True)
