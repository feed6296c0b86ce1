"""A small cloud over real HTTP: Keystone, Nova, Glance and Neutron as far as the adapter asks them.

It can be told to misbehave in ways that a real one cannot be made to at will: to limit rates, lose answers, leave servers
out of lists, page them by twos, or be down in part. The real one is in tests/real.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Thread
from time import sleep
from typing import Any
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]
Refusal = tuple[int, Json | str, dict[str, str]]
PROJECT = "p1"


@dataclass
class SmallCloud:
    """`refuse` maps "POST /servers" and the like to refusals given once each, in order."""

    password: str = "secret-of-the-test"
    flavours: dict[str, tuple[int, int]] = field(default_factory=lambda: {"small": (1, 2048), "large": (4, 8192)})
    page: int = 1000
    quota: dict[str, int] = field(default_factory=lambda: {"instances": 10, "cores": 20, "ram": 51200})
    servers: dict[str, Json] = field(default_factory=dict)
    orders: list[Json] = field(default_factory=list)
    hidden: set[str] = field(default_factory=set)
    ports: dict[str, str] = field(default_factory=dict)
    images: list[Json] = field(default_factory=lambda: [{"id": "i1", "name": "ubuntu", "created_at": "2026-01-01"}])
    networks: list[Json] = field(default_factory=lambda: [{"id": "n1", "name": "private"}])
    requests: list[str] = field(default_factory=list)
    refuse: dict[str, list[Refusal]] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    refused_together: Barrier = field(default_factory=lambda: Barrier(1))
    """So many calls with a token that ended are answered at one time."""
    log_in_takes_s: float = 0.0
    usage: list[Json] = field(default_factory=list)
    """What os-simple-tenant-usage has of servers."""
    loses_answers: bool = False
    """An order is carried out, and its answer is lost."""

    def __enter__(self) -> SmallCloud:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.answer(self, json.loads(body) if body else {})

            do_GET = do_POST = do_DELETE = handle_any  # noqa: N815 # the base class's names

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def clouds_yaml(self, folder: Path) -> Path:
        path = folder / "clouds.yaml"
        auth = {"auth_url": f"{self.url}/v3", "username": "u", "password": self.password, "project_name": "p"}
        auth |= {"user_domain_id": "default", "project_domain_id": "default"}
        path.write_text(json.dumps({"clouds": {"small": {"auth": auth, "region_name": "R"}}}))
        return path

    def add_server(self, name: str, status: str = "ACTIVE", **metadata: str) -> str:
        """A server as it would be listed; metadata keys take the prefix `htas.`."""
        server_id = f"id-{name}"
        self.servers[server_id] = {
            "id": server_id,
            "name": name,
            "status": status,
            "created": "2026-11-21T12:00:00Z",
            "metadata": {f"htas.{key}": value for key, value in metadata.items()},
            "flavor": {"original_name": "small", "vcpus": 1, "ram": 2048},
            "OS-EXT-AZ:availability_zone": "nova",
            "OS-EXT-STS:task_state": None,
        }
        return server_id

    # What it answers.

    def answer(self, handler: BaseHTTPRequestHandler, body: Json) -> None:
        split = urlsplit(handler.path)
        path = re.sub(r"^/(identity|compute/v2\.1|image/v2|network/v2\.0)(?=/)", "", split.path)
        query = {key: values[0] for key, values in parse_qs(split.query).items()}
        told = f"{handler.command} {path}"
        self.requests.append(told)
        waiting = self.refuse.get(told) or self.refuse.get(f"{handler.command} /{path.split('/')[1]}")
        if waiting:
            return self._send(handler, *waiting.pop(0))
        if path == "/v3/auth/tokens":
            return self._log_in(handler, body)
        if path.startswith("/servers") and handler.headers.get("X-Auth-Token") not in self.tokens:
            with suppress(BrokenBarrierError):
                self.refused_together.wait(5.0)
            return self._send(handler, 401, {"error": {"message": "no such token"}}, {})
        return self._route(handler, path, query, body)

    def _route(self, handler: BaseHTTPRequestHandler, path: str, query: Json, body: Json) -> None:
        routes: list[tuple[str, str, Callable[..., Any]]] = [
            (
                "GET",
                r"/(?:compute|image|network)/?|/v3/?|/|/(?:v2\.[01]|v2)/?|/(?:compute/v2\.1|image/v2|network/v2\.0)/?",
                self._versions,
            ),
            ("GET", r"/servers/detail", self._list),
            ("GET", r"/servers/([^/]+)", self._show),
            ("DELETE", r"/servers/([^/]+)", self._delete),
            ("POST", r"/servers", self._create),
            ("POST", r"/servers/([^/]+)/metadata", self._set_metadata),
            ("GET", r"/flavors/detail", self._flavours),
            ("GET", r"/limits", self._limits),
            ("GET", rf"/os-simple-tenant-usage/{PROJECT}", self._usage),
            ("GET", r"/images", lambda h, q, b: self._named(h, "images", self.images, q)),
            ("GET", r"/networks", lambda h, q, b: self._named(h, "networks", self.networks, q)),
            ("GET", r"/ports", self._ports),
            ("DELETE", r"/ports/([^/]+)", self._delete_port),
        ]
        for method, pattern, act in routes:
            match = re.fullmatch(pattern, path)
            if method == handler.command and match:
                act(handler, query, body, *match.groups())
                return
        self._send(handler, 404, {"itemNotFound": {"message": f"no {path}"}}, {})

    def _send(self, handler: BaseHTTPRequestHandler, status: int, body: Any = "", headers: Any = None) -> None:
        text = body if isinstance(body, str) else json.dumps(body)
        handler.send_response(status)
        for name, value in {**(headers or {}), "Content-Type": "application/json"}.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(text.encode())))
        handler.end_headers()
        handler.wfile.write(text.encode())

    def _log_in(self, handler: BaseHTTPRequestHandler, body: Json) -> None:
        if body["auth"]["identity"]["password"]["user"]["password"] != self.password:
            return self._send(
                handler, 401, {"error": {"message": "The request you have made requires authentication."}}, {}
            )
        sleep(self.log_in_takes_s)
        token = secrets.token_hex(8)
        self.tokens.add(token)
        places = (("compute", "/compute/v2.1"), ("image", "/image"), ("network", "/network"))
        catalogue = [
            {
                "type": kind,
                "name": kind,
                "id": kind,
                "endpoints": [
                    {"id": kind, "interface": "public", "region": "R", "region_id": "R", "url": self.url + path}
                ],
            }
            for kind, path in places
        ]
        told = {
            "methods": ["password"],
            "expires_at": "2099-01-01T00:00:00.000000Z",
            "issued_at": "2026-01-01T00:00:00.000000Z",
            "project": {"id": PROJECT, "name": "p", "domain": {"id": "default", "name": "d"}},
            "user": {"id": "u", "name": "u", "domain": {"id": "default", "name": "d"}},
            "roles": [{"id": "m", "name": "member"}],
            "catalog": catalogue,
        }
        return self._send(handler, 201, {"token": told}, {"X-Subject-Token": token})

    def _versions(self, handler: BaseHTTPRequestHandler, query: Json, body: Json) -> None:
        def version(number: str, path: str, **more: str) -> Json:
            links = [{"rel": "self", "href": f"{self.url}{path}/"}]
            return {"id": number, "status": "CURRENT", "links": links, **more}

        path = urlsplit(handler.path).path
        if path.startswith("/compute"):
            found = version("v2.1", "/compute/v2.1", version="2.93", min_version="2.1")
            return self._send(handler, 200, {"version": found} if "v2.1" in path else {"versions": [found]})
        if path.startswith("/image"):
            return self._send(handler, 300, {"versions": [version("v2.16", "/image/v2")]})
        if path.startswith("/network"):
            return self._send(handler, 200, {"versions": [version("v2.0", "/network/v2.0")]})
        return self._send(handler, 200, {"version": version("v3.14", "/v3")})

    def _list(self, handler: BaseHTTPRequestHandler, query: Json, body: Json) -> None:
        found = [server for server_id, server in sorted(self.servers.items()) if server_id not in self.hidden]
        found = [self._shown(server) for server in found if re.search(query.get("name", ""), server["name"])]
        begin = next((i + 1 for i, each in enumerate(found) if each["id"] == query.get("marker")), 0)
        page = found[begin : begin + self.page]
        links = []
        if begin + self.page < len(found):
            links = [{"rel": "next", "href": f"{self.url}/compute/v2.1/servers/detail?marker={page[-1]['id']}"}]
        self._send(handler, 200, {"servers": page, "servers_links": links})

    def _shown(self, server: Json) -> Json:
        """In lists a failed server has no fault, and one of a cell that is down next to nothing."""
        if server["status"] == "UNKNOWN":
            return {"id": server["id"], "status": "UNKNOWN", "links": []}
        return {key: value for key, value in server.items() if key != "fault"}

    def _show(self, handler: BaseHTTPRequestHandler, query: Json, body: Json, server_id: str) -> None:
        if server_id not in self.servers:
            return self._send(handler, 404, {"itemNotFound": {"message": "Instance could not be found."}})
        return self._send(handler, 200, {"server": self.servers[server_id]})

    def _create(self, handler: BaseHTTPRequestHandler, query: Json, body: Json) -> None:
        order = body["server"]
        self.orders.append(body)
        server_id = self.add_server(f"{order['name']}", "BUILD")
        self.servers[server_id]["metadata"] = order["metadata"]
        self.servers[server_id]["OS-EXT-STS:task_state"] = "scheduling"
        if self.loses_answers:
            handler.close_connection = True
            handler.connection.close()
            return
        self._send(handler, 202, {"server": {"id": server_id, "adminPass": "not-to-be-told"}})

    def _set_metadata(self, handler: BaseHTTPRequestHandler, query: Json, body: Json, server_id: str) -> None:
        if server_id not in self.servers:
            return self._send(handler, 404, {"itemNotFound": {"message": "Instance could not be found."}})
        self.servers[server_id]["metadata"] |= body["metadata"]
        return self._send(handler, 200, {"metadata": self.servers[server_id]["metadata"]})

    def _delete(self, handler: BaseHTTPRequestHandler, query: Json, body: Json, server_id: str) -> None:
        if server_id not in self.servers:
            return self._send(handler, 404, {"itemNotFound": {"message": "Instance could not be found."}})
        self.servers[server_id]["OS-EXT-STS:task_state"] = "deleting"
        return self._send(handler, 204)

    def _flavours(self, handler: BaseHTTPRequestHandler, query: Json, body: Json) -> None:
        found = [
            {"id": f"f-{name}", "name": name, "vcpus": vcpus, "ram": ram, "disk": 10, "OS-FLV-DISABLED:disabled": False}
            for name, (vcpus, ram) in self.flavours.items()
        ]
        self._send(handler, 200, {"flavors": found})

    def _limits(self, handler: BaseHTTPRequestHandler, query: Json, body: Json) -> None:
        absolute = {
            "maxTotalInstances": self.quota["instances"],
            "maxTotalCores": self.quota["cores"],
            "maxTotalRAMSize": self.quota["ram"],
            "totalInstancesUsed": self._counted(),
            "totalCoresUsed": self._counted(),
            "totalRAMUsed": 2048 * self._counted(),
        }
        self._send(handler, 200, {"limits": {"rate": [], "absolute": absolute}})

    def _usage(self, handler: BaseHTTPRequestHandler, query: Json, body: Json) -> None:
        """Servers that ran within the window, page by page (from 2.40 on); never launched ones are in none."""
        found = [
            each
            for each in self.usage
            if each["started_at"] < query["end"] and (each["ended_at"] is None or each["ended_at"] > query["start"])
        ]
        if not found:
            return self._send(handler, 200, {"tenant_usage": {}})
        begin = next((i + 1 for i, each in enumerate(found) if each["instance_id"] == query.get("marker")), 0)
        page, links = found[begin : begin + self.page], []
        if page:
            path = f"/compute/v2.1/os-simple-tenant-usage/{PROJECT}?marker={page[-1]['instance_id']}"
            links = [{"rel": "next", "href": f"{self.url}{path}&start={query['start']}&end={query['end']}"}]
        told = {"server_usages": page, "tenant_id": PROJECT, "total_hours": 1.0}
        return self._send(handler, 200, {"tenant_usage": told if page else {}, "tenant_usage_links": links})

    def _counted(self) -> int:
        """Servers that a host has been found for: Nova counts no others."""
        return sum(server["OS-EXT-STS:task_state"] != "scheduling" for server in self.servers.values())

    def _named(self, handler: BaseHTTPRequestHandler, kind: str, items: list[Json], query: Json) -> None:
        self._send(handler, 200, {kind: [item for item in items if item["name"] == query["name"]]})

    def _ports(self, handler: BaseHTTPRequestHandler, query: Json, body: Json) -> None:
        found = [{"id": port} for port, owner in self.ports.items() if owner == query["device_id"]]
        self._send(handler, 200, {"ports": found})

    def _delete_port(self, handler: BaseHTTPRequestHandler, query: Json, body: Json, port: str) -> None:
        self.ports.pop(port, None)
        self._send(handler, 204)
