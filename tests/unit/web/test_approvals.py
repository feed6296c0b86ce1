"""A word over HTTP: who may say it, of what, and that no page says it for its visitor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import urllib3
from typer.testing import CliRunner

from htas.cli.main import app
from htas.daemon.http.app import Endpoints, HttpServer
from htas.daemon.http.authorization import Gate
from htas.daemon.http.migrate_endpoint import MigrateEndpoint
from htas.daemon.http.optimize_endpoint import OptimizeEndpoint
from htas.daemon.telemetry.health import Health
from htas.daemon.telemetry.metrics import Metrics
from htas.documents.approvals import approvals_report
from htas.execution.approvals import Approvals, meant
from htas.model.approvals import Leaving
from htas.model.modes import Approval
from htas.model.moves import MigrationMethod
from htas.model.plan import Plan
from htas.model.policy import Cycles
from htas.model.proposals import Proposal, Release
from htas.model.reasons import ProposalReason
from htas.model.stages import ALL_STAGES, Stage
from htas.planning.planner import plan
from htas.ports import GivenError, User
from htas.web.seat import Seat, Seen
from tests.builders import NOW, make_move
from tests.unit.web.conftest import POLICY, SNAPSHOT, TOKEN

ASKING = msgspec.structs.replace(POLICY, approval=Approval())
PROPOSED: Plan = msgspec.structs.replace(
    plan(SNAPSHOT, POLICY, NOW),
    proposals=(
        Proposal(
            ProposalReason.UNDERUTILIZED,
            (make_move("default/web-1", "a", "foreign"),),
            releases=(Release("a", "a"),),
            value=100_000_000,
        ),
    ),
)


class Users:
    """alice may get and post, bob may only get."""

    def user_of(self, token: str) -> User | None:
        return User(token) if token in ("alice", "bob") else None

    def may(self, user: User, verb: str, path: str) -> bool:
        return verb == "get" or user.name == "alice"


@pytest.fixture
def approvals(seat: Seat) -> Approvals:
    made = Approvals(Approval(), lambda: NOW)
    made.gate(PROPOSED, SNAPSHOT, "USD")
    seat.policy = lambda: ASKING
    seat.approvals = made
    seat.observe(Seen(SNAPSHOT, PROPOSED))
    return made


@pytest.fixture
def address(seat: Seat, approvals: Approvals, tmp_path: Path) -> Iterator[str]:
    (tmp_path / "token").write_text(TOKEN)
    desks = Endpoints(Health(Cycles()), Metrics(), MigrateEndpoint(), OptimizeEndpoint(), seat)
    server = HttpServer(("127.0.0.1", 0), desks, Gate(tmp_path / "token", Users()))
    server.start()
    yield f"http://127.0.0.1:{server.port}"
    server.stop()


def say(address: str, body: Any, token: str = TOKEN, **headers: str) -> urllib3.BaseHTTPResponse:
    sent = {"Authorization": f"Bearer {token}", **{name.replace("_", "-"): text for name, text in headers.items()}}
    return urllib3.request("POST", f"{address}/api/v1/approvals", headers=sent, json=body, timeout=10.0, retries=False)


def waiting(approvals: Approvals) -> list[str]:
    return [each.question.id for each in approvals.asked() if each.state == "waiting"]


@pytest.mark.parametrize(
    ("token", "who"),
    [pytest.param("alice", "alice", id="a user"), pytest.param(TOKEN, "http.tokenFile", id="the token of the file")],
)
def test_who_said_yes_is_noted(token: str, who: str, address: str, approvals: Approvals, seat: Seat) -> None:
    (key,) = waiting(approvals)
    before = seat.version
    answer = say(address, {"verdict": "approve", "ids": [key]}, token)
    assert seat.version > before, "pages are told at once"
    assert (answer.status, answer.json()["items"][0]["who"]) == (200, who)
    allowed, outcomes = approvals.gate(PROPOSED, SNAPSHOT, "USD")
    assert allowed.proposals == PROPOSED.proposals
    assert [(each.action, each.target) for each in outcomes] == [("approve", who)]


@pytest.mark.parametrize(
    ("seconds", "stages"),
    [
        pytest.param(20.0, ALL_STAGES, id="its node was judged without it"),
        pytest.param(180.0, frozenset({Stage.SCHEDULING}), id="nobody has judged nodes for long"),
    ],
)
def test_a_yes_to_what_no_plan_has_any_more_is_told_as_such(
    seconds: float, stages: frozenset[Stage], address: str, approvals: Approvals, seat: Seat, tmp_path: Path
) -> None:
    """It was told to be carried out with the next cycles, and nothing came of it."""
    later = msgspec.structs.replace(SNAPSHOT, taken_at=NOW + seconds)
    approvals.gate(Plan(NOW + seconds), later, "USD")
    seat.renew()
    seat.observe(Seen(later, Plan(NOW + seconds), stages=stages))
    (key,) = waiting(approvals)
    (said,) = say(address, {"verdict": "approve", "ids": [key]}).json()["items"]
    assert (said["state"], said["is_proposed"], said["proposed_last"]) == ("approved", False, NOW)
    server = ["--server", address, "--token-file", str(tmp_path / "token")]
    listed = CliRunner().invoke(app, ["approve", "--list", *server], env={"COLUMNS": "400"})
    assert "it counts if it is proposed again" in listed.output


def test_of_each_pod_is_told_whether_it_is_evicted_or_migrated_and_where_to(
    address: str, approvals: Approvals, tmp_path: Path
) -> None:
    token = {"Authorization": f"Bearer {TOKEN}"}
    (item,) = urllib3.request("GET", f"{address}/api/v1/approvals", headers=token, timeout=10.0).json()["items"]
    assert item["moves"] == [{"pod": "default/web-1", "method": "evict", "target": "foreign"}]
    server = ["--server", address, "--token-file", str(tmp_path / "token")]
    listed = CliRunner().invoke(app, ["approve", "--list", *server], env={"COLUMNS": "400"})
    assert "default/web-1: evicted, restarts on foreign" in listed.output


@pytest.mark.parametrize(
    ("move", "how"),
    [
        (Leaving("p", MigrationMethod.EVICT), "evicted, restarts where it fits"),
        (Leaving("p", MigrationMethod.EVICT, "n"), "evicted, restarts on n"),
        (Leaving("p", MigrationMethod.KUBELET_CHECKPOINT, "n"), "migrated to n by kubelet-checkpoint"),
        (Leaving("p", MigrationMethod.REPLACE, "n"), "replaced by a copy on n"),
        (Leaving("p"), "leaves once the new machines are Ready"),
    ],
)
def test_how_a_pod_would_leave(move: Leaving, how: str) -> None:
    assert move.how == how


def test_the_document_is_no_older_than_what_it_tells(approvals: Approvals) -> None:
    """A cycle ended between the picture and the list of what waits."""
    found = approvals_report(approvals.asked(), Approval(), "USD", NOW - 20.0)
    assert found.now >= max(each.proposed_last for each in found.items)


@pytest.mark.parametrize(
    ("token", "headers", "status"),
    [
        pytest.param("bob", {}, 403, id="who may only look"),
        pytest.param("eve", {}, 401, id="nobody that is known"),
        pytest.param("", {}, 401, id="nobody at all"),
        pytest.param("alice", {"Origin": "https://elsewhere.example"}, 403, id="a page from elsewhere"),
        pytest.param("alice", {"Sec_Fetch_Site": "cross-site"}, 403, id="as a browser says of one"),
        pytest.param("alice", {"Content_Type": "application/x-www-form-urlencoded"}, 415, id="a form"),
    ],
)
def test_others_say_nothing(
    token: str, headers: dict[str, str], status: int, address: str, approvals: Approvals
) -> None:
    assert say(address, {"verdict": "approve", "all": True}, token, **headers).status == status
    assert waiting(approvals)
    assert approvals.gate(PROPOSED, SNAPSHOT, "USD")[0].proposals == ()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param({"verdict": "approve"}, 400, id="of nothing"),
        pytest.param({"verdict": "approve", "ids": ["x"], "all": True}, 400, id="of some, and of all"),
        pytest.param({"verdict": "maybe", "all": True}, 400, id="neither yes nor no"),
        pytest.param({"verdict": "approve\n", "all": True}, 400, id="a yes and an end of line, which counted as a no"),
        pytest.param({"verdict": " approve", "all": True}, 400, id="a yes after a space"),
        pytest.param({"verdict": "Reject", "all": True}, 400, id="a no written large"),
        pytest.param({"verdict": "approve", "ids": ["drain-00000000"]}, 404, id="of what does not wait"),
        pytest.param({"verdict": "approve", "all": True, "by": "somebody else"}, 400, id="in another's name"),
    ],
)
def test_a_word_that_makes_no_sense(body: Any, status: int, address: str, approvals: Approvals) -> None:
    assert say(address, body).status == status
    assert waiting(approvals)


def test_in_another_mode_there_is_nothing_to_say(address: str, seat: Seat) -> None:
    seat.policy = lambda: POLICY
    seat.observe(Seen(SNAPSHOT, PROPOSED))
    seat._picture = None
    assert say(address, {"verdict": "approve", "all": True}).status == 400


def test_the_command_lists_and_says(address: str, approvals: Approvals, tmp_path: Path) -> None:
    server = ["--server", address, "--token-file", str(tmp_path / "token")]
    (key,) = waiting(approvals)
    listed = CliRunner().invoke(app, ["approve", "--list", *server])
    assert (listed.exit_code, key in listed.output) == (0, True), listed.output
    assert "pending, 30m left" in " ".join(listed.output.split()), "by the clock that the daemon goes by"
    said = CliRunner().invoke(app, ["approve", key, "--reject", *server])
    assert (said.exit_code, "rejected by http.tokenFile" in " ".join(said.output.split())) == (0, True), said.output
    assert not waiting(approvals)
    again = CliRunner().invoke(app, ["approve", key, *server])
    assert (again.exit_code, "rejected by http.tokenFile already" in " ".join(again.stderr.split())) == (2, True)
    assert CliRunner().invoke(app, ["approve", key, "--reject", *server]).exit_code == 0, "as it is already"


def test_the_beginning_of_an_id_will_do(address: str, approvals: Approvals, tmp_path: Path) -> None:
    """As the documents write it. Fewer digits stand for nothing: who names pods finds another id that begins so."""
    server = ["--server", address, "--token-file", str(tmp_path / "token")]
    (key,) = waiting(approvals)
    kind, _, digits = key.partition("-")
    for short in (f"{kind}-{digits[:15]}", kind, f"{kind}-xxxxxxxxxxxxxxxx"):
        unknown = CliRunner().invoke(app, ["approve", short, *server])
        assert (unknown.exit_code, "there is no such proposal" in " ".join(unknown.stderr.split())) == (2, True)
    assert CliRunner().invoke(app, ["approve", f"{kind}-{digits[:16]}", *server]).exit_code == 0
    assert not waiting(approvals)


def test_a_beginning_that_several_have_stands_for_none() -> None:
    shared = "5059a742bb10c3d7"
    known = [f"drain-{shared}0{'a' * 15}", f"drain-{shared}1{'b' * 15}", f"replace-{shared}{'c' * 16}"]
    with pytest.raises(GivenError, match=f"could be {known[0]} or {known[1]}; write more of it"):
        meant([f"drain-{shared}"], known)
    assert meant([f"drain-{shared}1", f"replace-{shared}"], known) == known[1:]


@pytest.mark.parametrize(
    "arguments",
    [["approve"], ["approve", "x", "--all"], ["approve", "--list", "--all"]],
    ids=["of nothing", "of some, and of all", "a list, and a word"],
)
def test_options_that_contradict_each_other(arguments: list[str]) -> None:
    assert CliRunner().invoke(app, arguments).exit_code != 0
