"""What goes over the wire between this machine, where daemons run, and nodes: counted by the kernel, whoever sends it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tools.testenv.real_nodes import NAMES, RealNodes

COMMENT = "htas-counts-ssh"


class Wire:
    """Bytes of ssh with the nodes, both ways, with the packets' own heads."""

    def __init__(self, nodes: RealNodes) -> None:
        addresses = [nodes.address(node) for node in NAMES]
        self.rules = [("OUTPUT", "-d", each, "--dport") for each in addresses]
        self.rules += [("INPUT", "-s", each, "--sport") for each in addresses]

    def bytes(self) -> int:
        listed = "".join(_iptables("-nvxL", chain) for chain in ("INPUT", "OUTPUT"))
        return sum(int(line.split()[1]) for line in listed.splitlines() if COMMENT in line)


@contextmanager
def wire(nodes: RealNodes) -> Iterator[Wire]:
    """Count for as long as the context lasts. What nodes send each other passes a bridge, and is not counted."""
    counted = Wire(nodes)
    for chain, way, address, port in counted.rules:
        _iptables("-I", chain, "-p", "tcp", way, address, port, "22", "-m", "comment", "--comment", COMMENT)
    try:
        yield counted
    finally:
        for chain, way, address, port in counted.rules:
            _iptables("-D", chain, "-p", "tcp", way, address, port, "22", "-m", "comment", "--comment", COMMENT)


def _iptables(*words: str) -> str:
    return subprocess.run(["iptables", "-w", *words], check=True, capture_output=True, text=True).stdout
