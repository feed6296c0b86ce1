"""Where the API server is, and how we prove who we are: in a cluster, or by a kubeconfig.

The official client reads credentials (tokens that rotate, exec plugins, client certificates); requests go over urllib3
with what it read: in-house measurements gave 455–605 binds a second against 176–216 through the generated client.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import urllib3
import yaml
from kubernetes.client import Configuration
from kubernetes.config import ConfigException, load_incluster_config, load_kube_config

from htas.ports import PermanentError

NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class Access:
    """An API server's address, a pool of kept-alive connections to it, and the headers that authenticate."""

    def __init__(self, configuration: Configuration, namespace: str, connections: int) -> None:
        self.server: str = configuration.host.rstrip("/")
        self.namespace = namespace
        self.ca_file = Path(configuration.ssl_ca_cert) if configuration.ssl_ca_cert else None
        self._configuration = configuration
        self.pool = _pool(configuration, connections)

    @property
    def client_certificate(self) -> tuple[str, str] | None:
        """The files of a client certificate and its key; None where a token is what authenticates."""
        found = self._configuration.cert_file, self._configuration.key_file
        return (str(found[0]), str(found[1])) if all(found) else None

    def headers(self) -> Mapping[str, str]:
        """The Authorization header; a token that rotates is read anew when it is due."""
        token = self._configuration.get_api_key_with_prefix("BearerToken")
        return {"Authorization": _capitalised(token)} if token else {}


def load_access(kubeconfig: Path | None, context: str | None, connections: int) -> Access:
    """Credentials from `kubeconfig`; without one, from the pod this runs in, else from KUBECONFIG or ~/.kube/config.

    `connections` are kept alive. Raises PermanentError, saying what was looked for.
    """
    configuration = Configuration()
    if kubeconfig is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        try:
            load_incluster_config(configuration)  # type: ignore[no-untyped-call] # the client's is untyped
        except ConfigException as error:
            raise PermanentError(f"in-cluster credentials: {error}; mount a service account token") from error
        return Access(configuration, _own_namespace(), connections)
    where = str(kubeconfig) if kubeconfig is not None else os.environ.get("KUBECONFIG", "~/.kube/config")
    try:
        load_kube_config(  # type: ignore[no-untyped-call] # the client's is untyped
            config_file=str(kubeconfig) if kubeconfig is not None else None,
            context=context,
            client_configuration=configuration,
        )
    except (ConfigException, yaml.YAMLError, OSError, AttributeError, TypeError, ValueError) as error:
        told = " ".join(str(error).split())  # a YAML error is of many lines
        what = f"{where}: no credentials: {told}; name a file in kubernetes.kubeconfig, or run in a cluster"
        raise PermanentError(what) from error
    return Access(configuration, "default", connections)


def _own_namespace() -> str:
    try:
        return NAMESPACE_FILE.read_text().strip() or "default"
    except OSError:
        return "default"


def _capitalised(token: str) -> str:
    """The client writes "bearer x" or "Bearer x"; some proxies insist on the latter."""
    return f"Bearer {token[7:]}" if token[:7].lower() == "bearer " else f"Bearer {token}"


def _pool(configuration: Configuration, connections: int) -> urllib3.PoolManager:
    options: dict[str, object] = {"num_pools": 4, "maxsize": connections, "retries": False}
    if configuration.host.startswith("https"):
        options["cert_reqs"] = "CERT_REQUIRED" if configuration.verify_ssl else "CERT_NONE"
        options["ca_certs"] = configuration.ssl_ca_cert
        options["cert_file"] = configuration.cert_file
        options["key_file"] = configuration.key_file
        if configuration.tls_server_name:
            options["server_hostname"] = configuration.tls_server_name
            options["assert_hostname"] = configuration.tls_server_name
    if configuration.proxy:
        return urllib3.ProxyManager(configuration.proxy, **options)  # type: ignore[arg-type] # options by name
    return urllib3.PoolManager(**options)  # type: ignore[arg-type] # options by name
