"""Probes, pages, logs and configurations that change."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog
import urllib3
import yaml

from htas.config.loader import Loaded, load_configuration
from htas.config.serving import LoggingSetting
from htas.daemon.http.app import Endpoints, HttpServer
from htas.daemon.http.authorization import Gate
from htas.daemon.http.migrate_endpoint import MigrateEndpoint
from htas.daemon.http.optimize_endpoint import OptimizeEndpoint
from htas.daemon.loops.reloading import Reloading, changed_for_good
from htas.daemon.telemetry.health import Health
from htas.daemon.telemetry.logs import set_up_logs
from htas.daemon.telemetry.metrics import Metrics
from htas.model.policy import Cycles
from htas.ports import PermanentError
from htas.web.seat import Seat
from tests.builders import make_policy
from tests.stories.play import Story, job
from tests.waiting import until

FLAVOURS = Path(__file__).parents[3] / "config" / "flavours" / "nectar.yaml"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def health(clock: Clock) -> Health:
    return Health(Cycles(), clock)


def test_it_is_well_for_as_long_as_its_last_success_is_not_long_ago(health: Health, clock: Clock) -> None:
    clock.now = 599.0
    assert health.complaint() is None
    health.succeeded("a cycle")
    clock.now += 599.0
    health.failed("the API server is away")
    assert health.complaint() is None, "one failure is no illness"
    clock.now += 1.0
    assert health.complaint() == "the last success (a cycle) was 600 s ago: the API server is away"
    health.succeeded("a cycle")
    assert health.complaint() is None


def test_rare_cycles_are_waited_for(clock: Clock) -> None:
    health = Health(Cycles(cleaning_s=3600.0), clock)
    clock.now = 3 * 3600 - 1
    assert health.complaint() is None
    health.adopt(Cycles())
    assert health.complaint() is not None


def test_it_is_ready_once_every_kind_is_listed(health: Health) -> None:
    health.failed("pods: forbidden")
    assert health.not_ready() == "not synced yet: pods: forbidden"
    health.synced()
    assert health.not_ready() is None


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


Get = Callable[[str], tuple[int, str]]


@pytest.fixture
def get(health: Health, metrics: Metrics, tmp_path: Path) -> Iterator[Get]:
    """Asks the daemon's server, with its token."""
    token_file = tmp_path / "token"
    token_file.write_text("let-me\n")
    server = HttpServer(
        ("127.0.0.1", 0),
        Endpoints(health, metrics, MigrateEndpoint(), OptimizeEndpoint(), Seat("live", make_policy)),
        Gate(token_file),
    )
    server.start()

    def asked(path: str) -> tuple[int, str]:
        url = f"http://127.0.0.1:{server.port}{path}"
        answer = urllib3.request("GET", url, headers={"Authorization": "Bearer let-me"}, timeout=10.0)
        return answer.status, answer.data.decode()

    yield asked
    server.stop()


def test_probes_answer_in_words_and_codes(get: Get, health: Health, clock: Clock) -> None:
    assert (get("/readyz")[0], get("/healthz")) == (503, (200, "ok\n"))
    health.synced()
    clock.now = 1000.0
    assert get("/readyz") == (200, "ok\n")
    assert get("/healthz") == (503, "the last success (start) was 1000 s ago\n")


def test_what_is_worth_saying_changes_no_verdict(get: Get, health: Health, clock: Clock) -> None:
    health.remark = lambda: "store away since noon"
    assert get("/healthz") == (200, "ok\nstore away since noon\n")
    clock.now = 1000.0
    assert get("/healthz") == (503, "the last success (start) was 1000 s ago\nstore away since noon\n")


def test_pages_show_the_last_plan_and_what_it_was_made_from(get: Get, metrics: Metrics) -> None:
    assert get("/planz")[0] == 503
    story = Story(None, job("a"))
    story.daemon.listeners.append(metrics.observe)
    story.play(100)
    assert json.loads(get("/planz")[1])["kind"] == "Plan"
    assert [pod["name"] for pod in json.loads(get("/snapshotz")[1])["cluster"]["pods"]] == ["a-1"]
    assert "htas_nodes" in get("/metrics")[1]
    assert "<title>HTAS" in get("/")[1]
    assert get("/secrets")[0] == 404


def test_it_listens_until_it_is_stopped(health: Health, metrics: Metrics) -> None:
    server = HttpServer(
        ("127.0.0.1", 0),
        Endpoints(health, metrics, MigrateEndpoint(), OptimizeEndpoint(), Seat("live", make_policy)),
        Gate(),
    )
    server.start()
    url = f"http://127.0.0.1:{server.port}/healthz"
    assert urllib3.request("GET", url, timeout=10.0).data == b"ok\n"
    with pytest.raises(PermanentError, match=r"http\.listen: 127\.0\.0\.1:\d+: Address already in use"):
        HttpServer(
            ("127.0.0.1", server.port),
            Endpoints(health, metrics, MigrateEndpoint(), OptimizeEndpoint(), Seat("live", make_policy)),
            Gate(),
        )
    busy = ("127.0.0.1", server.port)
    with pytest.raises(PermanentError, match=r"http\.healthListen: 127\.0\.0\.1:\d+: Address already in use"):
        HttpServer(
            ("127.0.0.1", 0),
            Endpoints(health, metrics, MigrateEndpoint(), OptimizeEndpoint(), Seat("live", make_policy)),
            Gate(),
            busy,
        )
    server.stop()
    with pytest.raises(urllib3.exceptions.HTTPError):
        urllib3.request("GET", url, timeout=2.0, retries=False)


@pytest.fixture
def logs() -> Iterator[io.StringIO]:
    before = logging.getLogger().handlers[:], logging.getLogger().level
    stream = io.StringIO()
    yield stream
    logging.getLogger().handlers[:] = before[0]
    logging.getLogger().setLevel(before[1])
    structlog.reset_defaults()


def test_logs_are_json_where_nobody_watches(logs: io.StringIO) -> None:
    set_up_logs(LoggingSetting(), logs)
    log = structlog.get_logger()
    log.info("bind", subject="a")
    log.debug("too fine")
    logging.getLogger("urllib3").warning("routine of a library")
    logging.getLogger("elsewhere").warning("seldom")
    try:
        raise ValueError("boom")
    except ValueError:
        log.exception("failed")
    first, second, third = (json.loads(line) for line in logs.getvalue().splitlines())
    assert (first["event"], first["subject"], first["level"], first["timestamp"][-1]) == ("bind", "a", "info", "Z")
    assert (second["event"], second["level"]) == ("seldom", "warning")
    assert third["exception"][0]["exc_value"] == "boom"


def test_logs_may_be_lines_for_people_and_finer_or_fewer(logs: io.StringIO) -> None:
    set_up_logs(LoggingSetting(format="console", level="debug"), logs)
    structlog.get_logger().debug("fine", a=1)
    set_up_logs(LoggingSetting(format="console", level="error"), logs)
    structlog.get_logger().warning("not told")
    assert "fine" in logs.getvalue()
    assert "a=1" in logs.getvalue()
    assert "not told" not in logs.getvalue()


class Reloaded:
    """A configuration file that a test changes, and what came of it."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "htas.yaml"
        self.prices = directory / "prices.yaml"
        self.prices.write_text(FLAVOURS.read_text())
        self.document = {
            "apiVersion": "htas.io/v1alpha1",
            "kind": "HTASConfiguration",
            "cluster": "one",
            "flavours": "prices.yaml",
            "limits": {"maxNodes": 5},
            "nodeGroups": [{"name": "any"}],
        }
        self.write()
        self.adopted: list[Loaded] = []
        self.told: list[bool] = []
        self.reloading = Reloading(load_configuration(self.path), self.adopted.append, self.told.append)

    def write(self, **changes: object) -> None:
        self.document |= changes
        self.path.write_text(yaml.safe_dump(self.document))

    def look(self, is_told: bool = False) -> list[bool]:
        self.told.clear()
        self.reloading.look(is_told)
        return list(self.told)


@pytest.fixture
def reloaded(tmp_path: Path) -> Reloaded:
    return Reloaded(tmp_path)


def test_a_change_is_adopted(reloaded: Reloaded) -> None:
    assert reloaded.look() == []
    reloaded.write(limits={"maxNodes": 7})
    assert reloaded.look() == [True]
    assert reloaded.adopted[-1].policy.limits.max_nodes == 7
    assert reloaded.look() == []


def test_a_change_of_prices_is_one_too(reloaded: Reloaded) -> None:
    reloaded.prices.write_text(FLAVOURS.read_text().replace("0.0198", "0.0250"))
    assert reloaded.look() == [True]


def test_what_is_wrong_is_refused_whole_and_what_is_right_again_is_adopted(reloaded: Reloaded) -> None:
    reloaded.write(limits={"maxNodes": 9, "maxCpus": 4})
    assert (reloaded.look(), reloaded.adopted) == ([False], [])
    assert reloaded.look() == [], "the same mistake is told once"
    reloaded.write(limits={"maxNodes": 9})
    assert reloaded.look() == [True]


@pytest.mark.parametrize(
    "change",
    [{"cluster": "two"}, {"schedulerName": "x"}, {"http": {"listen": "127.0.0.1:1"}}, {"migration": {"attempts": 1}}],
)
def test_what_only_a_new_start_can_change_is_refused(change: dict[str, object], reloaded: Reloaded) -> None:
    reloaded.write(limits={"maxNodes": 9}, **change)
    assert (reloaded.look(), reloaded.adopted) == ([False], [])


@pytest.mark.parametrize(
    ("method", "refused"),
    [
        pytest.param("checkpoint", [], id="the provider's own is always there"),
        pytest.param("command", ["nodeGroups.cleaning.migration"], id="commands are not carried yet"),
    ],
)
def test_a_method_that_no_group_had_at_the_start_needs_a_new_one(
    method: str, refused: list[str], reloaded: Reloaded
) -> None:
    commands = dict.fromkeys(("checkpoint", "transfer", "restore", "abort"), "move")
    reloaded.write(provider={"kwok": {}}, migration={"commands": commands})
    before = load_configuration(reloaded.path)
    reloaded.write(nodeGroups=[{"name": "any", "cleaning": {"migration": method}}])
    after = load_configuration(reloaded.path)
    assert changed_for_good(before, after) == refused
    assert changed_for_good(after, before) == [], "back it goes without"


def test_a_file_that_is_gone_is_refused(reloaded: Reloaded) -> None:
    reloaded.path.unlink()
    assert reloaded.look() == [False]


def test_on_demand_it_is_read_even_if_it_looks_the_same(reloaded: Reloaded) -> None:
    assert reloaded.look(is_told=True) == [True]


def test_requests_that_come_together_are_one(reloaded: Reloaded) -> None:
    reloaded.reloading.start()
    try:
        for _ in range(3_000):
            reloaded.reloading.look_now()
        until(lambda: bool(reloaded.told))
    finally:
        reloaded.reloading.stop()
    assert len(reloaded.told) <= 3, "each has all stages run: 300 requests in 1.5 s were some fifty"
