"""`htas ui`: the pages without a daemon: of a dump, or of the demo's day, on this machine alone."""

from __future__ import annotations

import hmac
import os
import shlex
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_urlsafe

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from htas.adapters.tokens import shows
from htas.cli import signals
from htas.cli.console import InputError, err
from htas.cli.planning import instant_in, read_cluster
from htas.cli.recognising import recognised_in
from htas.cli.simulate import policy_of
from htas.cli.ui_day import Played, PlayedBeside, PlayedDay
from htas.daemon.http.authorization import Guarded
from htas.daemon.http.logging_in import session_routes, session_secret, set_cookie
from htas.daemon.http.server import Listener
from htas.daemon.http.sessions import Sessions
from htas.daemon.http.wrong_tokens import WrongTokens
from htas.model.modes import Approval
from htas.model.plan import KeptNode
from htas.model.reasons import Kept
from htas.model.snapshot import ClusterSnapshot, ClusterView
from htas.model.stages import Stage
from htas.planning.planner import plan
from htas.planning.what_if.adopting import AdoptedCluster, adopt
from htas.web.api import api_routes
from htas.web.pages import page_routes, text_page
from htas.web.seat import DUMP, Seat, Seen
from htas.web.sent import RequestRefusedError

LOOPBACK = "127.0.0.1"
ENTER = "/assets/enter"
"""Beside the files that anybody may load: it shows nothing, and takes a secret once."""


@dataclass(slots=True)
class OneSecret:
    """A gate with one secret, made at the start and printed nowhere: sessions of the entrance show it, and commands
    that are given the file it was written to.
    """

    secret: str

    def check(self, authorization: str, method: str, path: str) -> str:
        """Raises RequestRefusedError."""
        if not shows(authorization, self.secret):
            raise RequestRefusedError(
                401,
                "open the link that htas ui printed; was it used, start htas ui again. Commands show the token of"
                " htas ui --token-file FILE",
            )
        return "whoever opened the link"


class Entrance:
    """Turns the link that was printed into a session, once. The link's secret is no other's, and is forgotten then:
    a browser's history and the terminal keep it for long.
    """

    def __init__(self, gate: OneSecret, sessions: Sessions) -> None:
        self._gate = gate
        self._sessions = sessions
        self._lock = threading.Lock()
        self.secret: str | None = token_urlsafe(24)

    def enter(self, request: Request) -> Response:
        """Only by GET: what shows previews of links asks with HEAD, and would use it up."""
        if request.method != "GET":
            return PlainTextResponse("open the link\n", 405, {"Allow": "GET"})
        shown = request.query_params.get("once", "").encode("utf-8", "replace")
        with self._lock:
            if self.secret is None:
                return self._used(request)
            if not hmac.compare_digest(shown, self.secret.encode()):
                return text_page(401, "This is not the link", "Open the link as htas ui printed it, to its end.")
            self.secret = None
        answer = RedirectResponse("/", 303, {"Cache-Control": "no-store"})
        set_cookie(answer, request, self._sessions.begin(f"Bearer {self._gate.secret}"))
        return answer

    def _used(self, request: Request) -> Response:
        """Whoever has the session that the link began is led to it."""
        if self._sessions.authorization(session_secret(request)):
            return RedirectResponse("/", 303, {"Cache-Control": "no-store"})
        return text_page(
            403,
            "This link was used already",
            "It works once, in the browser that opens it first. Use that browser, or end htas ui (Ctrl-C) and start it"
            " again: it prints another link.",
        )


def serve(seat: Seat, port: int, secret: str | None = None) -> tuple[Listener, str]:
    """The pages and the API on loopback, and the link that opens them. Raises PermanentError."""
    seat.is_entered_once = True
    gate, sessions, wrong_tokens = OneSecret(secret or token_urlsafe(24)), Sessions(), WrongTokens()
    entrance = Entrance(gate, sessions)
    routes = [
        Route(ENTER, entrance.enter),
        *page_routes(),
        *session_routes(gate, sessions, wrong_tokens),
        *api_routes(seat),
    ]
    guarded = Guarded(Starlette(routes=routes), gate, sessions, wrong_tokens=wrong_tokens)
    listener = Listener((LOOPBACK, port), guarded, "ui", key="--port")
    return listener, f"http://{LOOPBACK}:{listener.port}{ENTER}?once={entrance.secret}"


@contextmanager
def token_in(path: Path | None) -> Iterator[str]:
    """A token for commands, in a file that its owner alone may read, for as long as the pages are served.

    Raises InputError for a file that is there already: it may be another daemon's token.
    """
    token = token_urlsafe(24)
    if path is None:
        yield token
        return
    try:
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        raise InputError(f"--token-file: {path}: is there already; name a file to be written") from None
    except OSError as error:
        raise InputError(f"--token-file: {path}: {error.strerror}") from None
    try:
        try:
            os.write(file, f"{token}\n".encode())
        except OSError as error:
            raise InputError(f"--token-file: {path}: {error.strerror}") from None
        yield token
    finally:
        with suppress(OSError):  # what somebody else has put there meanwhile is theirs
            if os.path.samestat(os.fstat(file), path.lstat()):
                path.unlink()
        os.close(file)


def run(seat: Seat, port: int, token_file: Path | None = None, played: threading.Thread | None = None) -> None:
    """Serve until a signal."""
    done = threading.Event()
    signals.handle(dict.fromkeys((*signals.ENDING, signal.SIGHUP), done.set))
    with token_in(token_file) as token:
        listener, link = serve(seat, port, token)
        listener.start()
        if played is not None:
            played.start()
        err.print(f"open {link}", markup=False, soft_wrap=True)
        if token_file is not None:
            told = f"htas top --server http://{LOOPBACK}:{listener.port} --token-file {shlex.quote(str(token_file))}"
            err.print(told, markup=False, soft_wrap=True)
        err.print("the link works once, on this machine; end with Ctrl-C", style="dim")
        done.wait()
        listener.stop()


# Of a dump.


def seat_of_dump(path: Path, flavours: Path | None, config: Path | None, at: str | None) -> Seat:
    """A dump as if HTAS had bought its nodes, and judged them for long enough. Raises InputError."""
    policy = policy_of(flavours, config)
    dump = read_cluster(path)
    dump, _ = recognised_in(dump, policy.catalogue, ())
    view, now = dump.view, instant_in(at, dump)
    present = adopt(view, policy, now, as_annotated=True)
    made = plan(present.snapshot, present.policy, now)
    snapshot = _with_waiting(present, view)
    placed = plan(snapshot, present.policy, now, frozenset({Stage.SCHEDULING, Stage.AUTOSCALING}))
    staying = {**present.fixed, **present.calm}
    stays = tuple(KeptNode(name, _as_kept(stay.rule), stay.message) for name, stay in staying.items())
    others = tuple(item for item in made.kept if item.node not in staying)
    made = msgspec.structs.replace(
        made,
        kept=(*others, *stays),
        bind=placed.bind,
        nominate=placed.nominate,
        launch=placed.launch,
        proposals=tuple(each for each in made.proposals if not each.launches),
        unplaced=placed.unplaced,
    )
    seat = Seat(DUMP, lambda: present.policy, None, lambda: now)
    seat.observe(Seen(snapshot, made))
    return seat


def _with_waiting(present: AdoptedCluster, view: ClusterView) -> ClusterSnapshot:
    """What runs, and the pods that wait, as if they were HTAS's to place. The nodes are judged without them: a node
    that only waits for such a pod would hide why it is kept otherwise.
    """
    waiting = (
        msgspec.structs.replace(pod, scheduler=present.policy.scheduler_name)
        for pod in view.pods
        if pod.node is None and not pod.is_daemon and not pod.is_terminating
    )
    cluster = present.snapshot.cluster
    return msgspec.structs.replace(
        present.snapshot, cluster=msgspec.structs.replace(cluster, pods=(*cluster.pods, *waiting))
    )


def _as_kept(rule: str) -> Kept:
    return Kept(rule) if rule in set(Kept) else Kept.NOT_AUTOSCALED


# Of the demo.

HOURS, ASKING_H = 10.0, 14_620 / 3600
"""How much of the day is played at once: of `mode: approve` until after a burst, when four proposals wait."""


def demo(
    seed: int,
    hours: float | None,
    speed: float,
    port: int,
    token_file: Path | None = None,
    *,
    recommend: bool = False,
    approve: bool = False,
) -> None:
    """Play the day and serve it meanwhile."""
    hours = hours if hours is not None else ASKING_H if approve else HOURS
    if recommend:
        played: PlayedDay = PlayedBeside(seed, hours, speed)
    else:
        played = Played(seed, hours, speed, Approval() if approve else None)
    run(played.seat, port, token_file, threading.Thread(target=played.play, name="demo", daemon=True))
