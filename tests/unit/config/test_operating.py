"""The sections on how the daemon is operated: provider, API server, leadership, HTTP, logs."""

from pathlib import Path

import pytest

from htas.config.kwok import KwokSetting
from htas.config.loader import Loaded, load_configuration
from htas.config.sandbox import SandboxSetting
from htas.model.policy import Fallback, FallbackMode, NewPods, Promises
from tests.unit.config.files import GOOD, SHIPPED, group, told


def loaded(tmp_path: Path, text: str) -> Loaded:
    (tmp_path / "htas.yaml").write_text(text)
    return load_configuration(tmp_path / "htas.yaml")


MISTAKES = [
    pytest.param(
        "http: {listen: 8080}",
        "http.listen: '8080' is not host:port; write one such as \"0.0.0.0:8080\"",
        id="a port without a host",
    ),
    pytest.param(
        'http: {listen: "localhost:65536"}',
        "http.listen: 'localhost:65536' is not host:port; write one such as \"0.0.0.0:8080\"",
        id="a port beyond the last",
    ),
    pytest.param(
        'http: {listen: "localhost:0"}',
        "http.listen: 'localhost:0' is not host:port; write one such as \"0.0.0.0:8080\"",
        id="a port nobody could know",
    ),
    pytest.param(
        'http: {listen: "http://localhost:80"}',
        "http.listen: 'http://localhost:80' is not host:port; write one such as \"0.0.0.0:8080\"",
        id="an address with its scheme",
    ),
    pytest.param(
        "leaderElection: {leaseDuration: 10s}",
        "leaderElection.renewDeadline: is not below leaseDuration: two daemons could lead at once; "
        "lower it or raise leaseDuration",
        id="a lease that ends when its holder still acts",
    ),
    pytest.param(
        "leaderElection: {renewDeadline: 2400ms}",
        "leaderElection.retryPeriod: leaves no time for a second attempt within renewDeadline; lower it or raise that",
        id="a single attempt to renew",
    ),
    pytest.param(
        "leaderElection: {leaseDuration: 15500ms}",
        "leaderElection.leaseDuration: is no whole number of seconds, in which a Lease counts; round it",
        id="half a second of a lease",
    ),
    pytest.param(
        "namespaces: [{names: [team-*]}]",
        "namespaces[0]: bounds nothing; write maxCpu, maxPricePerHour, maxPins, maxPinnedPricePerHour or pinnedFor",
        id="a limit without a bound",
    ),
    pytest.param(
        "namespaces: [{names: [Team], maxCpu: 4}]",
        "namespaces[0].names: 'Team' is no namespace; write one, or a pattern such as team-*",
        id="a limit of what can be no namespace",
    ),
    pytest.param(
        "fallback: {budget: 0s}", "fallback.budget: '0s' is too small; write more than 0", id="a search of no length"
    ),
    pytest.param(
        "fallback: {budget: 11m}", "fallback.budget: '11m' is too great; write at most 10m", id="a search without end"
    ),
    pytest.param(
        "fallback: {workers: 0}", "fallback.workers: '0' is too small; write at least 1", id="nobody searches"
    ),
    pytest.param("fallback: {share: 0}", "fallback.share: '0' is too small; write more than 0", id="no time for any"),
    pytest.param("fallback: {share: 1.5}", "fallback.share: '1.5' is too great; write at most 1", id="more than all"),
    pytest.param(
        "fallback: {mode: on}",
        "fallback.mode: found 'on'; write optimize, preempt or off",
        id="a fallback that is none",
    ),
    pytest.param(
        "fallback: {mode: off, promises: as-kube-scheduler}",
        "fallback.promises: has no effect with `mode: off`; remove it, or write `mode: preempt`",
        id="promises of a fallback that is off",
    ),
    pytest.param(
        "leaderElection: {leaseDuration: 0s}",
        "leaderElection.leaseDuration: '0s' is too small; write at least 1s",
        id="a lease of no length",
    ),
    pytest.param(
        "kubernetes: {namespace: HTAS}",
        "kubernetes.namespace: 'HTAS' is no namespace; write up to 63 of a-z 0-9 and -, not beginning or ending with -",
        id="a namespace in capitals",
    ),
    pytest.param(
        "kubernetes: {connections: 0}",
        "kubernetes.connections: '0' is too small; write at least 1",
        id="no connection at all",
    ),
    pytest.param(
        "kubernetes: {requestsPerSecond: 0}",
        "kubernetes.requestsPerSecond: '0' is too small; write more than 0",
        id="no request at all",
    ),
    pytest.param(
        "kubernetes: {requestsPerSec: 5}",
        "kubernetes.requestsPerSec: unknown key; did you mean requestsPerSecond?",
        id="a key misspelt",
    ),
    pytest.param(
        "logging: {level: INFO}",
        "logging.level: found 'INFO'; write debug, info, warning or error",
        id="a level in capitals",
    ),
    pytest.param(
        "logging: {format: text}", "logging.format: found 'text'; write auto, json or console", id="an unknown format"
    ),
    pytest.param(
        "provider: {kwok: {faults: {late: 5}}}",
        "provider.kwok.faults.late: '5' has no unit; write it with ms, s, m, h or d, such as 5s",
        id="a duration without a unit",
    ),
]


@pytest.mark.parametrize(("text", "want"), MISTAKES)
def test_a_mistake_is_told_with_its_remedy(tmp_path: Path, text: str, want: str) -> None:
    assert told(tmp_path, GOOD + text) == [f"htas.yaml:6 {want}"]


SHARED = [
    pytest.param("audit: {to: htas.db}", "store.sqlite.path", id="the store, where nobody named it"),
    pytest.param("audit: {to: ./htas.db-wal}", "store.sqlite.path", id="what SQLite has beside it"),
    pytest.param("store: {sqlite: {path: s.db}}\naudit: {to: s.db}", "store.sqlite.path", id="the store that is named"),
    pytest.param("store: {sqlite: {path: log.1}}\naudit: {to: log}", "store.sqlite.path", id="a store where the log's past goes"),
    pytest.param(
        "store: {cassandra: {contactPoints: [c], localDatacenter: d}}\naudit: {to: htas-buffer.db}", "store.cassandra.buffer.path", id="Cassandra's buffer"
    ),
    pytest.param("http: {listen: ':1', tokenFile: token}\naudit: {to: token}", "http.tokenFile", id="a token"),
    pytest.param("audit: {to: htas.yaml}", "the configuration itself", id="the configuration"),
    pytest.param("audit: {to: link}", "the configuration itself", id="by a link"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "key"), SHARED)
def test_the_audit_log_has_its_file_for_itself(tmp_path: Path, text: str, key: str) -> None:
    (tmp_path / "link").symlink_to("htas.yaml")
    (problem,) = told(tmp_path, GOOD + text)
    assert problem.partition(" ")[2] == f"audit.to: is a file of {key}; name one that nothing else uses"


def test_what_nobody_wrote_is_the_sandbox_without_http(tmp_path: Path) -> None:
    whole = loaded(tmp_path, GOOD)
    assert whole.provider == SandboxSetting()
    assert whole.settings.http.address is None
    assert (whole.settings.logging.format, whole.settings.logging.level) == ("auto", "info")
    assert (whole.directory, whole.path.name) == (tmp_path, "htas.yaml")


def test_kwok_is_a_provider(tmp_path: Path) -> None:
    whole = loaded(tmp_path, GOOD + "provider: {kwok: {startupDelay: 5s, faults: {outOfStock: 0.25}}}")
    assert isinstance(whole.provider, KwokSetting)
    assert (whole.provider.startup_delay, whole.provider.faults.out_of_stock, whole.sandbox) == (5.0, 0.25, None)


def test_the_shipped_trial_runs_on_kwok() -> None:
    assert load_configuration(SHIPPED / "kwok.yaml").provider == KwokSetting()


def test_files_of_moves_are_beside_the_configuration_unless_absolute(tmp_path: Path) -> None:
    text = group("cleaning: {migration: kubelet-checkpoint}") + (
        "provider: {kwok: {}}\n"
        "migration:\n"
        "  atOnce: 4\n"
        "  deadlines: {restore: 30s}\n"
        "  scp: {user: mover, identityFile: keys/id, knownHostsFile: /etc/ssh/known}\n"
    )
    found = loaded(tmp_path, text).policy.migration
    assert (found.at_once, found.deadlines.restore_s, found.deadlines.checkpoint_s) == (4, 30.0, 120.0)
    assert found.secure_copy.identity_file == str(tmp_path / "keys/id")
    assert found.secure_copy.known_hosts_file == "/etc/ssh/known"
    assert (found.registry.pull_from, found.commands.abort, found.kubelet_ca_file) == ("", "", "")


def test_a_registrys_images_are_named_by_its_host_unless_stated(tmp_path: Path) -> None:
    text = GOOD + "migration: {transfer: registry, registry: {url: '%s', insecure: %s}}"
    secure = loaded(tmp_path, text % ("https://registry.example:5000/", "false")).policy.migration
    assert secure.registry.pull_from == "registry.example:5000/htas"
    clear = loaded(tmp_path, text % ("http://[fd00::1]:5000", "true")).policy.migration
    assert clear.registry.pull_from == "[fd00::1]:5000/htas"


@pytest.mark.parametrize("provider", ["sandbox", "kwok"])
def test_progress_may_be_kept_with_every_provider(tmp_path: Path, provider: str) -> None:
    text = group("cleaning: {migration: checkpoint}") + f"provider: {{{provider}: {{}}}}"
    assert loaded(tmp_path, text).policy.groups[0].cleaning.migration == "checkpoint"


@pytest.mark.parametrize(
    ("listen", "want"),
    [
        pytest.param("127.0.0.1:8080", ("127.0.0.1", 8080), id="an address"),
        pytest.param("localhost:80", ("localhost", 80), id="a name"),
        pytest.param(":9090", ("0.0.0.0", 9090), id="a port of every address"),
        pytest.param("[::1]:8080", ("::1", 8080), id="an address of version 6"),
    ],
)
def test_where_to_listen(tmp_path: Path, listen: str, want: tuple[str, int]) -> None:
    assert loaded(tmp_path, GOOD + f'http: {{listen: "{listen}"}}').settings.http.address == want


def test_machines_from_openstack_have_the_zones_and_the_disk_that_they_are_bought_with(tmp_path: Path) -> None:
    settings = "image: i, networks: [n], availabilityZones: [north, south], bootVolume: {size: 40}"
    policy = loaded(tmp_path, group("") + f"provider: {{openstack: {{{settings}}}}}").policy
    (flavour, *_) = policy.catalogue.flavours
    assert flavour.zones == ("north", "south")
    assert flavour.allocatable.ephemeral_bytes == 40 * 2**30


def test_the_fallback_as_it_is_written(tmp_path: Path) -> None:
    text = "fallback: {mode: preempt, promises: as-kube-scheduler, after: 1s, budget: 20s, share: 1, workers: 4, "
    fallback = loaded(tmp_path, f"{GOOD}{text}pause: 0s, newPods: wait, patience: 7m}}").policy.fallback
    assert fallback == Fallback(
        FallbackMode.PREEMPT, Promises.AS_KUBE_SCHEDULER, 1.0, 20.0, 1.0, 4, 0.0, NewPods.WAIT, 420.0
    )


def test_off_is_a_word_here(tmp_path: Path) -> None:
    assert loaded(tmp_path, f"{GOOD}fallback: {{mode: off}}").policy.fallback.mode is FallbackMode.OFF
