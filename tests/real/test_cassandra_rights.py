"""The documented rights are enough and no more; what is wrong is told in one line, and nothing is changed by it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from htas.adapters.cassandra.settings import CassandraSettings
from htas.adapters.cassandra.store import CassandraStore
from htas.ports import RefusedError
from tests.contracts.test_store_port import claim, opened
from tests.real.certificates import KEYSTORE_PASSWORD, write_certificate
from tests.real.harness import ROOT, Json, htas
from tests.unit.config.files import GOOD
from tools.testenv.cassandra import DATACENTER, Cassandra

pytestmark = pytest.mark.timeout(300)
DOCUMENTED = re.search(r"```sql\n(.*?)```", (ROOT / "docs" / "cassandra.md").read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with server.crt, server.p12 and, of another authority, other.crt."""
    folder = tmp_path_factory.mktemp("certificates")
    write_certificate(folder, "server", "127.0.0.1")
    write_certificate(folder, "other", "127.0.0.1")
    return folder


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, certificates: Path) -> Iterator[Cassandra]:
    """Asks for passwords, takes TLS, and has what the documentation says: an administrator's keyspace, and a role."""
    encryption = {
        "enabled": True,
        "optional": True,  # the same port with and without
        "keystore": str(certificates / "server.p12"),
        "keystore_password": KEYSTORE_PASSWORD,
        "store_type": "PKCS12",
    }
    more = certificates / "more.yaml"
    more.write_text(yaml.safe_dump({"client_encryption_options": encryption}))
    folder = tmp_path_factory.mktemp("guarded")
    server = Cassandra(folder, auth=True, port=23_820, HTAS_CASSANDRA_YAML=str(more))
    assert DOCUMENTED is not None
    for statement in DOCUMENTED[1].replace(": 3}", ": 1}").split(";"):
        if statement.strip():
            server.admin.execute(statement)
    yield server
    server.purge()


class Trial:
    """A configuration for the guarded server; `run` is `htas store …` with some keys changed."""

    def __init__(self, server: Cassandra, folder: Path) -> None:
        self._server, self._folder = server, folder
        (folder / "password").write_text("choose-another\n")

    def run(self, verb: str, **changes: object) -> tuple[int, str]:
        """Its exit status, and what it says."""
        said: Json = {
            "contactPoints": [f"{host}:{port}" for host, port in self._server.contact_points],
            "localDatacenter": DATACENTER,
            "username": "htas",
            "passwordFile": "password",
            "replication": {DATACENTER: 1},
            **changes,
        }
        file = self._folder / "htas.yaml"
        file.write_text(GOOD + yaml.safe_dump({"store": {"cassandra": said}}))
        done = htas("store", verb, config=file)
        return done.returncode, done.stderr if done.returncode else done.stdout


@pytest.fixture
def trial(guarded: Cassandra, tmp_path: Path) -> Trial:
    return Trial(guarded, tmp_path)


def refused(told: tuple[int, str], *parts: str) -> None:
    status, text = told
    assert status == 1
    assert text.startswith("error "), text
    assert text.count("\n") == 1, text  # one clear error, and no traceback of the driver's
    for part in parts:
        assert part in text, text


def test_the_documented_rights_make_a_keyspaces_tables_and_use_them(
    guarded: Cassandra, trial: Trial, tmp_path: Path
) -> None:
    refused(trial.run("check"), "htas store init")
    assert trial.run("init") == (0, "keyspace htas: made\n")
    made = guarded.tables("htas")
    assert trial.run("init") == (0, "keyspace htas: is there already, nothing changed\n")
    guarded.admin.execute("REVOKE CREATE ON KEYSPACE htas FROM htas")
    guarded.admin.execute("REVOKE ALTER ON KEYSPACE htas FROM htas")
    status, told = trial.run("check")
    assert status == 0
    assert told.splitlines()[0] == "keyspace htas: schema 1"
    assert told.splitlines()[-1] == "rights: can read, write, and write by lightweight transaction"
    assert guarded.tables("htas") == made
    settings = CassandraSettings(
        guarded.contact_points, DATACENTER, "test", username="htas", password_file=tmp_path / "password"
    )
    with opened(lambda: CassandraStore(settings)) as store:
        assert store.put_claim(claim()).version == 1


def test_a_wrong_password_is_told(trial: Trial, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("wrong")
    refused(trial.run("check"), "look at store.cassandra.username and passwordFile")
    refused(trial.run("init", keyspace="elsewhere"), "look at store.cassandra.username and passwordFile")
    refused(trial.run("check", passwordFile="nowhere"), "store.cassandra.passwordFile", "nowhere")


def test_over_tls_the_servers_certificate_is_checked(trial: Trial, certificates: Path) -> None:
    status, told = trial.run("check", tls={"caFile": str(certificates / "server.crt")})
    assert (status, told.splitlines()[0]) == (0, "keyspace htas: schema 1")
    refused(trial.run("check", tls={"caFile": str(certificates / "other.crt")}), "look at store.cassandra.tls")
    refused(trial.run("check", tls={"caFile": "nowhere"}), "store.cassandra.tls.caFile", "nowhere")


def test_no_password_is_told(guarded: Cassandra) -> None:
    with pytest.raises(RefusedError, match=r"store\.cassandra\.username"):
        CassandraStore(CassandraSettings(guarded.contact_points, DATACENTER, "test"))


def test_contact_points_that_nobody_answers_are_told(trial: Trial) -> None:
    refused(trial.run("check", contactPoints=["127.0.0.1:9"]), "127.0.0.1:9", "store.cassandra.contactPoints")
    refused(trial.run("check", contactPoints=["nowhere.invalid"]), "no such host", "store.cassandra.contactPoints")
    refused(trial.run("check", localDatacenter="nowhere", replication={"nowhere": 1}), "localDatacenter (nowhere)")


def test_a_role_that_may_not_make_a_keyspace_is_told_and_makes_nothing(guarded: Cassandra, trial: Trial) -> None:
    refused(trial.run("init", keyspace="elsewhere"), "GRANT CREATE ON ALL KEYSPACES TO htas", "keyspace elsewhere")
    assert guarded.tables("elsewhere") == {}


@pytest.mark.parametrize(("left", "missing"), [("SELECT", "MODIFY"), ("MODIFY", "SELECT")])
def test_a_right_that_is_missing_is_told_with_the_statement_that_gives_it(
    left: str, missing: str, guarded: Cassandra, trial: Trial, tmp_path: Path
) -> None:
    execute = guarded.admin.execute
    execute("CREATE ROLE IF NOT EXISTS poor WITH PASSWORD = 'choose-another' AND LOGIN = true")
    execute(f"REVOKE {missing} ON KEYSPACE htas FROM poor")
    execute(f"GRANT {left} ON KEYSPACE htas TO poor")
    before = guarded.tables("htas")
    refused(trial.run("check", username="poor"), f"GRANT {missing} ON KEYSPACE htas TO poor")
    assert guarded.tables("htas") == before


@pytest.mark.parametrize("verb", ["init", "check"])
def test_another_schema_is_refused_untouched(verb: str, guarded: Cassandra, trial: Trial) -> None:
    stamp = "UPDATE htas.schema_version SET version = %s WHERE name = 'htas'"
    before = guarded.tables("htas")
    guarded.admin.execute(stamp, [7])
    try:
        refused(trial.run(verb), "this store is of schema 7, this htas reads 1")
        stands = guarded.admin.execute("SELECT version FROM htas.schema_version").one().version
        assert (stands, guarded.tables("htas")) == (7, before)
    finally:
        guarded.admin.execute(stamp, [1])


def test_another_programs_keyspace_is_refused_untouched(guarded: Cassandra, trial: Trial) -> None:
    execute = guarded.admin.execute
    execute("CREATE KEYSPACE theirs WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    execute("CREATE TABLE theirs.claims (id int PRIMARY KEY)")
    execute("GRANT ALL ON KEYSPACE theirs TO htas")
    before = guarded.tables("theirs")
    refused(trial.run("init", keyspace="theirs"), "holds tables of another program (claims")
    assert guarded.tables("theirs") == before


def test_a_keyspace_left_half_made_is_finished(guarded: Cassandra, trial: Trial) -> None:
    """Ended after some tables, before the version was written: init goes on, and check says so meanwhile."""
    guarded.admin.execute("GRANT CREATE ON KEYSPACE htas TO htas")
    guarded.admin.execute("TRUNCATE htas.schema_version")
    guarded.admin.execute("DROP TABLE htas.cycles")
    refused(trial.run("check"), "is half made", "htas store init")
    assert trial.run("init") == (0, "keyspace htas: made\n")
    assert trial.run("check")[0] == 0


def test_a_table_that_is_gone_is_told_and_made_again(guarded: Cassandra, trial: Trial) -> None:
    """As after a backup that was restored in part."""
    guarded.admin.execute("GRANT CREATE ON KEYSPACE htas TO htas")
    guarded.admin.execute("DROP TABLE htas.runs")
    refused(trial.run("check"), "keyspace htas: lacks runs", "htas store init")
    assert trial.run("init") == (0, "keyspace htas: made\n")
    assert trial.run("check")[0] == 0


def test_the_right_to_make_tables_is_asked_for_by_its_name(guarded: Cassandra, trial: Trial) -> None:
    execute = guarded.admin.execute
    execute("CREATE KEYSPACE bare WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    execute("CREATE ROLE IF NOT EXISTS poor WITH PASSWORD = 'choose-another' AND LOGIN = true")
    refused(trial.run("init", keyspace="bare", username="poor"), "GRANT CREATE ON KEYSPACE bare TO poor")
    assert guarded.tables("bare") == {}
