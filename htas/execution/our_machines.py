"""Our machines among those that the cloud lists, and which claim each is of. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from htas.execution.identity import is_strange
from htas.model.claims import Instance, InstanceState, NodeClaim


def strangers(instances: Iterable[Instance], cluster: str) -> frozenset[str]:
    """Machines that bear the name of another cluster of HTAS: nothing is done to them or their claims."""
    return frozenset(each.id for each in instances if is_strange(each, cluster))


def ours_of(claims: Mapping[str, NodeClaim], instances: Sequence[Instance], cluster: str) -> list[Instance]:
    """Our machines: as their metadata say, and where these are lost, as the journal knows them by id."""
    claim_of = {claim.instance: claim.id for claim in claims.values() if claim.instance is not None}
    return [
        i if i.claim == claim_of.get(i.id, i.claim) else msgspec.structs.replace(i, claim=claim_of[i.id])
        for i in instances
        if (i.cluster == cluster and i.claim is not None) or (i.id in claim_of and not is_strange(i, cluster))
    ]


def by_claim(
    claims: Mapping[str, NodeClaim], ours: Sequence[Instance], cluster: str
) -> tuple[dict[str, Instance], list[Instance]]:
    """Our machines by claim, and those that are too many.

    A second one of a claim (a create repeated while its answer was lost) is too many, if it is sure that it is ours.
    """
    first: dict[str, Instance] = {}
    doubles = []
    for instance in sorted(ours, key=lambda i: (i.cluster != cluster, not _is_known(i, claims), i.created_at, i.id)):
        is_first = first.setdefault(instance.claim or "", instance) is instance
        if not is_first and instance.cluster == cluster and instance.state is not InstanceState.DELETING:
            doubles.append(instance)
    return first, doubles


def _is_known(instance: Instance, claims: Mapping[str, NodeClaim]) -> bool:
    claim = claims.get(instance.claim or "")
    return claim is not None and claim.instance == instance.id
