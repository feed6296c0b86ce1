"""Kubeconfig files: which API server a context names, and with which credentials.

Source: Kubernetes documentation, "Organizing Cluster Access Using kubeconfig Files": files of KUBECONFIG are merged,
the first to name a thing wins, and relative paths start from the folder of the file that has them.
"""

from __future__ import annotations

import atexit
import base64
import binascii
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from htas.adapters.kubernetes.endpoint import Endpoint, TokenFile, nobody
from htas.adapters.kubernetes.exec_plugin import Plugin, PluginCredentials


class KubeconfigError(Exception):
    """No endpoint can be had from these files; the message says what is missing or wrong."""


class _Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class _User(msgspec.Struct, frozen=True, rename="kebab"):
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    username: str = ""
    password: str = ""
    plugin: Plugin | None = msgspec.field(name="exec", default=None)
    auth_provider: dict[str, Any] | None = None


class _Context(msgspec.Struct, frozen=True):
    cluster: str = ""
    user: str = ""


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: _Cluster
    folder: Path = Path()


class _NamedUser(msgspec.Struct):
    name: str
    user: _User
    folder: Path = Path()


class _NamedContext(msgspec.Struct):
    name: str
    context: _Context


class _File(msgspec.Struct, rename="kebab"):
    current_context: str | None = ""
    contexts: list[_NamedContext] | None = None
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None


_Named = TypeVar("_Named", _NamedCluster, _NamedUser, _NamedContext)


def endpoint(paths: Sequence[Path], context: str | None) -> Endpoint:
    """The endpoint of a context (None: the current one); raises KubeconfigError, and what a credential plugin does."""
    files = [_read(path) for path in paths if path.is_file()]
    if not files:
        raise KubeconfigError("there is no such file")
    name = context or next((file.current_context for file in files if file.current_context), None)
    if not name:
        raise KubeconfigError("it has no current-context")
    chosen = _first("context", name, [each for file in files for each in file.contexts or ()]).context
    cluster = _first("cluster", chosen.cluster, [each for file in files for each in file.clusters or ()])
    if not cluster.cluster.server:
        raise KubeconfigError(f"cluster {cluster.name} has no server")
    if not chosen.user:
        return _endpoint(cluster, None)
    return _endpoint(cluster, _first("user", chosen.user, [each for file in files for each in file.users or ()]))


def _read(path: Path) -> _File:
    try:
        found = msgspec.convert(yaml.safe_load(path.read_bytes()) or {}, _File)
    except (yaml.YAMLError, msgspec.ValidationError, OSError, ValueError) as error:
        raise KubeconfigError(" ".join(str(error).split())) from error  # a YAML error is of many lines
    for each in (*(found.clusters or ()), *(found.users or ())):
        each.folder = path.parent
    return found


def _first(what: str, name: str, found: Sequence[_Named]) -> _Named:
    for each in found:
        if each.name == name:
            return each
    raise KubeconfigError(f"it has no {what} {name!r}")


def _endpoint(named: _NamedCluster, user: _NamedUser | None) -> Endpoint:
    cluster = named.cluster
    plain = Endpoint(
        server=cluster.server,
        ca_file=_file(named.folder, cluster.certificate_authority, cluster.certificate_authority_data),
        is_verified=not cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name,
        proxy=cluster.proxy_url,
    )
    return plain if user is None else _authenticated(plain, user, cluster)


def _authenticated(plain: Endpoint, named: _NamedUser, cluster: _Cluster) -> Endpoint:
    """As client-go has it: a certificate goes with each of the others; of those the first that is there counts."""
    user, folder = named.user, named.folder
    certificate = _file(folder, user.client_certificate, user.client_certificate_data)
    key = _file(folder, user.client_key, user.client_key_data)
    pair = (certificate, key) if certificate is not None and key is not None else None
    authorization = nobody
    if user.token_file:
        authorization = TokenFile(folder / user.token_file)
    elif user.token:
        authorization = _always(f"Bearer {user.token}")
    elif user.username:
        secret = base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
        authorization = _always(f"Basic {secret}")
    elif user.plugin is not None:
        credentials = PluginCredentials(user.plugin, folder, _told(cluster))
        authorization = credentials.authorization
        if credentials.certificate is not None:
            pair = _kept(credentials.certificate[0].encode()), _kept(credentials.certificate[1].encode())
    elif user.auth_provider is not None and pair is None:
        provider = user.auth_provider.get("name", "")
        raise KubeconfigError(f"user {named.name}: auth-provider {provider} is not supported; use a plugin (exec)")
    return msgspec.structs.replace(plain, authorization=authorization, certificate=pair)


class _always:  # noqa: N801 # it stands for a function
    """A header that never changes, kept out of every representation."""

    def __init__(self, header: str) -> None:
        self._header = header

    def __call__(self) -> str:
        return self._header


def _told(cluster: _Cluster) -> dict[str, Any]:
    """What a plugin may know of the cluster (provideClusterInfo)."""
    known = msgspec.to_builtins(cluster)
    return {key: value for key, value in known.items() if value and key != "certificate-authority"}


def _file(folder: Path, path: str, data: str) -> Path | None:
    """A file that is named, or one with what the kubeconfig has inline, which counts first."""
    if data:
        try:
            return _kept(base64.b64decode(data, validate=True))
        except binascii.Error as error:
            raise KubeconfigError(f"a certificate or key is no base64: {error}") from error
    return folder / path if path else None


_folders: list[Path] = []


def _kept(content: bytes) -> Path:
    """A file for as long as this process lives, in a folder that its user alone may read."""
    if not _folders:
        _folders.append(Path(tempfile.mkdtemp(prefix="htas-")))
        atexit.register(shutil.rmtree, _folders[0], ignore_errors=True)
    with tempfile.NamedTemporaryFile(dir=_folders[0], delete=False) as file:
        file.write(content)
    return Path(file.name)
