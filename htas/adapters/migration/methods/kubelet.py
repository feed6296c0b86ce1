"""The kubelet's checkpoint call. Its right is `create nodes/checkpoint`, and no other: not nodes/proxy."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import urllib3

from htas.adapters.kubernetes.access import Access
from htas.adapters.kubernetes.api import part
from htas.adapters.migration.failures import StepFailedError, shortened
from htas.model.migrations import Failure

CONNECT_S = 5.0


class DumpRefusedError(Exception):
    """The kubelet answered that the container could not be checkpointed; the text is its answer."""


class _Answer(msgspec.Struct):
    items: list[str] = []


class Kubelets:
    """Asks kubelets over HTTPS, with the credentials that the API server is asked with.

    Their certificates must be signed with one of those in the file `trusted` or, where a kubelet has signed its own, be
    what `certificate_of(node)` returns as PEM text; empty: it has signed none.
    """

    def __init__(
        self, access: Access, port: int, trusted: Path | None, certificate_of: Callable[[str], str] | None
    ) -> None:
        self._access = access
        self._port = port
        self._trusted = trusted
        self._certificate_of = certificate_of
        self._pools: dict[str, urllib3.HTTPSConnectionPool] = {}

    def checkpoint(self, node: str, address: str, namespace: str, pod: str, container: str, within_s: float) -> str:
        """Checkpoint a container, which runs on; returns the archive's path on the node.

        Raises DumpRefusedError with the kubelet's words, and StepFailedError where it gives no usable answer.
        """
        path = f"/checkpoint/{part(namespace)}/{part(pod)}/{part(container)}?timeout={max(1, int(within_s))}"
        try:
            answer = self._post(node, address, path, within_s)
        except urllib3.exceptions.SSLError as error:
            self._pools.pop(f"{node}/{address}", None)  # a machine made anew has another certificate: read it again
            raise StepFailedError(Failure.CHECKPOINT_FAILED, f"kubelet of {node}: {_words(error)}") from error
        except urllib3.exceptions.TimeoutError as error:
            raise StepFailedError(Failure.DEADLINE, f"kubelet of {node}: no answer in {within_s:.0f} s") from error
        except urllib3.exceptions.HTTPError as error:
            raise StepFailedError(Failure.CHECKPOINT_FAILED, f"kubelet of {node}: {_words(error)}") from error
        words = answer.data.decode("utf-8", "replace")
        if answer.status == 404:
            raise StepFailedError(Failure.SOURCE_ENDED, f"kubelet of {node}: {shortened(words)}")
        if answer.status in (401, 403):
            what = f"kubelet of {node}: {shortened(words)} ({answer.status}); grant create nodes/checkpoint"
            raise StepFailedError(Failure.CHECKPOINT_FAILED, what, is_final=True)
        if answer.status >= 300:
            raise DumpRefusedError(words)
        try:
            return msgspec.json.decode(answer.data, type=_Answer).items[0]
        except (msgspec.DecodeError, IndexError) as error:
            what = f"kubelet of {node} named no archive: {shortened(words)}"
            raise StepFailedError(Failure.CHECKPOINT_FAILED, what) from error

    def _post(self, node: str, address: str, path: str, within_s: float) -> urllib3.BaseHTTPResponse:
        headers: Mapping[str, str] = {"User-Agent": "htas", **self._access.headers()}
        timeout = urllib3.Timeout(connect=CONNECT_S, read=within_s)
        return self._pool(node, address).request("POST", path, headers=headers, timeout=timeout, retries=False)

    def _pool(self, node: str, address: str) -> urllib3.HTTPSConnectionPool:
        """A kubelet signs its own certificate unless told otherwise, and to the node's name, not to its address."""
        key = f"{node}/{address}"
        if key not in self._pools:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            if self._trusted is not None:
                context.load_verify_locations(self._trusted)
            own = self._certificate_of(node) if self._certificate_of is not None else ""
            if own:
                context.load_verify_locations(cadata=own)
            if self._access.client_certificate is not None:
                context.load_cert_chain(*self._access.client_certificate)
            self._pools[key] = urllib3.HTTPSConnectionPool(
                address, self._port, ssl_context=context, server_hostname=node, assert_hostname=node
            )
        return self._pools[key]


def _words(error: Exception) -> str:
    return shortened(str(error).rpartition(">: ")[2] or type(error).__name__)
