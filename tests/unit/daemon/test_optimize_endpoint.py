"""`/api/optimize`: searches are asked for by people, one at a time, and told of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import urllib3

from htas.daemon.http.app import Endpoints, HttpServer
from htas.daemon.http.authorization import Gate
from htas.daemon.http.migrate_endpoint import MigrateEndpoint
from htas.daemon.http.optimize_endpoint import PATH, OptimizeEndpoint
from htas.daemon.telemetry.health import Health
from htas.daemon.telemetry.metrics import Metrics
from htas.model.disruptions import rearrangement_of
from htas.model.policy import Cycles, FallbackMode
from htas.web.seat import Seat
from tests.builders import make_policy
from tests.stories.test_rearranging import Full, figure_1, nodes, until, web

Answer = tuple[int, dict[str, object] | str]


class Asked:
    """The server of a daemon, which leads once `desk` is open for it."""

    def __init__(self, token_file: Path) -> None:
        token_file.write_text("let-me\n")
        self.desk = OptimizeEndpoint()
        self.metrics = Metrics()
        desks = Endpoints(Health(Cycles()), self.metrics, MigrateEndpoint(), self.desk, Seat("live", make_policy))
        self._server = HttpServer(("127.0.0.1", 0), desks, Gate(token_file))
        self._server.start()

    def __call__(self, method: str, token: str = "let-me") -> Answer:
        url = f"http://127.0.0.1:{self._server.port}{PATH}"
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = urllib3.request(method, url, headers=headers, timeout=10.0)
        text = answer.data.decode()
        is_json = answer.headers.get("content-type") == "application/json"
        return answer.status, json.loads(text) if is_json else text

    def open_for(self, story: Full) -> None:
        story.daemon.listeners.append(self.metrics.observe)
        story.daemon.searching.on_answer = self.metrics.searches.answered
        self.desk.searching = story.daemon.searching

    def stop(self) -> None:
        self._server.stop()


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Asked]:
    asked = Asked(tmp_path / "token")
    yield asked
    asked.stop()


def test_only_the_daemon_that_leads_is_asked(ask: Asked) -> None:
    assert ask("POST") == (503, "this daemon does not lead; use the one that does\n")
    assert ask("GET")[0] == 503


def test_those_who_ask_and_those_who_look_show_the_token(ask: Asked) -> None:
    ask.open_for(Full(nodes("a"), {"one-1": "a"}, [web("one", 2000)], None))
    assert ask("POST", "") == (401, "show the token of http.tokenFile (Authorization: Bearer …)\n")
    assert ask("POST", "another")[0] == 401
    assert ask("GET", "")[0] == 401
    assert ask("GET")[0] == 404
    assert ask("POST")[0] == 202


def test_a_search_is_asked_for_made_and_told(ask: Asked) -> None:
    story = Full(nodes("a"), {"one-1": "a"}, [web("one", 2000)], None)
    ask.open_for(story)
    assert ask("GET") == (404, f"nothing has been searched for yet; POST {PATH} starts a search\n")
    status, told = ask("POST")
    assert (status, isinstance(told, dict) and (told["id"], told["state"])) == (202, (1, "asked"))
    assert ask("POST") == (409, f"search 1 is under way (asked); see GET {PATH}\n")
    story.play(60)
    status, told = ask("GET")
    assert isinstance(told, dict)
    assert (status, told["state"], told["status"], told["askedBy"]) == (200, "done", "AlreadyOptimal", "request")
    assert ask("POST")[0] == 202
    text = ask.metrics.render().decode()
    assert 'htas_searches_total{status="AlreadyOptimal"} 1.0' in text


def test_where_nothing_is_to_be_rearranged_no_search_is_taken(ask: Asked) -> None:
    story = Full(nodes("a"), {"one-1": "a"}, [web("one", 2000)], None)
    off = msgspec.structs.replace(story.daemon.policy.fallback, mode=FallbackMode.OFF)
    story.daemon.adopt(msgspec.structs.replace(story.daemon.policy, fallback=off))
    ask.open_for(story)
    told = "fallback.mode is off: nothing that runs is rearranged; set it to optimize\n"
    assert ask("POST") == (409, told)
    assert ask("GET")[0] == 404


def test_while_what_was_found_is_carried_out_no_other_search_is_begun(ask: Asked) -> None:
    story = figure_1()
    ask.open_for(story)
    until(story, lambda: rearrangement_of(story.store.disruptions()) is not None)
    assert ask("POST") == (409, f"search 1 is under way (rearranging); see GET {PATH}\n")
    assert "htas_rearranging_pods 2.0" in ask.metrics.render().decode()
    story.play(200)
    status, told = ask("GET")
    assert isinstance(told, dict)
    assert (status, told["state"], told["askedBy"]) == (200, "done", "plan")
    assert 'htas_rearrangements_total{result="Completed"} 1.0' in ask.metrics.render().decode()
