"""The price file: prices by zone, monthly caps, hours of the clock; and what published lists write instead."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from htas.cli.reports import configuration_view, idle_caps
from htas.config.loader import load_configuration
from htas.model.billing import Alignment, Billing, Cap
from htas.model.flavours import Catalogue, ZonePrice
from tests.unit.config.files import GOOD, told, without


def catalogue(tmp_path: Path, flavour: str, billing: str = "{}") -> Catalogue:
    text = without("flavours", f"flavours: {{billing: {billing}, flavours: [{flavour}]}}")
    (tmp_path / "htas.yaml").write_text(text)
    return load_configuration(tmp_path / "htas.yaml").policy.catalogue


def test_prices_by_zone(tmp_path: Path) -> None:
    """The fee is part of each; the flavour's own price is the least; it is sold in the zones that have a price."""
    found = catalogue(
        tmp_path,
        "{name: a, cpu: 1, memory: 1Gi, monthlyCap: 90, prices: [{zone: az-3, perHour: 0.26, monthlyCap: 120},"
        ' {zone: az-1, perHour: "0.20"}]}',
        "{feePerHour: 0.01}",
    )
    (flavour,) = found.flavours
    fee = 10_000_000
    assert flavour.prices == (
        ZonePrice("az-3", 270_000_000, Cap(120 * 10**9, fee)),
        ZonePrice("az-1", 210_000_000, Cap(90 * 10**9, fee)),
    )
    assert (flavour.zones, flavour.nanos_per_hour, flavour.cap) == (("az-3", "az-1"), 210_000_000, Cap(90 * 10**9, fee))


def test_a_monthly_cap(tmp_path: Path) -> None:
    found = catalogue(tmp_path, '{name: s3, cpu: 1, memory: 2Gi, pricePerHour: "0.0149", monthlyCap: "10.00"}')
    assert (found.flavours[0].nanos_per_hour, found.flavours[0].cap) == (14_900_000, Cap(10 * 10**9))
    assert found.flavours[0].zones == ()


def test_hours_of_the_clock_and_months_of_a_time_zone(tmp_path: Path) -> None:
    flavour = "{name: a, cpu: 1, memory: 1Gi, pricePerHour: 1}"
    found = catalogue(tmp_path, flavour, "{granularity: 1h, minimum: 0s, alignment: clock, timeZone: Europe/Paris}")
    assert found.billing == Billing(3600, 0, Alignment.CLOCK, "Europe/Paris")
    assert catalogue(tmp_path, flavour).billing == Billing()


BY_MONTH = (
    'HTAS reckons by the hour; write pricePerHour, and monthlyCap: "20.00" if a month costs no more than that;'
    ' pricePerHour is "0.029761905" if the provider counts 28 days a month, "0.027397261" if it counts 730 hours'
)
SECONDS, MINUTES = (
    f"; that a started {unit} is charged in full is billing.granularity" for unit in ("second", "minute")
)


def a_price(unit: str, written: str, hour: str, key: str = "pricePerHour") -> str:
    return f"is by the {unit}, and HTAS reckons by the hour; write {key}: \"{hour}\" for '{written}' a {unit}"


OF_NOVA = "is Nova's word; write the resource that its nodes report to Kubernetes, extended: {nvidia.com/gpu: "


@pytest.mark.parametrize(
    ("flavour", "want"),
    [
        pytest.param('pricePerHour: "0,0681"', ["pricePerHour: '0,0681' has a comma; write it with a point: \"0.0681\""],
                     id="a comma in a price"),
        pytest.param('prices: [{zone: a, perHour: "0,07"}]',
                     ["prices[0].perHour: '0,07' has a comma; write it with a point: \"0.07\""], id="and in one by zone"),
        pytest.param('pricePerHour: 1, pricePerMonth: "20.00"', [f"pricePerMonth: {BY_MONTH}"], id="a month's beside an hour's"),
        pytest.param('pricePerMonth: "20.00"',
                     [f"pricePerMonth: {BY_MONTH}"], id="a rate by the month alone: one mistake"),
        pytest.param('pricePerSecond: "0.0001"', [f"pricePerSecond: {a_price('second', '0.0001', '0.36')}{SECONDS}"],
                     id="a second's alone"),
        pytest.param('pricePerHour: "0,1", pricePerSecond: "0.0001"',
                     ["pricePerHour: '0,1' has a comma; write it with a point: \"0.1\"",
                      f"pricePerSecond: {a_price('second', '0.0001', '0.36')}{SECONDS}"], id="and two mistakes"),
        pytest.param('prices: [{zone: a, pricePerMinute: 1}]',
                     [f"prices[0].pricePerMinute: {a_price('minute', '1', '60.00', 'perHour')}{MINUTES}"],
                     id="alone, in one by zone"),
        pytest.param("pricePerHour: 1, monthlyCap: 0.5",
                     ["monthlyCap: 0.50 is less than one hour costs, 1.00; write the most that a calendar month costs, or"
                      " remove it"], id="a cap below an hour"),
        pytest.param("monthlyCap: 2, prices: [{zone: a, perHour: 1}, {zone: b, perHour: 3}]",
                     ["monthlyCap: 2.00 is less than one hour costs, 3.00; write the most that a calendar month costs, or"
                      " remove it"], id="a cap below an hour of one zone"),
        pytest.param("prices: [{zone: a, perHour: 1, monthlyCap: 0.5}]",
                     ["prices[0].monthlyCap: 0.50 is less than one hour costs, 1.00; write the most that a calendar month"
                      " costs, or remove it"], id="a zone's cap below an hour"),
        pytest.param('pricePerHour: 1, pricePerSecond: "0.0001"', [f"pricePerSecond: {a_price('second', '0.0001', '0.36')}{SECONDS}"],
                     id="a second's"),
        pytest.param("pricePerHour: 1, price_per_second: 0.0000263889",
                     [f"price_per_second: {a_price('second', '0.0000263889', '0.09500004')}{SECONDS}"], id="in another style"),
        pytest.param('pricePerHour: 1, pricePerMinute: "0.002"', [f"pricePerMinute: {a_price('minute', '0.002', '0.12')}{MINUTES}"],
                     id="a minute's"),
        pytest.param('pricePerHour: 1, feePerMinute: "0.001"',
                     [f"feePerMinute: {a_price('minute', '0.001', '0.06', 'feePerHour')}{MINUTES}"], id="a fee's"),
        pytest.param('pricePerHour: 1, feePerMonth: "6.72"',
                     ["feePerMonth: HTAS reckons by the hour; write feePerHour; feePerHour is \"0.01\" if the provider counts 28"
                      ' days a month, "0.00920548" if it counts 730 hours'], id="a month's fee, which has no cap"),
        pytest.param("pricePerHour: 1, dailyRate: 1", [f"dailyRate: {a_price('day', '1', '0.041666667')}"],
                     id="a day's, rounded up"),
        pytest.param("pricePerHour: 1, pricePerYear: 876", [f"pricePerYear: {a_price('year', '876', '0.10')}"], id="a year's"),
        pytest.param("pricePerHour: 1, perSecond: cheap",
                     ["perSecond: is by the second, and HTAS reckons by the hour; write pricePerHour"
                      f"{SECONDS}"], id="a second's, and no number"),
        pytest.param("prices: [{zone: a, perHour: 1, pricePerMinute: 1}]",
                     [f"prices[0].pricePerMinute: {a_price('minute', '1', '60.00', 'perHour')}{MINUTES}"], id="in one by zone"),
        pytest.param("pricePerHour: 1, hourlyRate: 1", ["hourlyRate: unknown key; did you mean pricePerHour?"],
                     id="an hour's by another name"),
        pytest.param('pricePerHour: "1,234"',
                     ["pricePerHour: '1,234' has a comma; the decimal sign is a point: write \"1.234\", or \"1234\" if the"
                      " comma separates thousands"], id="a comma that may be either"),
        pytest.param('pricePerHour: "1.234,56"',
                     ["pricePerHour: '1.234,56' separates thousands; write it without, and with a decimal point: \"1234.56\""],
                     id="a point and a comma"),
        pytest.param('pricePerHour: "0,12"', ["pricePerHour: '0,12' has a comma; write it with a point: \"0.12\""],
                     id="a decimal comma"),
        pytest.param("pods: 10", ['pricePerHour: missing; write it such as "0.1371", or prices by zone'], id="no price"),
        pytest.param("pricePerHour: 1, prices: [{zone: a, perHour: 2}]",
                     ["pricePerHour: there are prices by zone, too; remove one of both"], id="one price and several"),
        pytest.param("zones: [a], prices: [{zone: a, perHour: 2}]",
                     ["prices: name the zones already; remove the flavour's key zones"], id="zones twice"),
        pytest.param("prices: [{zone: a, perHour: 2}, {zone: a, perHour: 3}]",
                     ["prices: a is there more than once; write one price for it"], id="two prices of a zone"),
        pytest.param("prices: [{zone: a}]", ["prices[0].perHour: missing; this key is required"], id="a zone without one"),
        pytest.param("pricePerHour: 1, monthlyCap: free",
                     ['monthlyCap: \'free\' is not a decimal number; write a price an hour such as "0.1371"'], id="no cap"),
        pytest.param('pricePerHour: 1, extraSpecs: {"pci_passthrough:alias": "a100:2"}',
                     [f"extraSpecs: {OF_NOVA}2}}"], id="Nova's extra specs, with the count"),
        pytest.param('pricePerHour: 1, "resources:VGPU": "1"', [f'["resources:VGPU"]: {OF_NOVA}1}}'], id="and by themselves"),
        pytest.param('pricePerHour: 1, extended: {"resources:VGPU": 1, "resources:CUSTOM_GPU_A30": 1}',
                     [f'extended["resources:VGPU"]: \'resources:VGPU\' {OF_NOVA}1}}',
                      f'extended["resources:CUSTOM_GPU_A30"]: \'resources:CUSTOM_GPU_A30\' {OF_NOVA}1}}'],
                     id="and among the resources: all are told"),
    ],
)  # fmt: skip
def test_what_price_lists_say_otherwise_is_refused_with_what_to_write(
    tmp_path: Path, flavour: str, want: list[str]
) -> None:
    text = without("flavours", f"flavours: [{{name: a, cpu: 1, memory: 1Gi, {flavour}}}]")
    where = [f"flavours[0]{'' if line.startswith('[') else '.'}{line}" for line in want]
    assert [line.partition(" ")[2] for line in told(tmp_path, text)] == where


@pytest.mark.parametrize(
    ("billing", "want"),
    [
        pytest.param("{alignment: hour}", "alignment: found 'hour'; write start or clock", id="no alignment"),
        pytest.param("{granularity: 7m, alignment: clock}",
                     "alignment: a day is no whole number of periods of 420s; write a granularity such as 1h",
                     id="no periods of the clock"),
        pytest.param("{timeZone: Amsterdam}",
                     "timeZone: 'Amsterdam' is no time zone that this machine knows; write UTC or one such as"
                     " Europe/Amsterdam", id="no time zone"),
        pytest.param("{timeZone: ../../etc/passwd}",
                     "timeZone: '../../etc/passwd' is no time zone that this machine knows; write UTC or one such as"
                     " Europe/Amsterdam", id="a path"),
    ],
)  # fmt: skip
def test_billing_that_makes_no_sense(tmp_path: Path, billing: str, want: str) -> None:
    text = GOOD.replace("flavours: {", f"flavours: {{billing: {billing}, ")
    assert [line.partition(" ")[2] for line in told(tmp_path, text)] == [f"flavours.billing.{want}"]


def test_a_flavour_twice_with_zones_is_told_how_prices_by_zone_are_written(tmp_path: Path) -> None:
    one, other = (f"{{name: a, cpu: 1, memory: 1Gi, pricePerHour: {price}, zones: [z{price}]}}" for price in (1, 2))
    (line,) = told(tmp_path, without("flavours", f"flavours: [{one}, {other}]"))
    assert line.endswith('write one flavour with its prices by zone, such as prices: [{zone: az-1, perHour: "0.20"}]')


@pytest.mark.parametrize(
    ("flavour", "line", "warnings"),
    [
        ("pricePerHour: 0.01, monthlyCap: 5", "0.01, a month 5.00 at most", []),
        ("pricePerHour: 0.01, monthlyCap: 8", "0.01, a month 8.00 at most",
         ["flavour a: monthlyCap: 8.00 is more than a month of 744 hours costs, 7.44; write the rate of a month, or"
          " remove it"]),
        ("monthlyCap: 8, prices: [{zone: x, perHour: 0.01}, {zone: y, perHour: 0.02, monthlyCap: 9}]",
         "0.01 to 0.02 by zone, a month 8.00 to 9.00 at most",
         ["flavour a: monthlyCap: 8.00 is more than a month of 744 hours costs, 7.44; write the rate of a month, or"
          " remove it"]),
        ("monthlyCap: 8, prices: [{zone: x, perHour: 0.01}, {zone: y, perHour: 0.02}]",
         "0.01 to 0.02 by zone, a month 8.00 at most", []),
        ("prices: [{zone: x, perHour: 0.01}, {zone: y, perHour: 0.02, monthlyCap: 9}]",
         "0.01 to 0.02 by zone, a month 9.00 at most in y", []),
    ],
    ids=["in reach", "out of reach", "by zone", "in reach of one zone", "in one zone"],
)  # fmt: skip
def test_check_shows_each_cap_and_warns_of_one_that_never_acts(
    tmp_path: Path, flavour: str, line: str, warnings: list[str]
) -> None:
    flavours = f"flavours: {{flavours: [{{name: a, cpu: 1, memory: 1Gi, {flavour}}}]}}"
    (tmp_path / "htas.yaml").write_text(without("flavours", flavours))
    loaded = load_configuration(tmp_path / "htas.yaml")
    assert idle_caps(loaded) == warnings
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(configuration_view(loaded))
    assert f"a ({line})" in console.export_text()
