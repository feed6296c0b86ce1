"""The pages in a real browser, on the sandbox's day: real clicks and keys, and axe-core's judgement of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from htas.cli.ui_day import Played
from htas.model.constraints import Constraints, PodAffinityTerm
from htas.model.nodes import HOSTNAME_LABEL, INSTANCE_TYPE_LABEL
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.selectors import LabelSelector, Operator, Requirement
from htas.planning.planner import plan
from htas.web.seat import Seat, Seen
from tests.builders import NOW, make_node, make_pod, make_policy, make_snapshot, running
from tools.screenshots import PAGES, as_logged_in, asking, browser, opened, played, recommending, served, settle

pytestmark = pytest.mark.timeout(300)  # hours of the day are played first, beside whatever else runs

AXE = Path("out/axe/node_modules/axe-core/axe.min.js")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@pytest.fixture(scope="module")
def day() -> Played:
    """Two hours and a quarter of the day, standing still in a burst of jobs."""
    return played(2.25)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as made:
        yield made


@pytest.fixture(scope="module")
def link(day: Played) -> Iterator[str]:
    with served(day.seat) as made:
        yield made


@pytest.fixture(scope="module")
def context(chromium: Browser, link: str) -> Iterator[BrowserContext]:
    """Whoever has opened the link."""
    made = chromium.new_context(viewport={"width": 1280, "height": 900})
    opened(made, link)
    yield made
    made.close()


@pytest.fixture
def faults() -> list[str]:
    """What the browser complains of; a test takes out what it means to happen."""
    return []


@pytest.fixture
def page(context: BrowserContext, faults: list[str]) -> Iterator[Page]:
    yield from watched(context, faults)


def watched(context: BrowserContext, faults: list[str]) -> Iterator[Page]:
    made = context.new_page()
    made.on(
        "console",
        lambda message: (
            faults.append(message.text) if message.type == "error" and "status of 400" not in message.text else None
        ),
    )
    made.on("pageerror", lambda error: faults.append(str(error)))
    yield made
    made.close()
    assert faults == []


@pytest.fixture(scope="module")
def onlooker(chromium: Browser) -> Iterator[BrowserContext]:
    """Whoever looks at what HTAS recommends, after an hour of the day on nodes that are there."""
    yield from visiting(chromium, recommending(1.0))


@pytest.fixture
def advice(onlooker: BrowserContext, faults: list[str]) -> Iterator[Page]:
    """The page Recommended."""
    for made in watched(onlooker, faults):
        shown(made, onlooker, "#/recommended")
        yield made


@pytest.fixture
def decider(chromium: Browser) -> Iterator[BrowserContext]:
    """Whoever is asked, once: what was said is said. Three proposals wait at two minutes past four, the newest of them first."""
    yield from visiting(chromium, asking())


@pytest.fixture
def questions(decider: BrowserContext, faults: list[str]) -> Iterator[Page]:
    """The page To approve."""
    for made in watched(decider, faults):
        shown(made, decider, "#/approvals")
        yield made


def visiting(chromium: Browser, seat: Seat) -> Iterator[BrowserContext]:
    with served(seat) as link:
        made = chromium.new_context(viewport={"width": 1280, "height": 900})
        opened(made, link)
        yield made
        made.close()


def shown(page: Page, context: BrowserContext, place: str) -> None:
    """A place of what the context's first page was opened at."""
    page.goto(context.pages[0].url.partition("#")[0] + place)
    settle(page)


@pytest.fixture
def base(link: str) -> str:
    return link.partition("/assets/")[0]


def go(page: Page, base: str, name: str) -> None:
    page.goto(f"{base}/{PAGES[name]}")
    settle(page)


def violations(page: Page) -> list[str]:
    """What axe-core finds, by rule and place. It is run apart from the page's own policy on scripts, which it would break."""
    page.evaluate(AXE.read_text())
    found = page.evaluate("(tags) => axe.run({runOnly: {type: 'tag', values: tags}})", RULES)
    return [f"{each['id']}: {node['target']}" for each in found["violations"] for node in each["nodes"]]


def unfit(page: Page, width: int, scheme: str) -> list[str]:
    """What axe-core finds, and whether the page is wider than its window, in one size and one scheme of colours."""
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    settle(page)
    as_logged_in(page)
    wide = page.evaluate("() => document.documentElement.scrollWidth")
    return violations(page) + ([f"{wide} wide in {width}"] if wide > width else [])


def test_a_node_and_its_pod_are_explained_in_place(page: Page, base: str) -> None:
    go(page, base, "now")
    first = page.locator(".node").first
    name = first.get_attribute("data-node") or ""
    first.click()
    detail = page.get_by_role("dialog")
    expect(detail.get_by_role("heading", name=name)).to_be_visible()
    expect(detail).to_contain_text("Why it is kept")
    detail.get_by_role("table").get_by_role("link").first.click()
    expect(detail.locator(".kind")).to_have_text("pod")
    expect(detail).to_contain_text("Workload")
    page.keyboard.press("Escape")
    expect(detail).to_be_hidden()
    expect(page).to_have_url(f"{base}/#/now")


def test_nodes_are_found_by_reason_and_by_name(page: Page, base: str, day: Played) -> None:
    go(page, base, "now")
    nodes = len(day.seat.picture().snapshot.cluster.nodes)
    expect(page.locator(".node")).to_have_count(nodes)
    chip = page.locator(".chip[data-kind]").first
    chip.click()
    expect(chip).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".node")).to_have_count(int(chip.locator(".n").first.inner_text()))
    page.locator(".chip[data-kind]").first.click()
    page.get_by_role("searchbox").fill("nothing is called so")
    expect(page.locator(".groups")).to_contain_text("No node matches the search")


def test_nodes_are_a_table_that_is_sorted_and_saved(page: Page, base: str, day: Played) -> None:
    """Nodes had no table, no zone and no age, and names were cut in the part that tells them apart."""
    nodes = day.seat.picture().snapshot.cluster.nodes
    page.goto(f"{base}/#/now/table")
    rows = page.locator(".nodes tbody tr")
    expect(rows).to_have_count(len(nodes))
    expect(rows.first.get_by_role("link")).to_have_text(min(node.name for node in nodes))
    age = page.get_by_role("columnheader", name="Age")
    age.get_by_role("button").click()
    expect(age).to_have_attribute("aria-sort", "descending")
    expect(age.get_by_role("button")).to_be_focused()
    expect(rows.first.get_by_role("link")).to_have_text(min(nodes, key=lambda node: (node.created_at, node.name)).name)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save nodes as CSV").click()
    lines = saved.value.path().read_text().splitlines()
    assert lines[0].startswith("node,group,flavour,zone,")
    assert sorted(line.partition(",")[0] for line in lines[1:]) == sorted(node.name for node in nodes)
    page.get_by_role("button", name="Cards").click()
    expect(page.locator(".node").first).to_contain_text("USD/h")


def test_on_a_phone_the_first_node_is_seen_without_scrolling(page: Page, base: str) -> None:
    """Six cards came before it."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{base}/#/now/cards")
    settle(page)
    expect(page.locator(".node").first).to_be_in_viewport(ratio=1)


def test_keys_search_list_themselves_and_go_from_node_to_node(page: Page, base: str) -> None:
    page.goto(f"{base}/#/now/cards")
    settle(page)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Search on this page")
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.locator(".node").first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".node").nth(1)).to_be_focused()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("() => document.activeElement.matches('.node')")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("2?")
    expect(page.get_by_role("searchbox")).to_have_value("2?")
    page.keyboard.press("Escape")
    page.keyboard.press("2")
    expect(page.locator("h1")).to_have_text("Money")


def test_instants_are_in_the_reader_s_time_zone(chromium: Browser, day: Played) -> None:
    with served(day.seat) as link:
        visitor = chromium.new_context(timezone_id="Asia/Kolkata")
        page = opened(visitor, link)
        expect(page.locator("#pulse")).to_contain_text("07:4")  # a quarter past two, UTC, and some seconds before
        expect(page.locator(".age").first).to_contain_text("ago")
        visitor.close()


def test_a_range_of_money_and_of_decisions_is_chosen(page: Page, base: str, day: Played) -> None:
    until = int(day.seat.picture().at) // 60 * 60
    page.goto(f"{base}/#/money/range/{until - 3600}/{until - 1800}")
    settle(page)
    lead = page.locator(".figure.lead")
    expect(lead).to_contain_text("than in the period before")
    half = float(lead.locator(".value").inner_text().split()[0])
    page.get_by_role("button", name="Custom").click()
    page.get_by_label("From").fill("2026-01-05T00:00")
    page.get_by_role("button", name="Show").click()
    expect(page).to_have_url(re.compile(r"/range/1767571200/"))
    expect(lead).to_contain_text("from 5 Jan 2026 00:00")
    assert float(lead.locator(".value").inner_text().split()[0]) > half
    expect(page.get_by_role("heading", name="What to change")).to_be_in_viewport()
    go(page, base, "decisions")
    everything = page.locator(".chips [data-verb=launch] .n")
    before = int(everything.inner_text())
    page.get_by_role("button", name="Last hour").click()
    expect(everything).not_to_have_text(str(before))
    assert int(everything.inner_text()) < before


def test_the_keyboard_reaches_all(page: Page, base: str) -> None:
    go(page, base, "now")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the content")
    page.locator(".node").first.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(page.get_by_role("dialog").locator(":focus")).to_have_count(1)


def test_a_page_s_link_leads_the_keyboard_to_its_heading(page: Page, base: str) -> None:
    """Focus stayed in the header: of each page all its links were gone through again."""
    go(page, base, "now")
    page.get_by_role("link", name="Money", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.locator("main h1:focus")).to_have_text("Money")
    page.keyboard.press("Tab")
    expect(page.locator("main :focus")).to_have_count(1)


def test_a_node_s_shares_are_those_of_its_bar(page: Page, base: str) -> None:
    """60 % were told beside a bar and a table of 65: DaemonSets were left out of the one."""
    go(page, base, "now")
    page.locator(".node").first.click()
    there = page.get_by_role("dialog")
    cpu = there.locator(".facts div", has_text="CPU requested").locator("dd")
    expect(cpu).to_contain_text("of it DaemonSets")
    shares = [int(text.split()[0]) for text in there.locator("tbody td:nth-child(3)").all_inner_texts()]
    assert abs(int(cpu.inner_text().split()[0]) - sum(shares)) <= len(shares)


def test_type_grows_with_the_width(context: BrowserContext, base: str) -> None:
    """At 2560 it stayed a desk's, and half of the page empty."""
    sizes = {}
    for width in (390, 1280, 2560):
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(base)
        settle(page)
        sizes[width] = page.evaluate("() => parseFloat(getComputedStyle(document.documentElement).fontSize)")
        page.close()
    assert sizes[390] == 15
    assert 15 <= sizes[1280] < 16
    assert sizes[2560] >= 20


def test_money_adds_up_and_windows_change(page: Page, base: str) -> None:
    go(page, base, "money")
    expect(page.get_by_role("img", name="Bars of what was spent")).to_be_visible()
    expect(page.locator("main")).to_contain_text("The same work in other ways")
    page.get_by_role("button", name="6 hours").click()
    expect(page.get_by_role("button", name="6 hours")).to_have_attribute("aria-pressed", "true")
    page.get_by_text("As a table").click()
    assert page.locator("details tbody tr").count() > 6


def test_a_decision_is_planned_again_in_place(page: Page, base: str) -> None:
    go(page, base, "decisions")
    page.get_by_role("button", name="launched").click()
    expect(page.locator(".timeline li").first).to_contain_text("launched")
    page.get_by_role("button", name="Plan cycle").first.click()
    expect(page.locator(".again").first).to_have_text("Today's policy gives the same plan.")


def fill_flavour(page: Page) -> None:
    for field, text in {"name": "big", "cpu": "16", "memory": "64Gi", "price": "0.80"}.items():
        page.locator(f".adding input[name={field}]").fill(text)


def add_a_flavour(page: Page) -> None:
    fill_flavour(page)
    page.get_by_role("button", name="Add").click()


def test_what_if_answers_at_once(page: Page, base: str) -> None:
    go(page, base, "what-if")
    verdict = page.locator(".verdict")
    expect(verdict).to_contain_text("As it is")
    page.get_by_role("spinbutton").first.fill("100")
    expect(verdict).to_contain_text("more an hour")
    expect(verdict).to_contain_text("Launched for pending pods")
    page.get_by_role("button", name="Start over").click()
    fill_flavour(page)
    page.get_by_role("checkbox").first.check()
    page.get_by_role("button", name="Add").click()  # both are one question: the planner answers one at a time
    expect(verdict).to_contain_text("with the change")
    expect(page.locator(".added")).to_contain_text("big")
    add_a_flavour(page)
    expect(page.locator(".added")).to_have_count(1)
    assert "already" in page.locator(".adding input[name=name]").evaluate("field => field.validationMessage")
    expect(page.locator(".result[aria-busy]")).to_have_count(0)  # the planner answers one question at a time
    page.locator(".fields input[type=text]").first.fill("not a price")
    expect(page.locator(".result")).to_contain_text("is not a decimal number")


def test_what_if_refuses_what_makes_no_sense_where_it_is_typed(page: Page, base: str, faults: list[str]) -> None:
    """A flavour at -1 was in the list and could not be told from the others; 2.5 replicas were taken for 3."""
    go(page, base, "what-if")
    replicas, prices = page.get_by_role("spinbutton"), page.locator(".fields input[type=text]")
    replicas.first.fill("2.5")
    expect(page.locator(".result")).to_contain_text("a whole number from 0 to 20,000")
    expect(page.locator(".wrong")).to_have_count(1)
    expect(replicas.first).to_have_attribute("aria-invalid", "true")
    replicas.first.fill("100")
    expect(page.locator(".verdict")).to_contain_text("more an hour")
    expect(page.locator(".wrong")).to_have_count(0)
    fill_flavour(page)
    for field, text in (("price", "-1"), ("cpu", "many"), ("cpu", "1e30"), ("memory", "0"), ("name", " ")):
        typed = page.locator(f".adding input[name={field}]")
        before = typed.input_value()
        typed.fill(text)
        page.get_by_role("button", name="Add").click()
        assert typed.evaluate("field => field.validationMessage"), (field, text)
        typed.fill(before)
    expect(page.locator(".added")).to_have_count(0)
    prices.nth(0).fill("-1")
    prices.nth(1).fill("dear")
    expect(page.locator(".wrong")).to_have_count(2)
    expect(page.locator(".result li")).to_have_count(2)
    assert ["status of 400" in fault for fault in faults] == [True] * len(faults)
    faults.clear()


def test_what_if_is_kept_in_the_address(page: Page, base: str) -> None:
    """A reload lost it, and nobody could be sent what somebody had found."""
    go(page, base, "what-if")
    page.get_by_role("spinbutton").first.fill("100")
    add_a_flavour(page)
    expect(page.locator(".verdict")).to_contain_text("with the change")
    expect(page).to_have_url(re.compile(r"#/what-if/with/.*big.*%22replicas%22"))
    page.reload()
    expect(page.get_by_role("spinbutton").first).to_have_value("100")
    expect(page.locator(".added")).to_contain_text("big")
    expect(page.locator(".verdict")).to_contain_text("with the change")
    page.get_by_role("button", name="Start over").click()
    expect(page).to_have_url(f"{base}/#/what-if")
    page.goto(f"{base}/#/what-if/with/nonsense")
    expect(page.locator(".verdict")).to_contain_text("Cheapest for what runs now")


def test_what_if_comes_back_when_the_planner_is_busy(page: Page, base: str, faults: list[str]) -> None:
    """The server says when; it is asked again by itself, and nobody is told that what they asked makes no sense."""
    go(page, base, "what-if")
    expect(page.locator(".verdict")).to_contain_text("HTAS would save")
    answers = iter(["1", "1"])

    def busy(route: Route) -> None:
        after = next(answers, None)
        if after is None:
            route.continue_()
        else:
            route.fulfill(status=503, headers={"Retry-After": after}, body="planning again is under way")

    page.route("**/api/v1/simulate", busy)
    page.get_by_role("spinbutton").first.fill("100")
    expect(page.locator(".result")).to_contain_text("The planner is busy")
    expect(page.locator(".verdict")).to_contain_text("Launched for pending pods", timeout=15_000)
    assert ["status of 503" in fault for fault in faults] == [True, True]
    faults.clear()


@pytest.mark.parametrize(
    ("name", "asked", "shown"),
    [
        pytest.param("money", "money", "The same work in other ways", id="what was spent"),
        pytest.param("money", "against", "The same work in other ways", id="another way"),
        pytest.param("decisions", "decisions", "Launched", id="decisions"),
        pytest.param("what-if", "what-if", "Cheapest for what runs now", id="what can be changed"),
    ],
)
def test_a_page_that_has_to_wait_is_drawn_when_its_turn_comes(
    name: str, asked: str, shown: str, page: Page, base: str, faults: list[str]
) -> None:
    """It said that there was no past to tell, or began anew without what was chosen."""
    answers = iter(["1", "1"])

    def busy(route: Route) -> None:
        after = next(answers, None)
        if after is None:
            route.continue_()
        else:
            route.fulfill(status=503, headers={"Retry-After": after}, body="working out a page is under way")

    page.route(re.compile(rf"/api/v1/{asked}(\?|$)"), busy)
    page.goto(f"{base}/#/{name}")
    expect(page.get_by_text("Not ready yet")).to_be_visible()
    expect(page.locator("main")).to_contain_text(shown, timeout=15_000)
    expect(page.get_by_text("Not ready yet")).to_be_hidden()
    assert all("status of 503" in fault for fault in faults), faults
    faults.clear()


def test_figures_lead_to_their_reasons(page: Page, base: str) -> None:
    go(page, base, "now")
    page.get_by_role("link", name="launches").click()
    expect(page.get_by_role("button", name="launched")).to_have_attribute("aria-pressed", "true")
    page.locator(".timeline a.subject").first.click()
    expect(page.get_by_role("searchbox")).not_to_have_value("")
    go(page, base, "money")
    page.locator("[data-by=namespace]").get_by_role("link", name="default").click()
    detail = page.get_by_role("dialog")
    expect(detail.locator(".kind")).to_have_text("namespace")
    detail.get_by_role("table").get_by_role("link").nth(1).click()
    expect(detail.locator(".kind")).to_have_text("node")
    go(page, base, "money")
    page.locator("[data-by=flavour]").get_by_role("link").first.click()
    expect(page.get_by_role("searchbox")).not_to_have_value("")
    expect(page.locator(".node").first).to_be_visible()


def test_long_lists_are_folded(chromium: Browser) -> None:
    nodes = [make_node(f"node-{i}") for i in range(3)]
    pods = [running(make_pod(f"web-{i}", template=f"ReplicaSet/web-{'x' * i}"), f"node-{i % 3}") for i in range(15)]
    snapshot = make_snapshot(nodes, pods)
    seat = Seat("dump", make_policy)
    seat.observe(Seen(snapshot, plan(snapshot, make_policy(), NOW)))
    with served(seat) as link:
        context = chromium.new_context()
        page = opened(context, link)
        page.goto(f"{link.partition('/assets/')[0]}/#/what-if")
        settle(page)
        services = page.locator(".card", has_text="Grow a service")
        expect(services.get_by_role("spinbutton")).to_have_count(12)
        services.get_by_role("button", name="3 more services").click()
        expect(services.get_by_role("spinbutton")).to_have_count(15)
        context.close()


def test_purchases_alike_are_told_as_one(chromium: Browser) -> None:
    """Nine pods that keep apart have nine machines bought in one cycle: one is seen, and the others on request."""
    apart = Constraints(
        anti_affinity=(PodAffinityTerm(HOSTNAME_LABEL, LabelSelector((Requirement("x", Operator.EXISTS),))),)
    )
    pods = [make_pod(f"web-{i}", labels={"x": ""}, constraints=apart, scheduler="htas") for i in range(9)]
    snapshot = make_snapshot([], pods)
    made = plan(snapshot, make_policy(), NOW)
    outcomes = tuple(Outcome(Action.LAUNCH, each.claim, OutcomeStatus.DONE) for each in made.launches)
    seat = Seat("live", make_policy)
    seat.observe(Seen(snapshot, made, outcomes, number=1))
    with served(seat) as link:
        context = chromium.new_context()
        page = opened(context, link)
        page.goto(f"{link.partition('/assets/')[0]}/#/decisions")
        settle(page)
        expect(page.locator(".timeline .said")).to_have_count(1)
        page.get_by_role("button", name="8 more launched alike").click()
        expect(page.locator(".timeline .said")).to_have_count(9)
        assert violations(page) == []
        context.close()


def test_what_others_write_is_text(chromium: Browser) -> None:
    mark = "<img src=x onerror=document.title='owned'><b>bold</b>"
    node = make_node("node", labels={INSTANCE_TYPE_LABEL: mark})
    snapshot = make_snapshot([node], [running(make_pod("web", template=f"Deployment/{mark}"), "node")])
    seat = Seat("dump", make_policy)
    seat.observe(Seen(snapshot, plan(snapshot, make_policy(), NOW)))
    with served(seat) as link:
        context = chromium.new_context()
        page = opened(context, link)
        expect(page.locator(".node .flavour")).to_have_text(mark)
        page.locator(".node").click()
        expect(page.get_by_role("dialog")).to_contain_text(mark)
        assert page.locator("main img, main b:text('bold')").count() == 0
        assert page.title() == "Now · HTAS"
        context.close()


def test_the_link_opens_once(chromium: Browser, context: BrowserContext, link: str) -> None:
    assert context.pages is not None  # it has been opened
    other = chromium.new_context()
    answer = other.new_page().goto(link)
    assert answer is not None and answer.status == 403
    other.close()


def test_who_has_no_session_is_asked_for_a_token(chromium: Browser, base: str, link: str) -> None:
    other = chromium.new_context()
    page = opened(other, base)
    page.get_by_label("Token").fill("a guess")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("open the link that htas ui printed")
    assert violations(page) == []
    page.get_by_label("Token").fill(link.partition("once=")[2])
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("open the link that htas ui printed")
    expect(page.locator(".totals")).to_have_count(0)
    other.close()


def test_logging_out_leaves_the_field_alone(chromium: Browser) -> None:
    snapshot = make_snapshot([make_node("node")], [running(make_pod("web"), "node")])
    seat, seen = Seat("live", make_policy), Seen(snapshot, plan(snapshot, make_policy(), NOW))
    seat.observe(seen)
    with served(seat) as link:
        seat.is_entered_once = False  # as of a daemon, where a token opens the pages again
        context = chromium.new_context()
        page = opened(context, link)
        page.get_by_role("button", name="Log out").click()
        field = page.get_by_label("Token")
        field.fill("half a tok")
        seat.observe(seen)
        page.evaluate("() => dispatchEvent(new HashChangeEvent('hashchange'))")
        page.wait_for_timeout(1_500)  # longer than the pages' news take to come
        expect(field).to_have_value("half a tok")
        expect(page.get_by_role("button", name="Log out")).to_be_hidden()
        expect(page.locator("#where")).to_have_text("")
        context.close()


def test_addresses_that_make_no_sense(page: Page, base: str, day: Played) -> None:
    name = day.seat.picture().snapshot.cluster.nodes[0].name
    page.goto(f"{base}/#/now/node/{name}")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.evaluate("() => { location.hash = '#/now/xyz/1'; }")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.locator(".totals")).to_contain_text("Cost now")


def test_on_a_phone_the_verdict_stays_in_view(page: Page, base: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    go(page, base, "what-if")
    page.get_by_role("checkbox").first.check()
    expect(page.locator(".glance")).to_contain_text("with the change")
    page.locator(".adding").scroll_into_view_if_needed()
    expect(page.locator(".glance")).to_be_in_viewport()


def test_what_is_recommended_leads_to_nodes_and_pods(advice: Page) -> None:
    expect(advice.locator("#banner")).to_contain_text("changes nothing in it")
    expect(advice.locator(".totals .lead")).to_contain_text("Would have saved")
    expect(advice.get_by_role("img", name="what they would cost with HTAS")).to_be_visible()
    emptied = advice.locator(".steps > li", has_text="drain and delete").first
    name = emptied.get_by_role("link").first.inner_text()
    expect(emptied.locator(".pods li").first).to_contain_text("to ")
    emptied.get_by_role("link").first.click()
    expect(advice.get_by_role("dialog").get_by_role("heading", name=name)).to_be_visible()
    advice.keyboard.press("Escape")
    advice.get_by_role("link", name="launches it would have made").click()
    expect(advice.locator(".timeline li").first).to_contain_text("would be launched")
    advice.get_by_role("link", name="Money").click()
    advice.locator("main").get_by_role("link", name="Recommended").click()
    expect(advice.locator(".totals .lead")).to_contain_text("Would have saved")


def shown_of(page: Page, place: str) -> None:
    """Another place of the same pages."""
    page.evaluate("(place) => { location.hash = place; }", place)


def test_a_word_is_said_with_a_click(questions: Page) -> None:
    cards = questions.locator(".ask")
    waiting = cards.count()
    assert waiting >= 2
    expect(questions.locator("#banner")).to_contain_text(f"{waiting} to approve.")
    oldest = cards.last
    cards.first.locator(".pods").get_by_role("link").first.click()
    expect(questions.get_by_role("dialog").locator(".kind")).to_have_text("pod")
    questions.keyboard.press("Escape")
    oldest.get_by_text("In a terminal").click()
    expect(oldest.locator("code")).to_contain_text("htas approve ")
    oldest.get_by_role("button", name="Reject").click()
    expect(questions.get_by_role("status").filter(has_text="1 proposal rejected.")).to_be_visible()
    expect(questions.locator("h1")).to_be_focused()
    expect(cards).to_have_count(waiting - 1)
    expect(questions.locator("#banner")).to_contain_text(f"{waiting - 1} to approve.")
    expect(questions.locator(".answers li").first).to_contain_text("rejected by whoever opened the link")
    node = cards.first.get_attribute("data-about")
    shown_of(questions, f"#/now/node/{node}")
    expect(questions.get_by_role("dialog")).to_contain_text("waits for approval")
    questions.get_by_role("dialog").get_by_role("link", name="approve or reject").click()
    expect(cards.first.get_by_role("button", name="Approve", exact=False)).to_be_in_viewport()
    questions.get_by_role("button", name="Approve all").click()
    expect(cards).to_have_count(waiting - 1)
    questions.get_by_role("button", name="Not yet").click()
    expect(questions.get_by_role("button", name="Approve all")).to_be_focused()
    questions.keyboard.press("Enter")
    questions.get_by_role("button", name=f"Yes, approve all {waiting - 1}").click()
    expect(questions.get_by_role("status").filter(has_text="approved")).to_be_visible()
    expect(questions.locator('#pages a[href="#/approvals"]')).to_have_text("To approve")
    expect(questions.locator("#banner")).to_be_hidden()


@pytest.mark.in_turn(5)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280, 2560])
@pytest.mark.parametrize("name", [*PAGES, "node"])
def test_axe_finds_nothing_and_nothing_overflows(
    name: str, width: int, scheme: str, page: Page, base: str, day: Played
) -> None:
    if name == "node":
        page.goto(f"{base}/#/now/node/{day.seat.picture().snapshot.cluster.nodes[0].name}")
        expect(page.get_by_role("dialog")).to_be_visible()
    else:
        go(page, base, name)
    assert unfit(page, width, scheme) == []


@pytest.mark.in_turn(5)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280, 2560])
def test_axe_finds_nothing_on_recommended(width: int, scheme: str, advice: Page) -> None:
    assert unfit(advice, width, scheme) == []


def test_axe_finds_nothing_on_to_approve(questions: Page) -> None:
    for width, scheme in product((390, 1280, 2560), ("light", "dark")):
        assert unfit(questions, width, scheme) == []


def test_when_the_server_is_gone_every_page_says_so_with_the_age_of_its_figures(
    chromium: Browser, day: Played, faults: list[str]
) -> None:
    with served(day.seat) as link:
        visitor = chromium.new_context(viewport={"width": 1280, "height": 900})
        page = opened(visitor, link)
        expect(page.locator("#stale")).to_be_hidden()
    expect(page.locator("#stale")).to_contain_text("No answer from HTAS", timeout=10_000)
    expect(page.locator("#stale")).to_contain_text(re.compile(r"These figures are from .* ago"))
    expect(page.locator(".figure.lead")).to_be_visible()
    visitor.close()


def test_a_node_that_is_not_there_is_explained_with_what_was_decided_about_it(
    page: Page, context: BrowserContext, day: Played, faults: list[str]
) -> None:
    present = {node.name for node in day.seat.picture().snapshot.cluster.nodes}
    gone = next(
        decision.subject
        for decision in day.seat.chronicle.decisions()
        if decision.kind == "drain" and decision.subject not in present
    )
    shown(page, context, f"#/now/node/{gone}")
    detail = page.locator("#detail")
    expect(detail).to_contain_text("No node has this name now")
    expect(detail.locator("ol.lines li").first).to_contain_text(gone)
    faults[:] = [fault for fault in faults if "status of 404" not in fault]


def test_no_headline_measures_the_price_by_a_bound_that_is_out_of_reach(page: Page, context: BrowserContext) -> None:
    shown(page, context, "#/now")
    expect(page.locator(".figure.lead")).not_to_contain_text("above")


def test_a_used_link_leads_the_browser_that_used_it_to_the_pages_and_tells_another_why(
    chromium: Browser, day: Played
) -> None:
    with served(day.seat) as link:
        first, second = chromium.new_context(), chromium.new_context()
        opened(first, link)
        again = first.new_page()
        again.goto(link)
        expect(again.locator("#pages")).to_be_visible()
        other = second.new_page()
        other.goto(link)
        expect(other.locator("h1")).to_have_text("This link was used already")
        first.close()
        second.close()
