"""What earlier versions of htas wrote, kept as they wrote it: a file, and the bodies of a keyspace's rows, by schema."""

import json
from pathlib import Path

FOLDER = Path(__file__).parent


def file_of(schema: int) -> Path:
    """A SQLite store as that schema's last htas left it."""
    return FOLDER / f"schema_{schema}" / "store.sqlite"


def body(schema: int, name: str) -> bytes:
    """One body: drain, rearrangement, suggestion or cycle."""
    return json.dumps(json.loads((FOLDER / f"schema_{schema}" / "bodies.json").read_text())[name]).encode()
