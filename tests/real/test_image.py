"""The image, built from deploy/Dockerfile, does a whole job from a pod: installed, upgraded, taken over and handed back."""

from __future__ import annotations

import csv
import os
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from htas.model.nodes import INSTANCE_TYPE_LABEL
from tests.real.conftest import Tell
from tests.real.counting import container, counts, goes_on, job, job_status, last, pods_of
from tests.real.harness import BATCH, Json, configuration, eventually
from tests.real.moving import World
from tests.real.owned_nodes import expected_to_run_on, own
from tests.real.released import SPACE, Release, built, imported, inside, prices
from tests.real.work import deployment, node
from tests.real.work import job as simulated_job
from tools.testenv.daemon import HTAS
from tools.testenv.real_nodes import NAMES

pytestmark = pytest.mark.timeout(1500)  # the image takes minutes where it has never been built

SIMULATED = {"machines": "simulated"}
KEPT: Json = {
    "replicas": 1,
    "persistence": {"enabled": True, "existingClaim": "journal"},
    "http": {"createToken": True},
}
HISTORY = ("history", "--binds", "--limit", "1000")
REAL = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": list(NAMES)}]}
            ]
        }
    }
}


@pytest.fixture
def release(world: World, helm: Path, tell: Tell) -> Iterator[Release]:
    """Nothing is installed yet, but the image is on the node that HTAS will not own; nothing is left at the end."""
    found = Release(world, helm, tell)
    archive = built()
    found.tell(f"image built: {archive.stat().st_size / 1e6:.0f} MB")
    imported(world, archive, NAMES[1])
    found.tell(f"image imported into the containerd of {NAMES[1]}")
    found.secrets()
    yield found
    found.helm("uninstall", "--no-hooks")
    for name in found.machines() - set(NAMES):
        found.cluster.kubectl("delete", "node", name)
    found.cluster.delete(f"{BATCH}/namespaces/default/jobs")
    found.cluster.kubectl("delete", "deployment", "--all")
    eventually(lambda: not found.running(), 40, "every pod has ended")
    found.tell("no pod runs any more")
    found.cluster.kubectl("delete", "namespace", SPACE, "--wait=true", "--timeout=60s")
    found.tell("the namespace is deleted")


def test_a_release_from_install_to_uninstall(release: Release, tmp_path: Path) -> None:
    with release.volume("journal"):
        watched(release, tmp_path)
    installed(release)
    bought_and_bound(release)
    moved_drained_and_released(release)
    upgraded(release)
    taken_over(release)
    held_back(release, tmp_path)
    with release.volume("journal"):
        remembered(release, tmp_path)
        uninstalled(release)


def watched(release: Release, directory: Path) -> None:
    """The packaged chart as it comes, beside nodes and pods of others: within five minutes it reports what it would save."""
    others = [node(f"other-{i}", "4", "16Gi", **{INSTANCE_TYPE_LABEL: "m1.large"}, **SIMULATED) for i in range(3)]
    web = deployment("web", 3, "500m", "1Gi", scheduler="default-scheduler", nodeSelector=SIMULATED)
    release.cluster.create(*others, web)
    eventually(lambda: len(bound(release, "app=web")) == 3, 60, "kube-scheduler binds the Deployment")
    config = {"cluster": "trial", "nodeGroups": [{"name": "any", "workload": "any"}]}
    began = time.monotonic()
    values = release.where() | {"config": config, "persistence": {"existingClaim": "journal"}}
    release.put("install", values, release.packaged(directory))
    eventually(lambda: list(release.daemons()) == ["htas-0"] and ready(release) == 1, 150, "the one daemon is Ready")
    told = eventually(lambda: would_save(release), 150, "it reports what it would save")
    took_s = time.monotonic() - began
    release.tell(f"{took_s:.0f} s after helm install, htas cost --server {SPACE}/htas:\n{told}")
    assert took_s < 300
    assert len(names_of_nodes(release) & {f"other-{i}" for i in range(3)}) == 3
    status, said = release.helm("uninstall", "--wait", "--timeout", "60s")
    assert status == 0, said
    release.cluster.kubectl("delete", "deployment", "web")
    release.cluster.kubectl("delete", "node", *(each["metadata"]["name"] for each in others))


def would_save(release: Release) -> str:
    """What `htas cost` prints by the release's name, once there is a figure."""
    done = by_name(release, "cost")
    return done.stdout if done.returncode == 0 and "with HTAS" in done.stdout else ""


def installed(release: Release) -> None:
    release.put("install", release.values())
    leader = eventually(release.leader, 90, "a daemon leads")
    eventually(lambda: ready(release) == 2, 60, "both daemons are Ready")
    (line,) = [each for each in release.lines(leader) if each["event"] == "leads"]
    release.tell(f"pod {leader} leads, term {line['term']}; the other stands by")
    context = inside(release, leader)
    assert (context["runAsUser"], context["readOnlyRootFilesystem"]) == (65532, True)
    assert context["capabilities"] == {"drop": ["ALL"]}


def bought_and_bound(release: Release) -> None:
    """KWOK's machines, for a Job of twelve pods that ends and a Deployment of five that stays."""
    batch, web = simulated_job("batch", "20s", "400m", count=12), deployment("web", 5)
    for manifest in (batch, web):
        manifest["spec"]["template"]["spec"]["nodeSelector"] = SIMULATED
    release.cluster.create(batch, web)
    eventually(lambda: len(bound(release, "job=batch")) == 12, 60, "the Job is bound")
    eventually(lambda: len(bound(release, "app=web")) == 5, 60, "the Deployment is bound")
    release.tell(f"bought {len(release.machines())} machines, bound 17 pods")
    done = lambda: job_status(release.cluster, "batch").get("succeeded") == 12  # noqa: E731 # asked until it is so
    eventually(done, 90, "the Job completes")
    release.tell("the Job has completed")


def moved_drained_and_released(release: Release) -> None:
    """real-a becomes a machine of ours: its Job is moved to real-b by the kubelet's checkpoint, and it is given back."""
    train = expected_to_run_on(job("train", None, container()))
    train["spec"]["template"]["spec"]["affinity"] = REAL
    release.cluster.kubectl("cordon", NAMES[1])
    release.cluster.create(train)
    eventually(lambda: len(bound(release, "app=train")) == 1, 60, "train is bound by the daemon")
    (source,) = pods_of(release.cluster, "train")
    assert source["spec"]["nodeName"] == NAMES[0]
    before = last(release.cluster, source["metadata"]["name"])
    release.cluster.kubectl("uncordon", NAMES[1])
    own(release.world, SPACE, "real", only=NAMES[:1])
    drained = release.says("drain", 60, subject=NAMES[0], status="done")
    release.tell(f"drain {drained['subject']}: {drained['message']}")
    told = release.says("moved", 90, status="done")
    release.tell(f"moved {told['subject']} {told['message']}")
    eventually(lambda: NAMES[0] not in names_of_nodes(release), 60, "its node is released")
    release.tell(f"{NAMES[0]} is released")
    (twin,) = pods_of(release.cluster, "train")
    assert twin["spec"]["nodeName"] == NAMES[1]
    assert goes_on(release.cluster, twin["metadata"]["name"])
    assert {each.process for each in counts(release.cluster, twin["metadata"]["name"])} == {before.process}
    release.cluster.delete(f"{BATCH}/namespaces/default/jobs/train")
    release.world.nodes.kill(NAMES[0])


def upgraded(release: Release) -> None:
    """A changed price is read by the pods that run; nothing is started anew, and nothing that runs is touched."""
    before, machines, web = set(release.daemons()), release.machines(), uids(release, "app=web")
    values = release.values()
    release.put("upgrade", values | {"flavours": prices("0.0700")})
    adopted = 'htas_config_reloads_total{result="adopted"}'
    leader = release.leader()
    eventually(lambda: f"{adopted} 1.0" in release.asks(leader, "/metrics"), 90, "the price is adopted")
    assert set(release.daemons()) == before
    assert (release.machines(), uids(release, "app=web")) == (machines, web)
    release.tell("the new price is adopted by the daemons that run")


def taken_over(release: Release) -> None:
    """The leader's pod is gone from one moment to the next; what it bought is the other's."""
    leader, machines, web = release.leader(), release.machines(), uids(release, "app=web")
    release.cluster.kubectl("delete", "pod", leader, "-n", SPACE, "--grace-period=0", "--force")
    successor = eventually(lambda: release.leader() not in ("", leader) and release.leader(), 60, "another leads")
    assert isinstance(successor, str)
    release.says("adopt", 30, status="done")
    assert (release.machines(), uids(release, "app=web")) == (machines, web)
    release.tell(f"pod {successor} has taken over, with {len(machines)} machines")


def held_back(release: Release, tmp_path: Path) -> None:
    """From a laptop, with a pod in the way that was promised its place: told, and nothing of its machine is touched."""
    web = {"spec": {"template": {"metadata": {"annotations": {"htas.io/do-not-disrupt": "true"}}}}}
    rolled_out(release, web)
    machines, promised = release.machines(), uids(release, "app=web")
    done = handback(release, tmp_path, "--all")
    release.tell("htas handback --all:\n" + done.stdout.rstrip())
    assert done.returncode == 1, done.stdout + done.stderr
    assert "DoNotDisrupt" in done.stdout
    assert (release.machines(), uids(release, "app=web")) == (machines, promised)
    eventually(release.leader, 30, "a daemon leads again")
    web["spec"]["template"]["metadata"]["annotations"]["htas.io/do-not-disrupt"] = "false"
    rolled_out(release, web)


def remembered(release: Release, directory: Path) -> None:
    """One daemon with its file on a volume, asked from outside by commands: what was spent and done outlives its pod."""
    release.put("upgrade", release.values() | KEPT)
    pod = "htas-0"
    eventually(lambda: list(release.daemons()) == [pod] and ready(release) == 1, 120, "the one daemon is Ready")
    token = release.cluster.kubectl("get", "secret", "htas-token", "-n", SPACE, "-o", "jsonpath={.data.token}")
    (directory / "token").write_bytes(b64decode(token))
    eventually(lambda: release.leader() == pod, 60, "it leads")
    later = simulated_job("later", "10s", "400m", count=4)
    later["spec"]["template"]["spec"]["nodeSelector"] = SIMULATED
    release.cluster.create(later)
    eventually(lambda: job_status(release.cluster, "later").get("succeeded") == 4, 120, "the Job completes")
    with release.forwarded(pod) as url:
        done = entries(asked(url, directory, *HISTORY))
        spent = total(asked(url, directory, "cost", "-o", "csv"))
    release.tell(f"htas cost --server, from outside: {spent:f}; history: {len(done)} lines")
    assert spent > 0
    assert len([line for line in done if " bind " in line and "default/later" in line]) == 4, done
    release.cluster.kubectl("delete", "pod", pod, "-n", SPACE)  # returns when it is gone
    eventually(lambda: list(release.daemons()) == [pod] and ready(release) == 1, 90, "another pod of that name")
    with release.forwarded(pod) as url:
        again = entries(asked(url, directory, *HISTORY))
        assert not done - again, done - again
        assert total(asked(url, directory, "cost", "-o", "csv")) >= spent
    release.tell("after the pod was deleted: the same history, and what was spent")
    by_name = asked_by_name(release, "cost", "-o", "csv")
    assert total(by_name) >= spent
    release.tell(f"htas cost --server {SPACE}/htas, through kubectl: {total(by_name):f}")


def asked_by_name(release: Release, *command: str) -> list[str]:
    """What a command prints that is told the release's name alone."""
    done = by_name(release, *command)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def by_name(release: Release, *command: str) -> subprocess.CompletedProcess[str]:
    """A command that is told the release's name alone: daemon, port and token it finds by kubectl."""
    environment = os.environ | {
        "KUBECONFIG": str(release.cluster.kubeconfig),
        "PATH": f"{release.cluster.binaries}{os.pathsep}{os.environ['PATH']}",
    }
    options = [*command, "--server", f"{SPACE}/htas"]
    return subprocess.run([HTAS, *options], capture_output=True, text=True, timeout=60, check=False, env=environment)


def asked(url: str, directory: Path, *command: str) -> list[str]:
    """What a command prints that asks the daemon there, a line each; asked again while it has run no cycle."""

    def ask() -> str:
        options = [*command, "--server", url, "--token-file", directory / "token"]
        done = subprocess.run([HTAS, *options], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0 or "no cycle has been run yet" in done.stderr, done.stderr
        return done.stdout

    return eventually(ask, 60, f"htas {command[0]} --server").splitlines()


def entries(lines: list[str]) -> set[str]:
    """Of `htas history`, without what aligns them."""
    return {" ".join(line.split()) for line in lines if line[:1].isdigit()}


def total(lines: list[str]) -> Decimal:
    """Of `htas cost -o csv`."""
    return sum((Decimal(row["amount"]) for row in csv.DictReader(lines)), Decimal(0))


def uninstalled(release: Release) -> None:
    """The hook hands back before anything is deleted: no machine, no lease, no status is left, and nobody else's node."""
    release.put("upgrade", release.values() | KEPT | {"handback": {"onUninstall": True, "timeout": "3m"}})
    status, said = release.helm("uninstall", "--timeout", "200s")
    assert status == 0, said + release.log_of_the_hook()
    release.tell("helm uninstall")
    assert names_of_nodes(release) == {NAMES[1]}
    assert "htas-trial" not in release.names("lease")
    assert release.names("configmap") == {"kube-root-ca.crt"}
    release.tell("no machine, lease or status is left")


def handback(release: Release, directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """The command as an operator gives it, from this machine."""
    config = configuration(directory, release.cluster.kubeconfig, "laptop")
    command = [HTAS, "handback", *options, "--yes", "--namespace", SPACE, "--timeout", "90s", "--config", config]
    environment = {key: text for key, text in os.environ.items() if key != "POD_NAME"}
    return subprocess.run(command, capture_output=True, text=True, timeout=150, check=False, env=environment)


def rolled_out(release: Release, patch: Json) -> None:
    """Change the Deployment, and wait until none of its pods is of before."""
    before = uids(release, "app=web")
    release.cluster.kubectl("patch", "deployment", "web", "--type=merge", "-p", yaml.safe_dump(patch))

    def is_rolled_out() -> bool:
        now = uids(release, "app=web")
        return len(now) == 5 and not before & now

    eventually(is_rolled_out, 90, "rolled out")


def ready(release: Release) -> int:
    conditions = [each for pod in release.daemons().values() for each in pod["status"].get("conditions", ())]
    return sum(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def bound(release: Release, selector: str) -> list[Json]:
    found = release.cluster.pods(labelSelector=selector)
    return [pod for pod in found if "nodeName" in pod["spec"] and not pod["metadata"].get("deletionTimestamp")]


def uids(release: Release, selector: str) -> set[str]:
    return {pod["metadata"]["uid"] for pod in bound(release, selector)}


def names_of_nodes(release: Release) -> set[str]:
    return {each["metadata"]["name"] for each in release.cluster.nodes()}
