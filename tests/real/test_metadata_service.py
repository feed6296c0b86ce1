"""The documented user data keeps pods from the metadata service, and the machine's own processes not.

Three network namespaces: a pod behind a machine, and beyond the machine what answers at 169.254.169.254.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

SHIPPED = Path(__file__).parents[2] / "deploy" / "openstack" / "cloud-init.yaml"
METADATA = "169.254.169.254"
ANSWER = f"""
import socket
with socket.create_server(("{METADATA}", 80)) as server:
    print("listens", flush=True)
    while True:
        server.accept()[0].close()
"""
CALL = f"""
import socket, sys
try:
    socket.create_connection(("{METADATA}", 80), timeout=2).close()
except OSError:
    sys.exit(1)
"""


@dataclass(frozen=True, slots=True)
class Network:
    """The names of the three namespaces."""

    pod: str
    machine: str
    cloud: str

    def reaches(self, space: str) -> bool:
        """Whether a process in a namespace gets through to the metadata service."""
        call = ["ip", "netns", "exec", space, sys.executable, "-c", CALL]
        return subprocess.run(call, check=False, timeout=20).returncode == 0


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, timeout=20)


@pytest.fixture
def network() -> Iterator[Network]:
    names = Network(*(f"htas-{os.getpid()}-{what}" for what in ("pod", "machine", "cloud")))
    with ExitStack() as stack:
        for space in (names.pod, names.machine, names.cloud):
            ip("netns", "add", space)
            stack.callback(ip, "netns", "del", space)
            ip("-n", space, "link", "set", "lo", "up")
        _join(names.machine, "pods", "10.1.0.1/24", names.pod, "10.1.0.2/24")
        _join(names.machine, "outside", "10.2.0.1/24", names.cloud, "10.2.0.2/24")
        ip("-n", names.cloud, "address", "add", f"{METADATA}/32", "dev", "lo")
        ip("-n", names.cloud, "route", "add", "10.1.0.0/24", "via", "10.2.0.1")
        ip("-n", names.machine, "route", "add", METADATA, "via", "10.2.0.2")
        ip("-n", names.pod, "route", "add", "default", "via", "10.1.0.1")
        ip("netns", "exec", names.machine, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        server = subprocess.Popen(
            ["ip", "netns", "exec", names.cloud, sys.executable, "-c", ANSWER], stdout=subprocess.PIPE, text=True
        )
        stack.callback(server.wait)
        stack.callback(server.kill)
        assert server.stdout is not None
        stack.callback(server.stdout.close)
        assert server.stdout.readline() == "listens\n"
        yield names


def _join(space: str, link: str, address: str, other: str, other_address: str) -> None:
    """A cable between two namespaces, with an address at each end."""
    ip("-n", space, "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", other)
    for where, name, own in ((space, link, address), (other, "eth0", other_address)):
        ip("-n", where, "address", "add", own, "dev", name)
        ip("-n", where, "link", "set", name, "up")


def test_pods_do_not_reach_what_their_machine_reads_its_user_data_from(network: Network) -> None:
    assert network.reaches(network.pod)
    for command in yaml.safe_load(SHIPPED.read_text())["bootcmd"]:
        subprocess.run(["ip", "netns", "exec", network.machine, *command], check=True, timeout=20)
    assert not network.reaches(network.pod)
    assert network.reaches(network.machine)
