"""What earlier versions of htas wrote, kept as they wrote it: a file, and the bodies of a keyspace's rows, by schema."""

import json
from pathlib import Path

FOLDER = Path(__file__).parent


FORMS = "3", "3_moves"
"""Schema 3 as it was, and with one type of move, before there was one queue."""


def file_of(form: str, name: str = "store") -> Path:
    """A SQLite store as that form's last htas left it; of "3_moves" also the `buffer` before a store that was away."""
    return FOLDER / f"schema_{form}" / f"{name}.sqlite"


def body(form: str, name: str) -> bytes:
    """One body: drain, rearrangement, suggestion or cycle."""
    return json.dumps(json.loads((FOLDER / f"schema_{form}" / "bodies.json").read_text())[name]).encode()
