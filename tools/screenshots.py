"""Pictures of every page, at three widths, light and dark: `python -m tools.screenshots` (or `make screenshots`).

The pages are those of the demo's day, played to an hour and then left still, so that the pictures are alike each time:
with HTAS in charge, with HTAS asking for a word (To approve), and with HTAS looking on (Recommended).
Needs Debian's chromium and Playwright (tools/testenv/browser-packages.sh).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from htas.cli.ui import ASKING_H, serve
from htas.cli.ui_day import Played, PlayedBeside
from htas.model.modes import Approval
from htas.web.seat import Seat

CHROMIUM = "/usr/bin/chromium"
WIDTHS = {390: 844, 1280: 800, 2560: 1440}
SCHEMES = ("light", "dark")
PAGES = {"now": "#/now", "money": "#/money", "decisions": "#/decisions", "what-if": "#/what-if"}


@contextmanager
def browser() -> Iterator[Browser]:
    """Debian's Chromium, headless."""
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield made
        made.close()


@contextmanager
def served(seat: Seat) -> Iterator[str]:
    """The pages on loopback; the link that opens them, once."""
    listener, link = serve(seat, 0)
    listener.start()
    yield link
    listener.stop()


def played(hours: float = 12.0, seed: int = 1) -> Played:
    """The demo's day up to an hour, standing still there."""
    made = Played(seed, hours, 0.0)
    made.play()
    return made


def recommending(hours: float = 12.0, seed: int = 1) -> Seat:
    """The same day under kube-scheduler on a fixed set of nodes; HTAS looks on."""
    made = PlayedBeside(seed, hours, 0.0)
    made.play()
    return made.seat


def asking(hours: float = ASKING_H, seed: int = 1) -> Seat:
    """The same day, where what would disturb running pods waits for a word."""
    made = Played(seed, hours, 0.0, Approval())
    made.play()
    return made.seat


def opened(context: BrowserContext, address: str) -> Page:
    """A page, drawn."""
    page = context.new_page()
    page.goto(address)
    settle(page)
    return page


def as_logged_in(page: Page) -> None:
    """With what only a daemon's pages have: how to log out, which takes room in the header. The demo hides that, since
    whoever has opened its link could not come back.
    """
    page.evaluate("() => { document.getElementById('leave').hidden = false; }")


def settle(page: Page) -> None:
    """Until the page has been drawn from the API's documents."""
    page.wait_for_selector("main .page, main .login, main .empty")
    page.wait_for_function("() => !document.querySelector('[aria-busy]')")
    time.sleep(0.4)  # transitions end


def stands(hours: float) -> Iterator[tuple[Seat, dict[str, str]]]:
    """Every page by its name and address, with what it is told from."""
    day = played(hours).seat
    node = day.picture().snapshot.cluster.nodes[0].name
    yield day, PAGES | {"node": f"#/now/node/{quote(node)}"}
    yield recommending(hours), {"recommended": "#/recommended"}
    yield asking(), {"approvals": "#/approvals"}


def pictures(folder: Path, hours: float, only: str, full: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with browser() as chromium:
        for seat, places in stands(hours):
            with served(seat) as link:
                take(chromium, link, {name: at for name, at in places.items() if only in name}, folder, full)


def take(chromium: Browser, link: str, places: dict[str, str], folder: Path, full: bool) -> None:
    """Each place at each width, light and dark; tells of what does not fit."""
    base = link.partition("/assets/")[0]
    first = chromium.new_context()
    opened(first, link)
    state = first.storage_state()
    for (width, height), scheme in product(WIDTHS.items(), SCHEMES):
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            storage_state=state,
        )
        for name, place in places.items():
            page = opened(context, f"{base}/{place}")
            as_logged_in(page)
            wide = page.evaluate("() => document.documentElement.scrollWidth")
            if wide > width:
                print(f"{name} at {width}: is {wide} wide")
            page.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=full and name != "node")
            page.close()
        context.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/screenshots"))
    parser.add_argument("--hours", type=float, default=12.0, help="of the demo's day")
    parser.add_argument("--only", default="", help="pages with this in their name")
    parser.add_argument("--fold", action="store_true", help="only what is seen without scrolling")
    chosen = parser.parse_args()
    pictures(chosen.out, chosen.hours, chosen.only, not chosen.fold)
