"""The reference of the commands: what each says of itself."""

from __future__ import annotations

from collections.abc import Iterator

from htas.cli.main import app
from htas.cli.manual import ManualPage, entries

HEAD = """# Commands
What `htas COMMAND --help` says, of every command; `htas man` prints it for man, and `kubectl htas` is the same
as a plugin of kubectl.
Exit status: 0 done, 1 the operation failed, 2 bad usage or bad input.

"""


def commands_page() -> str:
    """docs/reference/commands.md."""
    return HEAD + "\n".join(line for entry in entries(app) for line in _section(entry))


def _section(entry: ManualPage) -> Iterator[str]:
    yield f"## `{entry.name}`\n"
    yield f"{_cell(entry.summary)}\n"
    yield f"    {entry.usage}\n"
    rows = (*entry.arguments, *entry.options)
    if rows:
        yield "| | |\n|---|---|"
        yield from (f"| `{form.replace('|', chr(92) + '|')}` | {_cell(said)} |" for form, said in rows)
        yield ""


def _cell(text: str) -> str:
    """Within a table, and never a tag of HTML."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
