"""The reference of the commands: what each says of itself."""

from __future__ import annotations

from collections.abc import Iterator

from htas.cli.main import app
from htas.cli.manual import ManualPage, entries

HEAD = """# Commands
This page has what `htas COMMAND --help` prints, for every command. `htas man` prints the same as a man page.

## Often used
    htas plan     --config config/htas.yaml --from dump.json                 # what HTAS would do
    htas optimize --config config/htas.yaml --from dump.json --budget 10s    # the best placement
    htas explain pod  NAMESPACE/NAME --config config/htas.yaml --from dump.json
    htas explain node NAME           --config config/htas.yaml --from dump.json --steady
    htas cost --by namespace --since 2026-11-01       # or owner, group, flavour, day; what no pod used is (idle)
    htas cost --against peak                          # compared with the peak of the same work, rented all the time
    htas cost --against homogeneous                   # compared with the cheapest single flavour
    htas cost --by owner -o csv                       # for spreadsheets
    htas history --cycles -o jsonl                    # for programs

`--steady` judges nodes as if they had been like this for long enough, since a dump has no past.
Without `--from` these commands read the cluster of your kubeconfig, and change nothing there.

## Which configuration, which daemon
`--config` names the configuration, else `HTAS_CONFIG`, else the first of `./htas.yaml`, `./config/htas.yaml`,
`~/.config/htas/htas.yaml` and `/etc/htas/htas.yaml` that exists. The command prints which file it found.
`--server` asks a running daemon instead:

    htas cost --server htas-system/htas                              # NAMESPACE/RELEASE, through kubectl
    htas cost --server https://htas.example --token-file token       # an address

Exit status: 0 done, 1 the operation failed, 2 bad usage or bad input.

## Completion, man page and kubectl
    source <(htas completion bash)                                   # in ~/.bashrc
    source <(htas completion zsh)                                    # in ~/.zshrc, after compinit
    htas completion fish > ~/.config/fish/completions/htas.fish
    htas man > ~/.local/share/man/man1/htas.1

With `kubectl-htas` and `kubectl_complete-htas` on the PATH, every command is a `kubectl htas` command, too.

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
