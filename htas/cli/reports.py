"""`htas check`: what a configuration comes to, and what is odd about it."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from htas.cli.tables import table
from htas.config.loader import Loaded
from htas.documents.words import some
from htas.model.edge import Tier
from htas.model.flavours import Flavour, ZonePrice
from htas.model.money import price_text
from htas.model.policy import NodeGroup, Policy
from htas.ports import HTASError

REFRESH_S = 1.0
NAMED = 6
"""Flavours, or zones, that are named in a line."""
LONGEST_MONTH_H = 744


def configuration_view(loaded: Loaded) -> RenderableType:
    """What a configuration comes to: each group with the flavours it may buy and its limits."""
    policy = loaded.policy
    has_tiers = any(group.tier is Tier.EDGE for group in policy.groups)
    view = table("group", *(["tier"] if has_tiers else []), "work", "placed by", "nodes", "flavours (price/h)")
    for group in policy.groups:
        tier = [group.tier.value] if has_tiers else []
        view.add_row(group.name, *tier, group.workload.value, group.packing.algorithm.value, *_bought(group, policy))
    title = Text(f"ok: cluster {policy.cluster}, schedulerName {policy.scheduler_name}\n", style="bold green")
    parts: list[RenderableType] = [title, view]
    if not any(group.is_elastic for group in policy.groups):
        parts.append(
            Text("\nno group launches machines: pods stay pending where existing nodes have no free resources")
        )
    diskless = _diskless(policy)
    if diskless:
        parts.append(Text(f"\n{diskless}", style="dim"))
    return Group(*parts)


def _diskless(policy: Policy) -> str:
    """Flavours on sale of which the price file does not say what local disk they have; empty: there is none."""
    on_sale = {flavour.name for group in policy.groups if group.is_elastic for flavour in policy.flavours_of(group)}
    names = [
        flavour.name
        for flavour in policy.catalogue.flavours
        if flavour.name in on_sale and not flavour.capacity.ephemeral_bytes
    ]
    if not names:
        return ""
    which = (
        "no flavour has"
        if len(names) == len(on_sale)
        else f"{some(names, NAMED)} {'has' if len(names) == 1 else 'have'} no"
    )
    which += " `ephemeralStorage` in the price file"
    return f"{which}: none is launched for pods that request ephemeral-storage, until a node of the flavour shows it"


def _bought(group: NodeGroup, policy: Policy) -> tuple[str, str]:
    """How many machines a group may have, and of which flavours."""
    if not group.is_elastic:
        return "not launched", "–"
    limit = group.limits.max_nodes
    flavours = ", ".join(f"{f.name} ({_prices(f)})" for f in policy.flavours_of(group))
    return f"{group.min_nodes}–{limit if limit is not None else '∞'}", flavours


def assumed(loaded: Loaded) -> list[str]:
    """What the file leaves out that somebody may have forgotten: without a provider nothing real is ever bought."""
    if "provider" in loaded.settings.model_fields_set:
        return []
    what = "not written, so the sandbox is assumed: a world of its own, without a real cluster or cloud"
    return [f"{loaded.path}: provider: {what}; write openstack, kwok or sandbox under it"]


def empty_groups_of(loaded: Loaded) -> list[str]:
    """Groups that wait for nodes nobody has labelled. A sandbox within a daemon cannot be asked."""
    if all(group.is_elastic for group in loaded.policy.groups):
        return []
    # A third of what `htas check` takes, and most configurations have no such group.
    from htas.cli.top import cluster_now
    from htas.planning.place.edge_present import empty_groups

    try:
        found = cluster_now(loaded)
    except HTASError as error:
        return [f"whether the groups of tier edge have nodes is not known: {error}"]
    return empty_groups(found.view.nodes, loaded.policy) if found is not None else []


def orphans_of(loaded: Loaded, live: bool) -> list[str]:
    """Machines of ours that the configuration has no place for: by the journal, and `live` by cluster and cloud."""
    if loaded.sandbox is not None or loaded.settings.provider.none is not None:
        return []
    from htas.daemon.recorded_orphans import orphans_recorded

    try:
        if not live:
            return [each.says for each in orphans_recorded(loaded)]
        from htas.daemon.orphans import orphans_now  # the adapters of cluster and cloud

        return [each.says for each in orphans_now(loaded)]
    except HTASError as error:
        return [f"whether there are orphans is not known: {error}"]


def cloud_problems_of(loaded: Loaded, live: bool) -> list[str]:
    """What the user data lacks and, `live`, the cloud of what is configured; only a real cloud lacks anything."""
    if loaded.settings.provider.openstack is None:
        return []
    from htas.daemon.wiring.openstack import cloud_problems

    return cloud_problems(loaded, live)


def idle_caps(loaded: Loaded) -> list[str]:
    """Monthly caps above what the hours of the longest month cost: they never act."""
    found = []
    for flavour in loaded.policy.catalogue.flavours:
        priced = flavour.prices or (ZonePrice("", flavour.nanos_per_hour, flavour.cap),)
        dearest: dict[int, ZonePrice] = {}
        for each in sorted(priced, key=lambda price: price.nanos_per_hour):
            if each.cap is not None:
                dearest[each.cap.nanos] = each
        for cap, each in dearest.items():
            month = (each.nanos_per_hour - flavour.fee_nanos_per_hour) * LONGEST_MONTH_H
            if cap > month:
                what = f"{price_text(cap)} is more than a month of {LONGEST_MONTH_H} hours costs, {price_text(month)}"
                found.append(f"flavour {flavour.name}: monthlyCap: {what}; write the rate of a month, or remove it")
    return found


def _prices(flavour: Flavour) -> str:
    """Its price an hour; the least and the most where zones differ, and the most that a month costs."""
    dearest = max((each.nanos_per_hour for each in flavour.prices), default=flavour.nanos_per_hour)
    hour = _range(flavour.nanos_per_hour, dearest) + (" by zone" if dearest != flavour.nanos_per_hour else "")
    zones = [each.zone for each in flavour.prices if each.cap is not None]
    caps = [each.cap.nanos for each in flavour.prices or (flavour,) if each.cap is not None]
    if not caps:
        return hour
    where = f" in {some(zones, NAMED)}" if len(zones) < len(flavour.prices) else ""
    return f"{hour}, a month {_range(min(caps), max(caps))} at most{where}"


def _range(least: int, most: int) -> str:
    return price_text(least) if least == most else f"{price_text(least)} to {price_text(most)}"
