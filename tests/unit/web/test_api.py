"""The API: what is answered, and how it says no; the OpenAPI document tells of all of it."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Lock
from typing import Any

import msgspec
import pytest
import urllib3
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from typer.testing import CliRunner

from htas.adapters.sqlite.store import SqliteStore
from htas.cli.main import app
from htas.daemon.http.server import Listener
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.planning.planner import plan
from htas.ports import GivenError
from htas.web import endpoints
from htas.web.api import MOST_STREAMS, Events, api_routes
from htas.web.endpoints import ENDPOINTS, PREFIX
from htas.web.openapi import openapi
from htas.web.seat import Seat, Seen
from tests.builders import NOW, owned_node
from tests.unit.web.conftest import POLICY, SNAPSHOT, TOKEN

BEARER = {"Authorization": f"Bearer {TOKEN}"}


def ask(url: str, path: str, method: str = "GET", body: object = None, **headers: str) -> urllib3.BaseHTTPResponse:
    sent = {**BEARER, "Connection": "close", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return urllib3.request(method, f"{url}{PREFIX}{path}", headers=sent, json=body, timeout=20.0, retries=False)


def document(url: str, path: str, **more: Any) -> Any:
    answer = ask(url, path, **more)
    assert answer.status == 200, answer.data
    return answer.json()


def test_before_the_first_cycle_there_is_nothing_to_tell(url: str) -> None:
    answer = ask(url, "/cluster")
    assert (answer.status, b"no cycle" in answer.data) == (503, True)


@pytest.mark.usefixtures("saw")
def test_the_cluster_at_a_glance(url: str) -> None:
    told = document(url, "/cluster")
    assert told["totals"]["price_per_hour"] == "0.10"
    assert told["nodes"]["name"] == ["a", "foreign"]
    reasons = [each["reason"] for each in told["reasons"]]
    assert [reasons[i] for i in told["nodes"]["why"]][1] == "NotAutoscaled"
    assert [(each["reason"], each["pods"]) for each in told["waiting"]] == [("NoFlavourFits", 1)]


@pytest.mark.usefixtures("saw")
@pytest.mark.parametrize(
    ("query", "names", "following"),
    [
        pytest.param("", ["a", "foreign"], None, id="all"),
        pytest.param("?limit=1", ["a"], 1, id="the first page"),
        pytest.param("?limit=1&offset=1", ["foreign"], None, id="the last page"),
        pytest.param("?why=DoNotDisrupt", [], None, id="kept for a reason that none has"),
        pytest.param("?text=fore", ["foreign"], None, id="by name"),
        pytest.param("?group=nowhere", [], None, id="of no such group"),
        pytest.param("?reverse=true", ["foreign", "a"], None, id="the emptiest first"),
        pytest.param("?sort=price", ["foreign", "a"], None, id="by price"),
        pytest.param("?sort=price&reverse=true&limit=1", ["a"], 1, id="the first page of the dearest"),
        pytest.param("?sort=pods", ["foreign", "a"], None, id="by pods"),
    ],
)
def test_nodes_a_page_at_a_time(query: str, names: list[str], following: int | None, url: str) -> None:
    page = document(url, f"/nodes{query}")
    assert ([each["node"]["node"] for each in page["items"]], page["next"]) == (names, following)


@pytest.mark.usefixtures("saw")
def test_a_pod_that_waits_is_told_which_flavours_refused_it(url: str) -> None:
    (waiting,) = document(url, "/pods?waiting=true")["items"]
    told = document(url, f"/pods/{waiting['pod']}")
    assert [(each["flavour"], each["why"]) for each in told["refusals"]] == [
        ("small", "Insufficient cpu"),
        ("large", "Insufficient cpu"),
    ]
    assert told["meaning"]["remedy"]
    assert document(url, f"/explain/pod?name={waiting['pod']}")["lines"] == told["lines"]


@pytest.mark.usefixtures("saw")
@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        pytest.param("/nodes/none", 404, "there is none now", id="no such node"),
        pytest.param("/pods/default/none", 404, "there is none now", id="no such pod"),
        pytest.param("/explain/pod?name=default/none", 404, "there is none", id="why, of no such pod"),
        pytest.param("/explain/node?name=none", 404, "none", id="why, of no such node"),
        pytest.param("/nodes?limit=0", 400, "limit", id="a page of nothing"),
        pytest.param("/nodes?sort=colour", 400, "sort", id="an order that there is not"),
        pytest.param("/money?since=99999999999", 400, "before", id="money of the future"),
        pytest.param("/nodes?colour=red", 400, "colour", id="an unknown query"),
        pytest.param("/cycles/99/replay", 404, "not in the store", id="no such cycle"),
        pytest.param("/cycles/x/replay", 400, "is no number", id="no number"),
        pytest.param("/costs?since=nan", 400, "since", id="no number of seconds"),
        pytest.param("/costs?since=-inf", 400, "since", id="since ever"),
        pytest.param("/costs?until=inf", 400, "until", id="for ever"),
        pytest.param("/history?since=nan", 400, "since", id="history since no number"),
        pytest.param("/money?hours=nan", 400, "hours", id="a window of no number"),
        pytest.param("/costs?since=5&until=1", 400, "is before since", id="a window that ends before it begins"),
        pytest.param("/history?cycles=20000", 400, "cycles", id="more cycles than one answer tells of"),
        pytest.param("/history?limit=0", 400, "limit", id="a history of nothing"),
        pytest.param("/recommendation", 404, "nothing is recommended here", id="advice of a daemon that acts"),
        pytest.param("/costs?against=5+nothing", 400, "against: there is no flavour", id="no such flavour"),
        pytest.param("/costs?against=many", 400, "against: 'many' is no alternative", id="no such way"),
    ],
)
def test_what_makes_no_sense_is_told(path: str, status: int, words: str, url: str) -> None:
    answer = ask(url, path)
    assert (answer.status, words in answer.data.decode(), b"--" in answer.data) == (status, True, False), answer.data


def test_what_is_gone_is_explained_by_what_was_decided_about_it(url: str, seat: Seat) -> None:
    moved = Outcome(Action.MOVED, "default/gone-1", OutcomeStatus.DONE, "from b to a in 3 s")
    ended = [
        Outcome(Action.LAUNCH, "c-7", OutcomeStatus.DONE),
        Outcome(Action.UNDO_DRAIN, "b", OutcomeStatus.DONE, "a newcomer"),
        Outcome(Action.DRAIN, "b", OutcomeStatus.FAILED, "a budget refused"),
        moved,
    ]
    seat.observe(Seen(SNAPSHOT, plan(SNAPSHOT, POLICY, NOW), tuple(ended), number=1))
    at = "1970-01-12T13:46:40Z"
    assert document(url, "/explain/node?name=b")["lines"] == [
        "node b: there is none now; what was decided about it:",
        f"{at} undo: a newcomer",
        f"{at} drain (failed): a budget refused",
    ]
    for name in ("gone-1", "default/gone-1"):
        assert document(url, f"/explain/pod?name={name}")["lines"][1:] == [f"{at} move default/gone-1: {moved.message}"]
    assert ask(url, "/explain/pod?name=b").status == 404, "a node is no pod"
    assert ask(url, "/explain/node?name=c").status == 404


@pytest.mark.usefixtures("saw")
def test_another_way_that_there_is_not_is_told_without_the_option_of_a_command(url: str) -> None:
    told = document(url, "/against?way=5+nothing")["told"]
    assert told.startswith("there is no flavour 'nothing'"), told


@pytest.mark.usefixtures("saw")
@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param({"prices": {f"{n}{'x' * 20}": "1" for n in range(7_000)}}, "prices.49", id="prices"),
        pytest.param({"replicas": {f"{n}{'x' * 20}": 1 for n in range(7_000)}}, "replicas.49", id="services"),
    ],
)
def test_of_many_problems_the_first_are_told(change: dict[str, Any], told: str, url: str) -> None:
    """10,000 unknown prices were answered by 1.2 MB, after a look for what each was meant to be."""
    answer = ask(url, "/simulate", method="POST", body=change)
    *lines, last = answer.data.decode().splitlines()
    assert (answer.status, len(lines), last) == (400, 50, "and 6,950 more")
    assert lines[-1].startswith(told)
    assert all("there" in line for line in lines), "what there is instead"


@pytest.mark.usefixtures("saw")
def test_what_has_not_changed_is_not_sent_again(url: str) -> None:
    first = ask(url, "/cluster")
    assert ask(url, "/cluster", If_None_Match=first.headers["ETag"]).status == 304
    assert ask(url, "/cluster", If_None_Match='"other"').status == 200


@pytest.mark.usefixtures("saw")
@pytest.mark.parametrize(
    ("change", "check"),
    [
        pytest.param({}, lambda told: told["now"]["price_per_hour"] == "0.10", id="nothing"),
        pytest.param({"prices": {"small": "0.50"}}, lambda told: told["now"]["price_per_hour"] == "0.50", id="a price"),
        pytest.param(
            {"flavours": [{"name": "tiny", "cpu": "3", "memory": "6Gi", "price": "0.01"}], "lift": ["ServiceNotOptedIn"]},
            lambda told: told["best"]["flavours"] == {"tiny": 1},
            id="a cheaper flavour, where its pods may move",
        ),
    ],
)  # fmt: skip
def test_what_if(change: dict[str, Any], check: Any, url: str) -> None:
    assert check(document(url, "/simulate", method="POST", body=change))


@pytest.mark.usefixtures("saw")
def test_a_change_is_compared_with_the_cluster_of_the_same_moment(seat: Seat, url: str) -> None:
    """Not with that of an hour ago, when the page was opened: a node more was then told as what the change costs."""
    opened = document(url, "/what-if")["as_is"]
    seen, later = seat.picture(), owned_node("later", flavour="small")
    cluster = msgspec.structs.replace(seen.snapshot.cluster, nodes=(*seen.snapshot.cluster.nodes, later))
    snapshot = msgspec.structs.replace(seen.snapshot, cluster=cluster)
    seat.observe(Seen(snapshot, plan(snapshot, seen.policy, NOW), (), number=9))
    seat.renew()
    told = document(url, "/simulate", method="POST", body={"prices": {"small": "0.50"}})
    assert (opened["now"]["nodes"], told["as_is"]["now"]["nodes"], told["now"]["nodes"]) == (1, 2, 2)
    assert told["as_is"]["best"] == document(url, "/what-if")["as_is"]["best"]


@pytest.mark.usefixtures("saw")
def test_what_ifs_at_once_are_refused_but_one(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, may_end = Event(), Event()

    def slow(*_: object) -> None:
        entered.set()
        assert may_end.wait(20.0)
        raise GivenError("over")

    monkeypatch.setattr(endpoints, "simulated", slow)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask, url, "/simulate", "POST", {"prices": {"small": "0.50"}})
        assert entered.wait(20.0)
        others = [ask(url, "/simulate", "POST", {"prices": {"small": f"0.{n}"}}) for n in range(1, 4)]
        may_end.set()
    assert [(each.status, each.headers["Retry-After"]) for each in others] == [(503, "1")] * 3
    assert first.result().data == b"over\n"


@pytest.mark.usefixtures("saw")
@pytest.mark.parametrize("path", ["/money?hours={}", "/against?way=peak&hours={}", "/decisions?text={}"])
def test_a_page_asked_for_in_many_ways_is_worked_out_one_at_a_time(
    path: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """40 askers, each of another window, stopped scheduling: one cycle in 15 s."""
    at_it, most, lock = 0, 0, Lock()

    def slow(*_: object, **__: object) -> dict[str, str]:
        nonlocal at_it, most
        with lock:
            at_it += 1
            most = max(most, at_it)
        time.sleep(0.05)
        with lock:
            at_it -= 1
        return {}

    for name in ("money_report", "against", "decision_page"):
        monkeypatch.setattr(endpoints, name, slow)
    with ThreadPoolExecutor(20) as pool:
        found = [each.status for each in pool.map(lambda n: ask(url, path.format(n)), range(1, 21))]
    assert (most, set(found)) == (1, {200, 503}), found


def test_whatever_takes_long_has_its_turn() -> None:
    without = {each.path for each in ENDPOINTS if each.turns is None}
    assert without.isdisjoint({"/money", "/against", "/decisions", "/what-if", "/simulate", "/costs", "/history"})


@pytest.mark.usefixtures("saw")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lift": ["Gravity"]}, "no rule 'Gravity'"),
        ({"prices": {"small": "-1"}}, "is negative"),
        ({"prices": {"none": "1"}}, "there is no flavour 'none'"),
        ({"replicas": {"default/ReplicaSet/none": 3}}, "there is no service"),
        ({"flavours": [{"name": "x", "cpu": "many", "memory": "1Gi", "price": "1"}]}, "is not a quantity"),
        ({"color": 1}, "unknown field"),
    ],
)
def test_a_change_that_makes_no_sense(change: dict[str, Any], words: str, url: str) -> None:
    answer = ask(url, "/simulate", method="POST", body=change)
    assert (answer.status, words in answer.data.decode()) == (400, True), answer.data


@pytest.mark.usefixtures("saw")
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"\xff", id="no UTF-8"),
        pytest.param(b'{"lift": ["\xff"]}', id="no UTF-8 in a word"),
        pytest.param(b'{"token": "\xff", "lift": 1}', id="no UTF-8 in a token"),
        pytest.param(b'{"x": ' + b"[" * 16_000, id="lists without end"),
        pytest.param(b"{", id="half of it"),
    ],
)
@pytest.mark.parametrize("path", ["/session", f"{PREFIX}/simulate"])
def test_a_body_that_cannot_be_read_is_a_bad_request(path: str, body: bytes, url: str) -> None:
    sent = {**BEARER, "Connection": "close", "Content-Type": "application/json"}
    answer = urllib3.request("POST", f"{url}{path}", headers=sent, body=body, timeout=20.0, retries=False)
    assert answer.status == 400, answer.data


@pytest.mark.parametrize("path", ["/session", f"{PREFIX}/simulate"])
def test_a_body_that_is_cut_off_leaves_no_traceback(path: str, url: str, caplog: pytest.LogCaptureFixture) -> None:
    host, _, port = url.removeprefix("http://").partition(":")
    for _ in range(3):
        with socket.create_connection((host, int(port)), timeout=10.0) as connection:
            head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 99"
            connection.sendall(f"{head}\r\n\r\n{{".encode())
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(4096):
                pass
    assert ask(url, "/nodes").status == 503, "it goes on"
    assert [record for record in caplog.records if record.exc_info] == []


def test_streams_that_come_at_once_have_places_and_a_look_at_the_head_has_none(seat: Seat) -> None:
    asyncio.run(_streams(Events(seat)))


async def _streams(events: Events) -> None:
    get, head = (Request({"type": "http", "method": method, "headers": []}) for method in ("GET", "HEAD"))
    assert [(await events.stream(head)).status_code for _ in range(2 * MOST_STREAMS)] == [200] * 2 * MOST_STREAMS
    streams = [await events.stream(get) for _ in range(MOST_STREAMS)]
    assert (await events.stream(get)).status_code == 503

    async def gone(*_: object) -> Any:
        raise OSError("the client has gone")

    with pytest.raises((OSError, ClientDisconnect)):
        await streams[0]({"type": "http", "asgi": {"spec_version": "2.4"}}, gone, gone)
    assert (await events.stream(get)).status_code == 200


def test_a_stream_ends_with_its_listener_and_without_a_word(seat: Seat, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever ends `htas ui`, or a daemon, while a page is open was told of a cancelled task, in sixty lines."""
    listener = Listener(("127.0.0.1", 0), Starlette(routes=api_routes(seat)), "test")
    listener.start()
    try:
        address = f"http://127.0.0.1:{listener.port}{PREFIX}/events"
        answer = urllib3.request("GET", address, preload_content=False, timeout=20.0)
        assert answer.status == 200, answer.data
        lines = answer.stream()  # dropped, it would close the connection
        assert next(lines), "it has begun"
    finally:
        listener.stop()
    for _ in lines:
        pass  # it has ended, or this raises
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


def test_every_endpoint_is_described_and_every_reference_is_there() -> None:
    told = openapi()
    assert {f"{PREFIX}{each.path}" for each in ENDPOINTS} < set(told["paths"])
    referred = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(told)))
    assert referred <= set(told["components"]["schemas"])


OPERATIONS = [(path, method.upper(), told) for path, of in openapi()["paths"].items() for method, told in of.items()]


def refused(status: int, path: str, method: str, url: str) -> int:
    """What is answered to a request that ought to be refused with that status."""
    where = re.sub(r"{\w+}", "none", path)
    sent: dict[str, Any] = {"headers": {**BEARER, "Connection": "close"}}
    if method == "POST":
        sent |= {"body": b"{}"}
        sent["headers"] |= {"Content-Type": "application/json"}
    if status == 401:
        del sent["headers"]["Authorization"]
    if status == 403:
        sent["headers"] |= {"Origin": "https://elsewhere.example"}
    if status == 405:
        method = "PUT"
    if status == 413:
        sent["body"] = b" " * 300_000
    if status == 415:
        sent["headers"] |= {"Content-Type": "text/plain"}
    asks = "?bogus=1" if status == 400 else ""
    return urllib3.request(method, f"{url}{where}{asks}", timeout=20.0, retries=False, **sent).status


@pytest.mark.usefixtures("saw")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413, 415])
def test_what_the_server_answers_is_described(status: int, url: str) -> None:
    """Of every operation; a generated client knows what it may get."""
    found = {}
    for path, method, told in OPERATIONS:
        if method == "GET" and (status in (403, 413, 415) or path.endswith("/events")):
            continue
        answer = found[path, method] = refused(status, path, method, url)
        assert str(answer) in told["responses"], (path, answer)
    assert status in found.values()


@pytest.mark.usefixtures("saw")
@pytest.mark.parametrize(
    ("query", "subjects"),
    [("", ["b", "c", "d"]), ("?limit=2", ["c", "d"]), ("?limit=1&verb=drain", ["b"]), ("?cycles=1", ["c", "d"])],
    ids=["all", "the newest two entries, of one cycle", "the newest drain", "the newest cycle"],
)
def test_the_limit_of_history_counts_entries(query: str, subjects: list[str], store: SqliteStore, url: str) -> None:
    """It counted cycles: limit=2 gave one entry, or hundreds."""
    bought = tuple(Outcome(Action.LAUNCH, name, OutcomeStatus.DONE, "") for name in "cd")
    store.add_cycle(msgspec.structs.replace(next(store.cycles(limit=1)), outcomes=bought))
    assert [each["subject"] for each in document(url, f"/history{query}")["entries"]] == subjects


@pytest.mark.usefixtures("saw")
@pytest.mark.parametrize(
    ("path", "words"),
    [
        pytest.param("/history?verb=drian", "did you mean drain?", id="a verb that there is not"),
        pytest.param("/decisions?kind=bought", "there are", id="a kind of decision that there is not"),
        pytest.param("/nodes?colour=red", "colour", id="a filter that there is not"),
    ],
)
def test_a_filter_that_there_is_not_is_no_empty_answer(path: str, words: str, url: str) -> None:
    answer = ask(url, path)
    assert (answer.status, words in answer.data.decode()) == (400, True), answer.data


@pytest.mark.usefixtures("saw")
@pytest.mark.parametrize(
    "command",
    [
        ["top"],
        ["top", "-o", "csv"],
        ["cost"],
        ["cost", "--by", "namespace", "-o", "csv"],
        ["cost", "--against", "3 large"],
        ["history"],
        ["history", "--cycles"],
        ["plan"],
        ["plan", "-o", "json"],
        ["explain", "node", "a"],
        ["explain", "pod", "default/huge"],
        ["replay", "1"],
    ],
    ids=" ".join,
)
def test_commands_ask_a_server(command: list[str], url: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [*command, "--server", url, "--token-file", str(tmp_path / "token")])
    assert (result.exit_code, result.stderr) == (0, ""), result.output


def test_a_command_without_the_token_is_told_so(saw: Seat, url: str) -> None:
    result = CliRunner().invoke(app, ["top", "--server", url])
    assert result.exit_code == 1
    assert "--token-file" in result.stderr


def test_a_dump_has_no_past(seat: Seat, saw: Seat, url: str) -> None:
    seat.reading = None
    assert ask(url, "/money").status == 503
    assert document(url, "/decisions")["items"] == []
    assert document(url, "/nodes/a")["spent"] == "", "a node that was there before had cost 9.89 by then"
