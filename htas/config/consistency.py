"""What is wrong between groups, limits and flavours, each of which may be sound by itself.

Everything is judged that can be: one bad group or flavour hides no mistake of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from htas.config.audit_file import shared_audit_file
from htas.config.document import Document, Steps
from htas.config.groups import OF_WHAT_IS_BOUGHT, ClusterLimitsSetting, GroupSetting
from htas.config.migration_keys import REAL, unstated
from htas.config.openstack import KubeadmSetting
from htas.config.problems import near, parsed
from htas.config.timing import TimeoutsSetting
from htas.model.flavours import Catalogue, Flavour
from htas.model.money import price_text
from htas.model.moves import MigrationMethod
from htas.model.policy import Limits, NodeGroup
from htas.model.snapshot import Problem

_MIB = 2**20


class OfferedRoom(NamedTuple):
    """What the price file sells: every name in it, the flavours that are sound, and the whole if all of it is."""

    names: Sequence[str]
    sound: tuple[Flavour, ...]
    catalogue: Catalogue | None


class _Bound(NamedTuple):
    """One kind of limit: its key, the bound itself, what a machine takes of it, and how to print that."""

    key: str
    most: Callable[[Limits], int | None]
    of: Callable[[Flavour], int]
    text: Callable[[int], str]


_BOUNDS = (
    _Bound("maxCpu", lambda limits: limits.max_cpu_m, lambda f: f.capacity.cpu_m, lambda n: f"{n}m"),
    _Bound(
        "maxMemory",
        lambda limits: limits.max_memory_bytes,
        lambda f: f.capacity.memory_bytes,
        lambda n: f"{-(-n // _MIB)}Mi",
    ),
    _Bound(
        "maxPricePerHour",
        lambda limits: limits.max_nanos_per_hour,
        lambda f: f.nanos_per_hour,
        lambda n: f'"{price_text(n)}"',
    ),
)


def mismatches(document: Document, offers: OfferedRoom | None) -> Iterator[Problem]:
    """Groups of one name, unmatched patterns, groups that can launch nothing, minimum sizes beyond the limits."""
    listed = document.raw.get("nodeGroups")
    items = listed if isinstance(listed, list) else []
    yield from _doubles(document, items)
    limits = _limits(document)
    least = dict.fromkeys((bound.key for bound in _BOUNDS), 0)
    smallest = 0
    methods: set[MigrationMethod] = set()
    is_simulated = not _has_real_nodes(document)
    for i, item in enumerate(items):
        setting = parsed(GroupSetting, document, item, (), [])
        if setting is None:
            yield from _patterns_of_unsound(document, item, offers, ("nodeGroups", i))
            continue
        group, steps = setting.model(is_simulated=is_simulated), ("nodeGroups", i)
        yield from _cannot_move(document, group, steps)
        methods.add(group.cleaning.migration)
        if not group.is_elastic:
            yield from _without_effect(document, setting, steps)
            continue
        smallest += group.min_nodes
        if offers is None:
            continue
        names = yield from _matched(document, group.flavours, offers, steps)
        flavours = [flavour for flavour in offers.sound if flavour.name in names]
        if not names or len(flavours) < len(names):
            continue  # without the flavours that are unsound, nothing can be said of what fits
        yield from _taints_twice(document, group, flavours, steps)
        yield from _too_small(document, group, flavours, limits, steps)
        yield from _beyond(document, group.limits, group.min_nodes, _least(group, flavours), steps, f"nodeGroups[{i}]")
        for key, amount in _least(group, flavours).items():
            least[key] += amount
    yield from unstated(document, methods)
    yield from _tokens_end_early(document)
    yield from shared_audit_file(document)
    yield from _nobody_to_ask(document)
    yield from _nobody_to_watch(document)
    if limits is not None:
        if limits.max_nodes is not None and smallest > limits.max_nodes:
            what = f"the groups' minNodes add up to {smallest}; raise it or lower them"
            yield Problem(document.place(("limits", "maxNodes")), what)
        yield from _beyond(document, limits, smallest, least, ("limits",), "the groups")


def _nobody_to_watch(document: Document) -> Iterator[Problem]:
    """In the sandbox nobody else schedules: there would be nothing to recommend."""
    if _is_from(document, "sandbox") and document.raw.get("mode") == "recommend":
        what = "watches a real cluster, but the sandbox is not one; write `provider: {none: {}}`, or name openstack"
        yield Problem(document.place(("mode",)), what)
    if _is_from(document, "none") and document.raw.get("mode") != "recommend":
        what = "no machine can be launched; name openstack, or write `mode: recommend`"
        yield Problem(document.place(("provider", "none")), what)


def _nobody_to_ask(document: Document) -> Iterator[Problem]:
    """Tokens are the API server's, and the sandbox has none."""
    if _is_from(document, "sandbox") and document.at(("http", "tokenReview")) is True:
        what = "needs an API server, which the sandbox does not have; write http.tokenFile"
        yield Problem(document.place(("http", "tokenReview")), what)


def _is_from(document: Document, provider: str) -> bool:
    """Whether machines are this provider's; what is unsound about it is told elsewhere. None named is the sandbox."""
    named = document.raw.get("provider")
    return provider in named if isinstance(named, dict) else provider == "sandbox"


def _has_real_nodes(document: Document) -> bool:
    """As `ProviderSetting.is_simulated` has it, of a document that need not be sound."""
    return _is_from(document, "openstack") or _is_from(document, "none")


def _cannot_move(document: Document, group: NodeGroup, steps: Steps) -> Iterator[Problem]:
    """Report migration methods that the provider cannot perform."""
    method, what = group.cleaning.migration, None
    if method is MigrationMethod.CHECKPOINT and _has_real_nodes(document):
        what = "is for simulated nodes; for real ones write evict, replace, kubelet-checkpoint or command"
    elif _is_from(document, "sandbox") and method in REAL:
        what = "is for real nodes; in the sandbox write checkpoint, which models it, replace or evict"
    if what is not None:
        yield Problem(document.place((*steps, "cleaning", "migration")), what)


def _without_effect(document: Document, setting: GroupSetting, steps: Steps) -> Iterator[Problem]:
    """Settings of launches where HTAS launches nothing; a written default is no mistake."""
    for name in OF_WHAT_IS_BOUGHT:
        field = GroupSetting.model_fields[name]
        if getattr(setting, name) != field.get_default(call_default_factory=True):
            what = "nothing is launched for an edge group that is not elastic; write `elastic: true` or remove it"
            yield Problem(document.place((*steps, str(field.alias))), what)


def _tokens_end_early(document: Document) -> Iterator[Problem]:
    """A machine that boots slowly, but within its time, must still be let in."""
    steps: Steps = ("provider", "openstack", "userData", "kubeadm")
    raw = document.at(steps)
    kubeadm = parsed(KubeadmSetting, document, raw, (), []) if isinstance(raw, dict) else None
    timeouts = parsed(TimeoutsSetting, document, document.raw.get("timeouts", {}), (), [])
    if kubeadm is None or timeouts is None:
        return
    longest_s = timeouts.launch + timeouts.registration
    if kubeadm.token_ttl < longest_s:
        what = f"tokens end before timeouts.launch and registration do; write {longest_s:g}s or more"
        yield Problem(document.place((*steps, "tokenTtl")), what)


def _doubles(document: Document, items: Sequence[object]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for i, item in enumerate(items):
        name = item.get("name") if isinstance(item, dict) else None
        if isinstance(name, str) and first.setdefault(name, i) != i:
            what = f"nodeGroups[{first[name]}] is named {name!r} already; give each group its own name"
            yield Problem(document.place(("nodeGroups", i, "name")), what)


def _limits(document: Document) -> Limits | None:
    """The cluster's limits; None where they are unsound themselves."""
    raw = document.raw.get("limits", {})
    setting = parsed(ClusterLimitsSetting, document, raw, (), [])
    return setting.limits() if setting is not None else None


def _matched(
    document: Document, patterns: Sequence[str], offers: OfferedRoom, steps: Steps
) -> Generator[Problem, None, set[str]]:
    """Returns the names that a group's patterns match; tells the patterns that match none."""
    matched: set[str] = set()
    for j, pattern in enumerate(patterns):
        names = {name for name in offers.names if fnmatchcase(name, pattern)}
        if not names:
            hint = near(pattern, offers.names) or "; write a name from it, or * for all"
            what = f"{pattern!r} matches no flavour of the price file{hint}"
            yield Problem(document.place((*steps, "flavours", j)), what)
        matched |= names
    return matched


def _patterns_of_unsound(
    document: Document, item: object, offers: OfferedRoom | None, steps: Steps
) -> Iterator[Problem]:
    """The patterns of a group that is unsound otherwise: its other mistakes hide none of them."""
    patterns = item.get("flavours") if isinstance(item, dict) and item.get("tier") != "edge" else None
    if offers is not None and isinstance(patterns, list) and all(isinstance(each, str) for each in patterns):
        yield from _matched(document, patterns, offers, steps)


def _taints_twice(document: Document, group: NodeGroup, flavours: Sequence[Flavour], steps: Steps) -> Iterator[Problem]:
    """Kubernetes refuses a node with two taints of one key and effect."""
    for j, taint in enumerate(group.taints):
        for flavour in flavours:
            if any((other.key, other.effect) == (taint.key, taint.effect) for other in flavour.taints):
                what = f"flavour {flavour.name} has {taint.key}:{taint.effect} already; remove one of the two"
                yield Problem(document.place((*steps, "taints", j)), what)
    for j, taint in enumerate(group.startup_taints):
        for where, others in [
            ("the group", group.taints),
            *((f"flavour {each.name}", each.taints) for each in flavours),
        ]:
            if any((other.key, other.effect) == (taint.key, taint.effect) for other in others):
                what = f"{where} has {taint.key}:{taint.effect} as a lasting taint; remove one of the two"
                yield Problem(document.place((*steps, "startupTaints", j)), what)


def _too_small(
    document: Document, group: NodeGroup, flavours: Sequence[Flavour], limits: Limits | None, steps: Steps
) -> Iterator[Problem]:
    """A group that may have nodes but can launch none; maxNodes: 0 is allowed."""
    if group.limits.max_nodes == 0 or (limits is not None and limits.max_nodes == 0):
        return
    own, all_groups = _fitting(flavours, group.limits), _fitting(flavours, limits or Limits())
    if not own:
        yield _nothing_fits(document, group, flavours, group.limits, steps)
    if not all_groups and limits is not None:
        yield _nothing_fits(document, group, flavours, limits, ("limits",))
    if own and all_groups and not set(own) & set(all_groups):
        what = f"no flavour of group {group.name} fits both its limits and the cluster's; raise one of them"
        yield Problem(document.place(steps), what)


def _fitting(flavours: Sequence[Flavour], limits: Limits) -> list[str]:
    return [
        flavour.name
        for flavour in flavours
        if all((most := bound.most(limits)) is None or bound.of(flavour) <= most for bound in _BOUNDS)
    ]


def _nothing_fits(
    document: Document, group: NodeGroup, flavours: Sequence[Flavour], limits: Limits, steps: Steps
) -> Problem:
    """Names the limit that is to blame, where it is one alone."""
    for bound in _BOUNDS:
        most, least = bound.most(limits), min(map(bound.of, flavours))
        if most is not None and most < least:
            what = f"no flavour of group {group.name} fits; raise it to {bound.text(least)} or offer a smaller flavour"
            return Problem(document.place((*steps, bound.key)), what)
    what = f"no flavour of group {group.name} fits all limits here; raise one or offer a smaller flavour"
    return Problem(document.place(steps), what)


def _least(group: NodeGroup, flavours: Sequence[Flavour]) -> dict[str, int]:
    """What the group's minimum size takes at the very least of each limit."""
    return {bound.key: group.min_nodes * min(map(bound.of, flavours)) for bound in _BOUNDS}


def _beyond(
    document: Document, limits: Limits, nodes: int, least: dict[str, int], steps: Steps, who: str
) -> Iterator[Problem]:
    """Minimum sizes that a limit forbids. One node that does not fit is told by `_nothing_fits`."""
    for bound in _BOUNDS:
        most, needed = bound.most(limits), least[bound.key]
        if most is not None and needed > most and nodes > 1:
            what = f"minNodes of {who} ({nodes}) take at least {bound.text(needed)}; raise it or lower minNodes"
            yield Problem(document.place((*steps, bound.key)), what)
