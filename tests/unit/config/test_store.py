"""The store's settings: what is refused, and what the adapter is told."""

from pathlib import Path

import pytest

from htas.adapters.cassandra.settings import CassandraSettings, Tls
from htas.config.loader import load_configuration
from htas.daemon.wiring.cassandra import cassandra_settings
from htas.model.record import Retention
from tests.unit.config.files import GOOD, told

CASSANDRA = GOOD + "store: {cassandra: {contactPoints: [a], localDatacenter: dc1%s}}"
OF_CASSANDRA = "htas.yaml:6 store.cassandra"
PROBLEMS = [
    pytest.param(GOOD + "store: {}", "htas.yaml:6 store: names no store; write one, sqlite or cassandra", id="none"),
    pytest.param(
        GOOD + "store: {sqlite: {}, cassandra: {contactPoints: [a], localDatacenter: dc1}}",
        "htas.yaml:6 store: names sqlite and cassandra; write one, sqlite or cassandra",
        id="both",
    ),
    pytest.param(
        GOOD + "store: {cassandra: {localDatacenter: dc1}}",
        f"{OF_CASSANDRA}.contactPoints: missing; this key is required",
        id="no contact points",
    ),
    pytest.param(
        GOOD + "store: {cassandra: {contactPoints: [], localDatacenter: dc1}}",
        f"{OF_CASSANDRA}.contactPoints: is empty; write at least one",
        id="an empty list of contact points",
    ),
    pytest.param(
        GOOD + "store: {cassandra: {contactPoints: ['a:b'], localDatacenter: dc1}}",
        f"{OF_CASSANDRA}.contactPoints[0]: 'a:b' is no host or host:port, as in cassandra-1.example.com:9042",
        id="a contact point with a name for its port",
    ),
    pytest.param(
        GOOD + "store: {cassandra: {contactPoints: ['a:70000'], localDatacenter: dc1}}",
        f"{OF_CASSANDRA}.contactPoints[0]: 'a:70000' is no host or host:port, as in cassandra-1.example.com:9042",
        id="a port that does not exist",
    ),
    pytest.param(
        GOOD + "store: {cassandra: {contactPoints: [a]}}",
        f"{OF_CASSANDRA}.localDatacenter: missing; this key is required",
        id="no datacenter",
    ),
    pytest.param(
        CASSANDRA % ", keyspace: My-Space",
        f"{OF_CASSANDRA}.keyspace: 'My-Space' is no keyspace; write up to 48 of a-z 0-9 _ that begin with a letter",
        id="a keyspace that needs quotes",
    ),
    pytest.param(
        CASSANDRA % ", consistency: LOCAL_QUORUN",
        f"{OF_CASSANDRA}.consistency: found 'LOCAL_QUORUN'; write LOCAL_QUORUM, QUORUM, LOCAL_ONE, ONE or ALL; "
        "did you mean LOCAL_QUORUM?",
        id="a consistency misspelt",
    ),
    pytest.param(
        CASSANDRA % ", username: htas",
        f"{OF_CASSANDRA}: has one of username and passwordFile; write both or neither",
        id="a name without a password",
    ),
    pytest.param(
        CASSANDRA % ", password: x",
        f"{OF_CASSANDRA}.password: unknown key; did you mean passwordFile?",
        id="a password in the configuration",
    ),
    pytest.param(
        CASSANDRA % ", tls: {caFile: ca.crt, certFile: me.crt}",
        f"{OF_CASSANDRA}.tls: has one of certFile and keyFile; write both or neither",
        id="a certificate without its key",
    ),
    pytest.param(
        CASSANDRA % ", replication: {dc2: 3}",
        f"{OF_CASSANDRA}.replication: does not name localDatacenter 'dc1'; HTAS reads and writes there",
        id="replicas elsewhere",
    ),
    pytest.param(
        CASSANDRA % ", replication: {dc1: 0}",
        f"{OF_CASSANDRA}.replication: dc1: 0 replicas; write 1 to 99",
        id="no replicas",
    ),
    pytest.param(
        CASSANDRA % ", replication: 3",
        f"{OF_CASSANDRA}.replication: is no mapping; write replicas by datacenter, such as {{dc1: 3}}",
        id="replicas nowhere",
    ),
    pytest.param(
        CASSANDRA % ", retention: {runs: 1h}",
        f"{OF_CASSANDRA}.retention.runs: '1h' is too small; write at least 24h",
        id="runs that are forgotten at once",
    ),
    pytest.param(
        CASSANDRA % ", timeout: 10",
        f"{OF_CASSANDRA}.timeout: '10' has no unit; write it with ms, s, m, h or d, such as 10s",
        id="a timeout without a unit",
    ),
    pytest.param(
        CASSANDRA % ", buffer: {maxBytes: 1GiB}",
        f"{OF_CASSANDRA}.buffer.maxBytes: '1GiB' is not a quantity; write a number, alone or with "
        "n u m k M G T P E Ki Mi Gi Ti Pi Ei",
        id="an amount in other units",
    ),
]


@pytest.mark.parametrize(("text", "want"), PROBLEMS)
def test_a_mistake_is_told_alone_with_its_place(tmp_path: Path, text: str, want: str) -> None:
    assert told(tmp_path, text) == [want]


def settings_of(tmp_path: Path, text: str) -> CassandraSettings:
    file = tmp_path / "htas.yaml"
    file.write_text(text)
    loaded = load_configuration(file)
    assert loaded.cassandra is not None
    return cassandra_settings(loaded, loaded.cassandra)


def test_the_adapter_has_the_defaults_of_the_configuration(tmp_path: Path) -> None:
    assert settings_of(tmp_path, CASSANDRA % "") == CassandraSettings((("a", 9042),), "dc1", "test")


def test_files_are_beside_the_configuration_and_ports_are_of_their_hosts(tmp_path: Path) -> None:
    text = CASSANDRA.replace("[a]", "['a:1', '[2001:db8::1]:2', '[2001:db8::2]']")
    text %= (
        ", username: me, passwordFile: secret, tls: {caFile: ca.crt, certFile: /c, keyFile: k, checkHostname: false}"
    )
    found = settings_of(tmp_path, text)
    assert found.contact_points == (("a", 1), ("2001:db8::1", 2), ("2001:db8::2", 9042))
    assert (found.username, found.password_file) == ("me", tmp_path / "secret")
    assert found.tls == Tls(tmp_path / "ca.crt", Path("/c"), tmp_path / "k", False)
    assert found.retention == Retention()
