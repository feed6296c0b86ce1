"""`kubectl htas`: the commands as a plugin of kubectl, which finds it by the name kubectl-htas, and its completion.

kubectl (1.26 and newer) completes what follows `kubectl htas` by running `kubectl_complete-htas` with the words typed,
the last of them unfinished. The answer is one word a line, and at the end `:` and a sum of cobra's directives.
"""

from __future__ import annotations

import io
import os
import shlex
import sys
from contextlib import redirect_stdout

from htas.cli.main import app

FILES = ":0"
"""The shell completes names of files."""
NO_FILES = ":4"
_PROTOCOL = "_HTAS_COMPLETE"


def main() -> None:
    """`kubectl htas …`."""
    app(prog_name="kubectl htas")


def complete() -> None:
    """Print what may follow the words of the command line, as kubectl wants it."""
    found = candidates(sys.argv[1:] or [""])
    sys.stdout.write("".join(f"{word}\n" for word in found) + (NO_FILES if found else FILES) + "\n")


def candidates(words: list[str]) -> list[str]:
    """What may stand instead of the last of `words`; asked by the protocol that `htas completion bash` uses."""
    typed = shlex.join(["htas", *words])
    asked = {_PROTOCOL: "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words))}
    said = io.StringIO()
    os.environ.update(asked)
    try:
        with redirect_stdout(said):
            app(prog_name="htas")
    except SystemExit:
        pass  # the protocol ends the process once it has answered
    finally:
        for name in asked:
            del os.environ[name]
    return [line for line in said.getvalue().splitlines() if line]  # of a file's name the answer is an empty line
