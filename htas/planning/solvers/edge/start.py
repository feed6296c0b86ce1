"""The layout that is built upon: who may still leave it, and how many more may move."""

from __future__ import annotations

from functools import cached_property

from htas.planning.solvers.edge.layout import Layout
from htas.planning.solvers.edge.search import Search
from htas.planning.solvers.edge.state import CLOUD, kinds_of


class Start:
    """What many decisions from one layout have in common. Moves that led to it count towards the policy's limits."""

    def __init__(self, search: Search, layout: Layout) -> None:
        pods, where = search.state.pods, layout.where
        self.search, self.layout = search, layout
        self.quality = search.quality(layout)
        home = {
            service: sorted((pod for pod in some if where[pod] == pods[pod].where), key=search.share)
            for service, some in search.on_edge.items()
        }
        self.at_home = {service: some for service, some in home.items() if some}
        """Pods that may leave their edge nodes, by service, the smallest first."""
        left_home = [n for some in search.on_edge.values() for n in some if where[n] != pods[n].where]
        gone = sum(where[pod] == CLOUD for pod in left_home)
        self.reorderings = search.policy.reorder_moves - (len(left_home) - gone)
        """Pods that may still change their edge nodes."""
        self.offloads = search.policy.edge_to_cloud_moves - gone
        """Pods that may still leave the edge."""
        search.work.spend(len(pods) // 10)

    @cached_property
    def kinds(self) -> list[list[int]]:
        """Pods that may change their edge nodes."""
        self.search.work.spend(len(self.search.state.pods))
        return kinds_of(self.search.state, sorted(pod for some in self.at_home.values() for pod in some))
