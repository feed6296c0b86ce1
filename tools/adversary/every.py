"""Every attack there is."""

from __future__ import annotations

from tools.adversary import burst, clocks, cloud, disk, lies, network, processes, tenant, two_daemons
from tools.adversary.attack import Attack


def attacks() -> list[Attack]:
    """All of them, quick and long, each with a name of its own."""
    kinds = (tenant, network, cloud, lies, disk, clocks, burst, two_daemons, processes)
    return [attack for kind in kinds for attack in kind.attacks()]
