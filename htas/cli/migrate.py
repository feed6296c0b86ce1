"""`htas migrate pod`: ask the daemon that leads to move a pod, and watch it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3

from htas.adapters.tokens import read_token
from htas.cli.console import InputError
from htas.config.loader import Loaded
from htas.model.migrations import MigrationState
from htas.model.moves import MigrationMethod
from htas.ports import PermanentError, TransientError

LOOK_S = 0.3
"""Between looks at a move: a process without data takes 3 s."""
PATIENCE_S = 10.0
"""How long a daemon that does not answer is asked again; it may have died, and another lead."""
TIMEOUT_S = 5.0

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asker:
    """Talks to a daemon. `token` is what it wants to see; `pause` passes the time between two looks."""

    url: str
    token: str
    pause: Callable[[float], None] = time.sleep
    ca_file: str | None = None
    """Who has signed the daemon's certificate; None: an authority that this machine trusts."""

    def ask(self, pod: str, node: str, method: str | None, *, force: bool = False) -> Json:
        """Ask for a move; raises PermanentError with what the daemon says to it."""
        wish: Json = {"pod": pod if "/" in pod else f"default/{pod}", "node": node}
        wish |= {} if method is None else {"method": method}
        return self._call("POST", "/api/migrate", {**wish, "force": True} if force else wish)

    def move(
        self, pod: str, node: str, method: MigrationMethod | None, *, watch: bool, force: bool = False
    ) -> Iterator[Json]:
        """Ask, and watch unless that is not wanted: every state that is seen, once."""
        asked = self.ask(pod, node, method.value if method is not None else None, force=force)
        yield asked
        if watch:
            yield from (state for state in self.watch(asked["id"]) if state["state"] != asked["state"])

    def watch(self, request_id: str) -> Iterator[Json]:
        """States until it is over, each once; raises TransientError when nobody answers any more."""
        last: Json | None = None
        failing = 0.0
        while last is None or not last["isOver"]:
            try:
                state = self._call("GET", f"/api/migrate/{request_id}", None)
            except TransientError:
                failing += LOOK_S
                if failing > PATIENCE_S:
                    raise
            else:
                failing = 0.0
                if last is None or (state["state"], state.get("attempt")) != (last["state"], last.get("attempt")):
                    yield state
                last = state
            if last is None or not last["isOver"]:
                self.pause(LOOK_S)

    def _call(self, verb: str, path: str, body: Json | None) -> Json:
        try:
            with urllib3.PoolManager(ca_certs=self.ca_file) as pool:
                answer = pool.request(
                    verb,
                    self.url.rstrip("/") + path,
                    headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
                    body=json.dumps(body) if body is not None else None,
                    timeout=TIMEOUT_S,
                    retries=False,
                )
        except urllib3.exceptions.HTTPError as error:
            raise TransientError(f"{self.url}: no daemon answers: {error}; is it --url?") from error
        if answer.status >= 300:
            raise PermanentError(f"{self.url}: {answer.data.decode(errors='replace').strip()}")
        try:
            said = json.loads(answer.data)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict) or not {"id", "state", "isOver"} <= said.keys():
            raise PermanentError(f"{self.url}: this is no daemon of HTAS: it answered no state of a move; is it --url?")
        return said


def asker_of(loaded: Loaded, url: str | None, token_file: Path | None, ca_file: Path | None = None) -> Asker:
    """How to reach the configured daemon; raises InputError where that is not known."""
    http = loaded.settings.http
    if url is None:
        if http.address is None:
            raise InputError("--url: http.listen is not configured; name the daemon, as in http://127.0.0.1:8080")
        host, port = http.address
        host = "127.0.0.1" if host in ("0.0.0.0", "::") else host
        scheme = "https" if http.tls.cert_file is not None else "http"
        url = f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
    if not url.startswith(("http://", "https://")):
        raise InputError(f"--url: {url!r} is no http://HOST:PORT")
    if token_file is None:
        if http.token_file is None:
            raise InputError("--token-file: http.tokenFile is not configured; name a file with the daemon's token")
        token_file = loaded.directory / http.token_file
    try:
        return Asker(
            url, read_token(token_file, takes_pipes=True), ca_file=str(ca_file) if ca_file is not None else None
        )
    except PermanentError as error:
        raise InputError(f"--token-file: {error}") from None


def failed(state: Json) -> bool:
    """Whether a state is the end of a move that did not happen."""
    return state["state"] in ("Refused", MigrationState.ROLLED_BACK)


def line_of(state: Json) -> str:
    """One state for a terminal; raises PermanentError where it is told otherwise than this version tells it."""
    try:
        return _line_of(state)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"{type(error).__name__}: {error}"
        raise PermanentError(
            f"the daemon's answer about a move is not understood ({what}); is it of this version?"
        ) from None


def _line_of(state: Json) -> str:
    name = state["state"]
    match name:
        case "Asked":
            return f"Asked         {state['pod']} to {state['node']} (request {state['id']})"
        case "Refused" | "RolledBack":
            tries = "" if name == "Refused" else f", at attempt {state['attempt']}; it runs on on {state['from']}"
            reason = f"{state['reason']}: " if state["reason"] else ""
            return f"{name:<14}{reason}{state['detail']}{tries}"
        case "Prepared" if state["attempt"] > 1:
            return f"{name:<14}attempt {state['attempt']}, after {state['reason']}: {state['detail']}"
        case "Done":
            seconds = dict(state["seconds"])
            total = seconds.pop("total", 0.0)
            parts = ", ".join(f"{step} {took:.1f} s" for step, took in seconds.items())
            again = f"; {state['repeatedSeconds']:.1f} s of work done again" if "repeatedSeconds" in state else ""
            where = f"as {state['twin']} " if state["twin"] else ""
            return f"{name:<14}{where}on {state['node']} after {total:.1f} s ({parts}){again}"
        case _:
            size = state["archiveBytes"]
            return f"{name:<14}{size / 2**20:.1f} MiB" if size else name
