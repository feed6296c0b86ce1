"""The pages beside a real control plane: a machine is seen on its way, then with its pods, and its story is told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.real.harness import BATCH, Cluster, Htas, configuration, eventually
from tests.real.work import job
from tools.screenshots import browser
from tools.testenv.cluster import PATIENCE
from tools.testenv.daemon import TOKEN

SOON_MS = 30_000 * PATIENCE


@pytest.fixture
def page() -> Iterator[Page]:
    """A browser of somebody who has not been here before."""
    with browser() as chromium:
        made = chromium.new_page()
        made.set_default_timeout(SOON_MS)
        yield made


def test_a_purchase_is_seen_as_it_happens(cluster: Cluster, page: Page, tmp_path: Path) -> None:
    """No page is loaded again: what changes in the cluster comes by itself."""
    cleaning = {"emptyRelease": "at-once", "queueEmptyFor": "2s", "emptyFor": "2s"}
    config = configuration(
        tmp_path,
        cluster.kubeconfig,
        provider={"kwok": {"startupDelay": "5s"}},
        nodeGroups=[{"name": "any", "workload": "any", "cleaning": cleaning}],
    )
    with Htas(config, tmp_path / "log") as daemon:
        daemon.says("leads")
        enter(page, daemon)
        expect(page.locator(".totals")).to_contain_text("every pod has a node", timeout=SOON_MS)
        expect(page.locator(".node")).to_have_count(0)
        cluster.create(job("train", "600s", "300m", "300Mi", count=3))  # together as much as the smallest flavour
        on_its_way(page)
        node = with_its_pods(page)
        assert node in {each["metadata"]["name"] for each in cluster.nodes()}
        told(page, node)
        cluster.delete(f"{BATCH}/namespaces/default/jobs/train")
        returned(page, node)
        eventually(lambda: not cluster.nodes(), 30, "the machine is given back")
        assert daemon.stop() == 0


def enter(page: Page, daemon: Htas) -> None:
    """Log in with the token of the file."""
    listens = daemon.says("listens")
    page.goto(f"http://{listens['host']}:{listens['port']}/")
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Log in").click()


def on_its_way(page: Page) -> None:
    coming = page.locator(".beside .card", has_text="Starting")
    expect(coming).to_contain_text("for 3 pending pods", timeout=SOON_MS)
    expect(page.locator(".totals")).to_contain_text("3 have a machine starting")
    expect(page.locator(".totals")).to_contain_text("1 machine starting")


def with_its_pods(page: Page) -> str:
    """The node's name, once all three pods are seen on it; and each of them is a click away."""
    node = page.locator(".node")
    expect(node).to_have_attribute("aria-label", re.compile(r"\b3 pods\b"), timeout=SOON_MS)
    expect(node.locator(".block")).to_have_count(3)
    expect(page.locator(".totals")).to_contain_text("every pod has a node")
    node.click()
    detail = page.get_by_role("dialog")
    expect(detail).to_contain_text("Why it is kept")
    expect(detail.get_by_role("table").get_by_role("link")).to_have_count(3)
    detail.get_by_role("table").get_by_role("link").first.click()
    expect(detail.locator(".kind")).to_have_text("pod")
    expect(detail).to_contain_text("Job/train")
    page.keyboard.press("Escape")
    return node.get_attribute("data-node") or ""


def told(page: Page, node: str) -> None:
    """Why it was bought, and that the planner would do the same again."""
    page.get_by_role("link", name="launches").click()
    bought = page.locator(".timeline li")
    expect(bought).to_have_count(1)
    expect(bought).to_contain_text("launched")
    expect(bought.locator("a.subject")).to_have_text(node)
    bought.get_by_role("button", name="Plan cycle").click()
    expect(bought.locator(".again")).to_have_text("Today's policy gives the same plan.")


def returned(page: Page, node: str) -> None:
    """The same page, open all the time; all that was decided about the machine is a click away."""
    page.get_by_role("button", name="launched").click()
    expect(page.locator(".timeline li", has_text="deleted")).to_contain_text(node, timeout=SOON_MS)
    page.locator(".timeline li", has_text="deleted").locator("a.subject").click()
    expect(page.get_by_role("searchbox")).to_have_value(node)
    expect(page.locator(".timeline .said b").last).to_have_text("launched")
    page.locator('#pages a[href="#/now"]').click()
    expect(page.locator(".totals")).to_contain_text("every pod has a node")
    expect(page.locator(".node")).to_have_count(0)
