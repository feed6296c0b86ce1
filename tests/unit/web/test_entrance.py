"""The link of `htas ui`: it opens the pages once, and what stands in it is good for nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import urllib3

from htas.cli.ui import serve
from htas.web.seat import Seat


@pytest.fixture
def link(saw: Seat) -> Iterator[str]:
    listener, made = serve(saw, 0)
    listener.start()
    yield made
    listener.stop()


def ask(url: str, method: str = "GET", body: object = None, **headers: str) -> urllib3.BaseHTTPResponse:
    sent = {"Connection": "close", **headers}
    return urllib3.request(method, url, headers=sent, json=body, timeout=10.0, retries=False, redirect=False)


def test_it_opens_once_for_a_browser_that_gets_it(link: str) -> None:
    base = link.partition("/assets")[0]
    assert ask(link, "HEAD").status == 405, "a preview does not use it up"
    assert ask(f"{link}x").status == 401
    opened = ask(link)
    assert (opened.status, opened.headers["Cache-Control"]) == (303, "no-store")
    cookie = opened.headers["Set-Cookie"].partition(";")[0]
    assert ask(f"{base}/api/v1/cluster", Cookie=cookie).status == 200
    again = ask(link)
    assert (again.status, "Set-Cookie" in again.headers) == (403, False)


@pytest.mark.parametrize("is_used", [False, True], ids=["before it is opened", "afterwards"])
def test_its_secret_is_no_token(is_used: bool, link: str) -> None:
    base, secret = link.partition("/assets")[0], link.partition("once=")[2]
    if is_used:
        assert ask(link).status == 303
    refused = ask(f"{base}/api/v1/cluster", Authorization=f"Bearer {secret}")
    assert (refused.status, "once=" in refused.data.decode()) == (401, False)
    assert ask(f"{base}/session", "POST", {"token": secret}).status == 401
