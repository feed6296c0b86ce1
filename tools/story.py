"""The pictures of docs/dashboard.md and docs/decisions.md, from the demo's day: `python -m tools.story docs/pictures`.

Each is what somebody sees who follows the story: a page, or a part of it. Needs what tools/screenshots.py needs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Browser, Locator, Page

from htas.web.seat import Seat
from tools.days_machines import machines_svg
from tools.screenshots import browser, opened, played, served, settle

SIZE = (1280, 760)
BURST = 13.06
"""Hours of the demo's day: a burst of jobs came four minutes ago; machines are on their way."""
WHOLE = 24.0
NOON = 12.0
"""A pod waits for room that is free soon."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture: the page, what is done there first, and the part that is shown (None: the window)."""

    name: str
    place: str
    done: Callable[[Page], None] = lambda _: None
    part: Callable[[Page], Locator] | None = None


def _lifted(page: Page) -> None:
    page.get_by_role("checkbox").first.check()
    page.wait_for_function("() => document.querySelector('.verdict')?.textContent.includes('with that changed')")
    settle(page)


def _planned_again(page: Page) -> None:
    page.get_by_role("button", name="Plan cycle").first.click()
    page.wait_for_selector(".again:not(:empty)")


def scenes(seat: Seat) -> list[Scene]:
    """The story in its order; what it is told of is looked up in what there is."""
    node = next(item.node for item in seat.picture().plan.kept if "batch" in item.node)
    reason = _part("dialog .reason")
    return [
        Scene("now", "#/now"),
        Scene("node", f"#/now/node/{quote(node)}"),
        Scene("money", "#/money"),
        Scene("decisions", "#/decisions", _planned_again),
        Scene("what-if", "#/what-if", _lifted),
        Scene("why-it-stays", f"#/now/node/{quote(node)}", part=reason),
        Scene("bound", "#/money", part=lambda page: page.locator(".card", has=page.locator(".chart"))),
    ]


def waiting_scene(seat: Seat) -> Scene:
    """A pod that has no place, with what each flavour says to it."""
    pod = seat.picture().plan.unplaced[0].pod
    return Scene("why-it-waits", f"#/now/pod/{pod}", part=lambda page: page.locator("dialog"))


def _part(selector: str) -> Callable[[Page], Locator]:
    return lambda page: page.locator(selector).first


def tell(folder: Path) -> None:
    """Take every picture of the story."""
    folder.mkdir(parents=True, exist_ok=True)
    with browser() as chromium:
        (folder / "machines.svg").write_text(machines_svg(played(WHOLE).seat))
        burst = played(BURST)
        take(chromium, burst.seat, scenes(burst.seat), folder)
        noon = played(NOON)
        take(chromium, noon.seat, [waiting_scene(noon.seat)], folder)


def take(chromium: Browser, seat: Seat, shown: Sequence[Scene], folder: Path) -> None:
    """The pictures of one moment."""
    with served(seat) as link:
        base = link.partition("/assets/")[0]
        context = chromium.new_context(viewport={"width": SIZE[0], "height": SIZE[1]}, color_scheme="light")
        opened(context, link).close()
        for scene in shown:
            page = opened(context, f"{base}/{scene.place}")
            scene.done(page)
            subject: Page | Locator = page if scene.part is None else scene.part(page)
            subject.screenshot(path=folder / f"{scene.name}.png")
            page.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    tell(parser.parse_args().folder)
