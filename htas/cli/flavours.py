"""`htas flavours`: what the price file sells, beside what the cloud has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import msgspec
from rich.table import Table

from htas.cli.console import InputError
from htas.cli.tables import LiteralTable
from htas.config.loader import Loaded, load_configuration
from htas.config.openstack import OpenStackSetting
from htas.model.billing import Alignment, Billing, Cap
from htas.model.extra_specs import EXAMPLE, devices
from htas.model.flavours import Catalogue, Flavour, MachineSize, dominating
from htas.model.money import NANOS, PriceError, parse_price, price_text
from htas.model.resources import NOTHING, Resources

GIB = 2**30


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: the price file of a configuration, a cloud of clouds.yaml, or both of a configuration."""

    config: Path | None
    cloud: str | None
    clouds_file: Path | None
    region: str | None

    def answer(self) -> tuple[Catalogue | None, list[MachineSize] | None]:
        """The price file and the cloud's flavours, as far as they are known."""
        loaded = load_configuration(self.config) if self.config is not None else None
        catalogue = loaded.policy.catalogue if loaded is not None else None
        setting = self._setting(loaded)
        if setting is None and catalogue is None:
            raise InputError("name a configuration (--config) or a cloud of clouds.yaml (--cloud)")
        folder = loaded.directory if loaded is not None else Path()
        if setting is None:
            return catalogue, None
        from htas.daemon.wiring.openstack import openstack_sizes  # the SDK, which a price file alone need not load

        return catalogue, openstack_sizes(setting, folder)

    def _setting(self, loaded: Loaded | None) -> OpenStackSetting | None:
        if self.cloud is not None:
            file = str(self.clouds_file.absolute()) if self.clouds_file is not None else None
            # Image and networks are not asked for: only flavours are.
            return OpenStackSetting(cloud=self.cloud, clouds_file=file, region=self.region, image="-", networks=())
        return loaded.settings.provider.openstack if loaded is not None else None


class Row(msgspec.Struct, frozen=True):
    """A flavour of the price file, of the cloud, or of both; `notes` say what is odd about it."""

    name: str
    cpu_m: int
    memory_bytes: int
    price_nanos: int | None
    zones: tuple[str, ...] = ()
    dominated_by: str | None = None
    notes: tuple[str, ...] = ()


def rows_of(catalogue: Catalogue | None, sizes: Sequence[MachineSize] | None) -> list[Row]:
    """Priced ones first, cheapest first; then those that the cloud has and nobody priced. `sizes` None: no cloud."""
    priced = sorted(catalogue.flavours, key=lambda each: (each.nanos_per_hour, each.name)) if catalogue else []
    there = {size.name: size for size in sizes or ()}
    sold = [flavour for flavour in priced if sizes is None or flavour.name in there]
    rows = [_priced(flavour, sold, there.get(flavour.name), sizes is not None) for flavour in priced]
    known = {flavour.name for flavour in priced}
    unpriced = sorted((size for size in there.values() if size.name not in known), key=lambda each: each.name)
    return rows + [
        Row(size.name, size.cpu_m, size.memory_bytes, None, notes=("no price: never launched", *_device_notes(size)))
        for size in unpriced
    ]


def _device_notes(size: MachineSize, priced: Resources = NOTHING) -> list[str]:
    """Devices that the cloud's flavour has and the price file does not say, and Nova's words that name no resource."""
    found, unknown = devices(size.extra_specs)
    there = dict(priced.extended)
    notes = [f"the cloud has {name}: {count}" for name, count in found.extended if there.get(name) != count]
    return notes + ([] if there else [f"the cloud has {spec}: which resource do its nodes report?" for spec in unknown])


def _priced(flavour: Flavour, sold: Iterable[Flavour], size: MachineSize | None, has_cloud: bool) -> Row:
    notes = []
    if has_cloud and size is None:
        notes.append("the cloud does not have it: never launched")
    if size is not None and not size.is_of(flavour):
        notes.append(f"the cloud says {size.text}")
    if size is not None:
        notes += _device_notes(size, flavour.capacity)
    if flavour.prices:
        notes.append(", ".join(f"{each.zone} {price_text(each.nanos_per_hour)}" for each in flavour.prices))
    if flavour.cap is not None:
        notes.append(f"at most {price_text(flavour.cap.nanos)} a month")
    better = dominating(flavour, sold)
    return Row(
        flavour.name,
        flavour.capacity.cpu_m,
        flavour.capacity.memory_bytes,
        flavour.nanos_per_hour,
        flavour.zones,
        better.name if better is not None else None,
        tuple(notes),
    )


def flavours_view(rows: Sequence[Row], currency: str) -> Table:
    """The rows as a table. Prices per core and GiB are the whole price over each: for comparing, not for adding up."""
    title = f"prices in {currency} an hour" if currency != "-" else None
    table = LiteralTable(title=title, title_justify="left", header_style="dim", box=None, pad_edge=False)
    for column in ("flavour", "cores", "GiB", "price", "per core", "per GiB"):
        table.add_column(column, justify="left" if column == "flavour" else "right", no_wrap=True)
    table.add_column("notes")
    for row in rows:
        notes = [*row.notes, *([f"never better than {row.dominated_by}"] if row.dominated_by else [])]
        price = row.price_nanos
        table.add_row(
            row.name,
            _cores(row.cpu_m),
            _gib(row.memory_bytes),
            price_text(price) if price is not None else "-",
            _share(price, Fraction(row.cpu_m, 1000)),
            _share(price, Fraction(row.memory_bytes, GIB)),
            "; ".join(notes),
            style="dim" if price is None or row.dominated_by else "red" if row.notes else None,
        )
    return table


def flavours_json(rows: Sequence[Row], currency: str) -> dict[str, object]:
    """The rows as plain data; prices are texts, exact."""
    return {
        "currency": currency,
        "flavours": [
            {
                "name": row.name,
                "cpu": _cores(row.cpu_m),
                "memoryBytes": row.memory_bytes,
                "pricePerHour": price_text(row.price_nanos) if row.price_nanos is not None else None,
                "zones": list(row.zones),
                "dominatedBy": row.dominated_by,
                "notes": list(row.notes),
            }
            for row in rows
        ],
    }


def write_price_file(
    path: Path,
    catalogue: Catalogue | None,
    sizes: Sequence[MachineSize] | None,
    per_core: str | None,
    per_gib: str | None,
) -> str:
    """Write a first price file and say what is in it; one that is there already is never replaced."""
    if sizes is None:
        raise InputError("--write: the configured provider lists no flavours; name a cloud by --cloud")
    if per_core is None and per_gib is not None:
        raise InputError("--per-gib: means nothing without --per-core; give both")
    core, gib = (_rate(text, option) for text, option in ((per_core, "--per-core"), (per_gib, "--per-gib")))
    text = price_file(catalogue, sizes, core, gib or 0)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(f"--write: {path} is there already; name another file") from None
    except OSError as error:
        raise InputError(f"--write: {path}: {error.strerror}") from None
    unpriced = text.count("\n#  - ")
    rest = f"; {unpriced} need a price: fill it in" if unpriced else ""
    return f"{path}: {len(sizes) - unpriced} flavours with a price{rest}"


def _rate(text: str | None, option: str) -> int | None:
    if text is None:
        return None
    try:
        return parse_price(text)
    except PriceError as error:
        raise InputError(f"{option}: {error}") from None


def price_file(catalogue: Catalogue | None, sizes: Sequence[MachineSize], per_core: int | None, per_gib: int) -> str:
    """A price file with every flavour of the cloud: what is known stays, other prices come from rates or are left out.

    `per_core` and `per_gib` are in billionths of the currency an hour; without them unpriced flavours are comments.
    """
    currency = catalogue.currency if catalogue is not None else "USD"
    billing = catalogue.billing if catalogue is not None else Billing()
    lines = [
        "# What your cloud calls its machines, and what they cost you an hour. One whose line begins with # is never",
        "# launched: fill in its price and remove the sign.",
        f"currency: {currency}",
        f"billing: {{granularity: {billing.granularity_s}s, minimum: {billing.minimum_s}s{_aligned(billing)}}}",
        "flavours:",
    ]
    for size in sorted(sizes, key=lambda each: (each.cpu_m, each.memory_bytes, each.name)):
        known = catalogue.named(size.name) if catalogue is not None else None
        fee = known.fee_nanos_per_hour if known is not None else 0
        price = known.nanos_per_hour - fee if known is not None else _by_rates(size, per_core, per_gib)
        extended, unknown = devices(size.extra_specs)
        if known is not None and known.capacity.extended:
            extended, unknown = known.capacity, ()
        # Whose devices nobody knows is never launched: its GPU would be paid for and used by no pod.
        mark = "  - " if price is not None and not unknown else "#  - "
        lines += [f"# {size.name} has {spec}. Which resource do its nodes report? Add {EXAMPLE}:" for spec in unknown]
        storage = f", ephemeralStorage: {size.disk_bytes // GIB}Gi" if size.disk_bytes >= GIB else ""
        name = msgspec.json.encode(size.name).decode()
        memory = f"{size.memory_bytes // 2**20}Mi"
        prices = _prices(known, fee) if known is not None else f'pricePerHour: "{_text(price)}"'
        shown = f"{prices}{_fee(fee)}{', retired: true' if known is not None and known.retired else ''}"
        amounts = f"cpu: {_cores(size.cpu_m)}, memory: {memory}{storage}{_extended(extended)}"
        lines.append(f"{mark}{{name: {name}, {amounts}, {shown}}}")
    return "\n".join(lines) + "\n"


def _aligned(billing: Billing) -> str:
    clock = f", alignment: {billing.alignment.value}" if billing.alignment is not Alignment.START else ""
    return clock + (f", timeZone: {billing.time_zone}" if billing.time_zone != "UTC" else "")


def _extended(amounts: Resources) -> str:
    found = ", ".join(f"{name}: {count}" for name, count in amounts.extended)
    return f", extended: {{{found}}}" if found else ""


def _prices(known: Flavour, fee: int) -> str:
    if not known.prices:
        zones = f", zones: [{', '.join(known.zones)}]" if known.zones else ""
        return f'pricePerHour: "{_text(known.nanos_per_hour - fee)}"{_cap(known.cap)}{zones}'
    each = (
        f'{{zone: {price.zone}, perHour: "{_text(price.nanos_per_hour - fee)}"{_cap(price.cap)}}}'
        for price in known.prices
    )
    return f"prices: [{', '.join(each)}]"


def _cap(cap: Cap | None) -> str:
    return f', monthlyCap: "{_text(cap.nanos)}"' if cap is not None else ""


def _text(nanos: int | None) -> str:
    return price_text(nanos) if nanos is not None else "…"


def _fee(nanos: int) -> str:
    return f', feePerHour: "{price_text(nanos)}"' if nanos else ""


def _by_rates(size: MachineSize, per_core: int | None, per_gib: int) -> int | None:
    if per_core is None:
        return None
    return round(Fraction(size.cpu_m, 1000) * per_core + Fraction(size.memory_bytes, GIB) * per_gib)


def _cores(cpu_m: int) -> str:
    return f"{cpu_m / 1000:g}"


def _gib(memory_bytes: int) -> str:
    return f"{memory_bytes / GIB:.4g}"


def _share(price: int | None, amount: Fraction) -> str:
    return "-" if price is None or not amount else f"{float(price / amount) / NANOS:.4f}"
