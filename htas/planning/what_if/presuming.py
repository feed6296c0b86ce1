"""What has to be so for a saving to come true, as far as nobody but the answer presumes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

import msgspec

from htas.model.constraints import Constraints
from htas.planning.what_if.adopting import ADOPTED, AdoptedCluster
from htas.planning.what_if.combining import LiftedOutcome
from htas.planning.what_if.pools import Pool


class Told(msgspec.Struct, frozen=True):
    """What the saving that is told first takes: with the rules as they are, else with the best of them lifted."""

    is_bought_anew: bool
    annotated: tuple[str, ...]
    """Pods of services that it moves and nobody has opted in."""
    of_unknown_length: tuple[str, ...]
    """Jobs that it moves of which nobody knows how long they run: HTAS lets these end where they are."""
    is_buying: bool
    """Whether machines are bought for it, and not only nodes of today given back."""
    emptied: tuple[str, ...]
    """Nodes that go by it with their work moved, and that HTAS has not bought."""
    empty: tuple[str, ...]
    """Nodes of that kind that are empty today."""
    zoneless: tuple[str, ...]
    """Flavours that it buys and that name no zones, where some work goes by them."""
    lent: Mapping[str, tuple[str, ...]] = {}
    """Flavours that it buys and that no node shows, with the labels (`pool=db`) that they are taken to bear since all
    nodes do, and that moved pods go by."""
    pools: tuple[Pool, ...] = ()
    """Pools that it buys new machines for."""
    ratio: float | None = None
    """The greatest `consolidation.ratio` that does not refuse all of it at once; None: the configured one does not."""
    min_saving: float | None = None
    """The same of `consolidation.minSaving`."""


def what_it_takes(present: AdoptedCluster, found: LiftedOutcome) -> Told:
    """Moved are the pods of nodes that go, so what else would have to be so concerns these alone."""
    best = found.best
    gone = present.foreign - best.kept.keys()
    busy = {pod.node for pod in present.snapshot.cluster.pods if pod.is_work}
    stay = Counter(node.flavour for node in present.snapshot.cluster.nodes if node.name in best.kept)
    bought = {name for name, count in best.flavours.items() if count > stay[name]}
    return Told(
        best is found.anew,
        tuple(sorted(best.moved & present.opted_in)),
        tuple(sorted(best.moved & present.of_unknown_length)),
        bool(best.bought),
        tuple(sorted(gone & busy)),
        tuple(sorted(gone - busy)),
        tuple(name for name in present.zoneless if name in bought) if best is found.anew else (),
        _lent(present, best.moved, bought),
        tuple(pool for pool in present.pools if any(item.group == pool.group for item in best.launches)),
        *(_refused(present, found) if best is found.anew and best.bought else (None, None)),
    )


def _refused(present: AdoptedCluster, found: LiftedOutcome) -> tuple[float | None, float | None]:
    """The ratio and the least saving of the daemon's rules for consolidation that refuse what is replaced as a whole.

    Packing comes first, by rules of its own: what it saves and moves does not count.
    """
    adopted = [node for node in present.snapshot.cluster.nodes if node.group == ADOPTED]
    there = [node for node in adopted if node.name in found.packed.kept]
    replaced = sum(present.hourly_price(node) for node in there if node.name not in found.anew.kept)
    price = sum(map(present.hourly_price, there))
    names = {node.name for node in adopted}
    pods = sum(pod.is_work and pod.node in names for pod in present.snapshot.cluster.pods)
    moved = len(found.anew.moved - found.packed.moved)
    saving, rules = found.packed.hourly_nanos - found.anew.hourly_nanos, present.rules.consolidation
    share = saving / replaced if replaced else 1.0
    ratio = saving * pods / (moved * price) if moved and price else rules.ratio
    return ratio if ratio < rules.ratio else None, share if share < rules.min_saving else None


def _lent(present: AdoptedCluster, moved: Collection[str], bought: Collection[str]) -> dict[str, tuple[str, ...]]:
    """By flavour. What no pod that moves asks for may be on a machine or not."""
    pods = (pod for pod in present.snapshot.cluster.pods if pod.key in moved)
    asked = {key for pod in pods for key in _labels_asked(pod.constraints)}
    found = {
        name: tuple(f"{key}={value}" for key, value in labels.items() if key in asked)
        for name, labels in present.lent.items()
        if name in bought
    }
    return {name: labels for name, labels in found.items() if labels}


def _labels_asked(wanted: Constraints) -> set[str]:
    """The keys of nodes' labels that a pod goes by."""
    return {
        *(key for key, _ in wanted.node_selector),
        *(part.key for term in wanted.node_affinity or () for part in term.expressions),
        *(spread.topology_key for spread in wanted.spread),
        *(term.topology_key for term in (*wanted.affinity, *wanted.anti_affinity)),
    }
