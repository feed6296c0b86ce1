"""The pages: one document, our own modules and styles, nothing from elsewhere and no script in the text."""

from __future__ import annotations

from html import escape
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from htas.web.shelf import Body, body_of, sent

ASSETS = "/assets/"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
KINDS = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


def page_routes() -> list[BaseRoute]:
    """`/` and what it loads. There are no data in them: those come from the API, to whoever may see them."""
    kept = {
        each.name: body_of(each.read_bytes())
        for each in files("htas.web").joinpath("static").iterdir()
        if each.name[each.name.rfind(".") :] in KINDS
    }

    def home(request: Request) -> Response:
        return _file(request, "index.html", kept["index.html"])

    def asset(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in kept:
            return Response("there is no such file\n", 404, headers=HEADERS, media_type="text/plain")
        return _file(request, name, kept[name])

    return [Route("/", home), Route(f"{ASSETS}{{name}}", asset)]


def text_page(status: int, title: str, text: str) -> Response:
    """A page of a few words in the pages' own style, without scripts: `text` is escaped."""
    body = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(title)} · HTAS</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml"><link rel="stylesheet" href="/assets/style.css"></head>
<body><main><section class="empty"><h1>{escape(title)}</h1><p>{escape(text)}</p></section></main></body></html>
"""
    return Response(body, status, {**HEADERS, "Cache-Control": "no-store"}, "text/html")


def _file(request: Request, name: str, body: Body) -> Response:
    headers = {**HEADERS, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    return sent(request, body, headers, KINDS[name[name.rfind(".") :]])
