"""Bootstrap tokens: what a machine joins with by kubeadm, one for each machine and soon worthless.

Source: Kubernetes, "Authenticating with Bootstrap Tokens" (the Secret's form), "kubeadm join"
(`--discovery-token-ca-cert-hash`: SHA-256 of the CA's public key, SubjectPublicKeyInfo in DER).
"""

from __future__ import annotations

import hashlib
import secrets
import string
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from htas.adapters.kubernetes.api import ApiServer
from htas.model.nodes import CLAIM_LABEL, CLUSTER_LABEL
from htas.ports import PermanentError, RefusedError

NAMESPACE = "kube-system"
GROUPS = "system:bootstrappers:kubeadm:default-node-token"
"""The group that kubeadm's own roles let join."""
_LETTERS = string.ascii_lowercase + string.digits


class BootstrapTokens:
    """Makes tokens. The token cleaner of the controller manager deletes them when they have expired."""

    def __init__(self, api: ApiServer, cluster: str, valid_s: float, *, clock: Callable[[], float] = time.time) -> None:
        self._api = api
        self._cluster = cluster
        self._valid_s = valid_s
        self._clock = clock
        self._made: dict[str, tuple[float, str]] = {}

    def mint(self, claim: str) -> str:
        """A token for the machine of a claim; one that is asked for again soon gets the same.

        Raises TransientError, or RefusedError where we may not make any: no flavour would be better off.
        """
        now = self._clock()
        self._made = {name: each for name, each in self._made.items() if now - each[0] < self._valid_s / 2}
        known = self._made.get(claim)
        if known is not None:
            return known[1]
        try:
            token = self._new(claim)
        except PermanentError as error:
            raise RefusedError(f"bootstrap token: {error}") from error
        self._made[claim] = now, token
        return token

    def _new(self, claim: str) -> str:
        token_id, secret = _random(6), _random(16)
        until = datetime.fromtimestamp(self._clock() + self._valid_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        manifest = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "bootstrap.kubernetes.io/token",
            "metadata": {
                "name": f"bootstrap-token-{token_id}",
                "namespace": NAMESPACE,
                "labels": {CLUSTER_LABEL: self._cluster, CLAIM_LABEL: claim},
            },
            "stringData": {
                "description": f"htas: for {claim} to join",
                "token-id": token_id,
                "token-secret": secret,
                "expiration": until,
                "usage-bootstrap-authentication": "true",
                "usage-bootstrap-signing": "true",
                "auth-extra-groups": GROUPS,
            },
        }
        self._api.post(f"/api/v1/namespaces/{NAMESPACE}/secrets", manifest)
        return f"{token_id}.{secret}"


def _random(length: int) -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(length))


def ca_cert_hash(ca_file: Path | None) -> str:
    """The digest by which a machine knows the API server's CA; PermanentError where there is no certificate."""
    try:
        pem = ca_file.read_bytes() if ca_file is not None else b""
        certificate = x509.load_pem_x509_certificate(pem)
    except (OSError, ValueError) as error:
        what = "the cluster's CA certificate cannot be read; write provider.openstack.userData.kubeadm.caCertHash"
        raise PermanentError(what) from error
    spki = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"sha256:{hashlib.sha256(spki).hexdigest()}"
