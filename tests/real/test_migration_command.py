"""The method command on two real nodes: the operator's executable moves a Job's pod, and fails as its contract says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from htas.adapters.migration.methods.command import CommandMethod
from htas.model.migrations import Commands, Failure, MigrationState
from htas.model.moves import MigrationMethod
from tests.programs import write_program
from tests.real.counting import container, counts, goes_on, job, job_status, last, pods_of
from tests.real.harness import ROOT, eventually
from tests.real.moving import World, impatient, over

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def commands(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """One executable for every step."""
    program = tmp_path / "move"
    write_program(program, f"#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} {ROOT}/tests/real/own_commands.py\n")
    known = world.nodes.known_hosts_file
    monkeypatch.setenv("KUBECTL", str(world.cluster.binaries / "kubectl"))
    monkeypatch.setenv("KUBECONFIG", str(world.cluster.kubeconfig))
    monkeypatch.setenv("SSH", f"ssh -q -l root -i {world.nodes.identity_file} -o UserKnownHostsFile={known}")
    return Commands(*[str(program)] * 4)


def test_a_jobs_pod_moves_by_the_operators_own_executable(world: World, commands: Commands) -> None:
    world.counting(job("train", "real-a", container(until=300)))
    before = last(world.cluster, pods_of(world.cluster, "train")[0]["metadata"]["name"])
    with world.engine(method=lambda address_of: CommandMethod(commands, address_of)) as engine:
        engine.start(world.model_of("train"), "real-b", MigrationMethod.COMMAND)
        (record,) = over(engine)
        assert record.state is MigrationState.DONE, record
        assert record.archive_bytes > 0
        (twin,) = pods_of(world.cluster, "train")
        assert twin["spec"]["nodeName"] == "real-b"
        eventually(lambda: job_status(world.cluster, "train").get("succeeded"), 90, "the Job completes")
        told = counts(world.cluster, twin["metadata"]["name"])
        assert {each.process for each in told} == {before.process}
        assert told[-1].number == 300
        eventually(world.is_clean, 30, "nothing is left once the pod has ended")


def test_one_that_fails_is_tried_three_times_and_cleans_up(world: World, commands: Commands) -> None:
    world.counting(job("train", "real-a", container(before="flock /lock sleep 1000000 & sleep 1;")))
    (source,) = pods_of(world.cluster, "train")
    with world.engine(method=lambda address_of: CommandMethod(commands, address_of), deadlines=impatient()) as engine:
        engine.start(world.model_of("train"), "real-b", MigrationMethod.COMMAND)
        (record,) = over(engine)
        assert (record.state, record.reason, record.attempt) == (
            MigrationState.ROLLED_BACK,
            Failure.COMMAND_FAILED,
            3,
        ), record
        assert goes_on(world.cluster, source["metadata"]["name"])
        eventually(world.is_clean, 30, "nothing is left")
