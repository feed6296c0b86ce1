"""Bootstrap tokens: what a machine joins with by kubeadm, one for each machine, ended when it has joined.

A token's id, which is no secret, follows from its claim: so HTAS finds the token of a machine again after a crash, and
needs no right to read Secrets for that.

Source: Kubernetes, "Authenticating with Bootstrap Tokens" (the Secret's form), "kubeadm join"
(`--discovery-token-ca-cert-hash`: SHA-256 of the CA's public key, SubjectPublicKeyInfo in DER).
"""

from __future__ import annotations

import hashlib
import secrets
import string
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from htas.adapters.kubernetes.api import ApiServer
from htas.model.claims import NodeClaim
from htas.model.nodes import CLAIM_LABEL, CLUSTER_LABEL
from htas.ports import ConflictError, NotFoundError, PermanentError, RefusedError

NAMESPACE = "kube-system"
GROUPS = "system:bootstrappers:kubeadm:default-node-token"
"""The group that kubeadm's own roles let join."""
_SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
_LETTERS = string.ascii_lowercase + string.digits


class BootstrapTokens:
    """Implements JoinPort. A token that nobody revokes ends after `valid_s`, by the controller manager's token cleaner.

    `asked_for_s`: how long after a claim was made its machine may still be ordered, and a token be made for it.
    """

    def __init__(
        self,
        api: ApiServer,
        cluster: str,
        valid_s: float,
        *,
        asked_for_s: float = 0.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._api = api
        self._cluster = cluster
        self._valid_s = valid_s
        self._asked_for_s = asked_for_s
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

    def ends_at(self, claim: NodeClaim) -> float:
        return claim.created_at + self._asked_for_s + self._valid_s

    def revoke(self, claim: NodeClaim) -> None:
        """Delete the token of a claim's machine, which has joined or is not to. Raises what the API server answers."""
        self._made.pop(claim.id, None)
        self._delete(token_id(self._cluster, claim.id))

    def _new(self, claim: str) -> str:
        known = token_id(self._cluster, claim)
        secret = "".join(secrets.choice(_LETTERS) for _ in range(16))
        manifest = self._manifest(claim, known, secret)
        try:
            self._api.post(_SECRETS, manifest)
        except ConflictError:  # made by a daemon that died before the cloud was asked: its secret died with it
            self._delete(known)
            self._api.post(_SECRETS, manifest)
        return f"{known}.{secret}"

    def _manifest(self, claim: str, known: str, secret: str) -> dict[str, object]:
        until = datetime.fromtimestamp(self._clock() + self._valid_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "bootstrap.kubernetes.io/token",
            "metadata": {
                "name": f"bootstrap-token-{known}",
                "namespace": NAMESPACE,
                "labels": {CLUSTER_LABEL: self._cluster, CLAIM_LABEL: claim},
            },
            "stringData": {
                "description": f"htas: for {claim} to join",
                "token-id": known,
                "token-secret": secret,
                "expiration": until,
                "usage-bootstrap-authentication": "true",
                "usage-bootstrap-signing": "true",
                "auth-extra-groups": GROUPS,
            },
        }

    def _delete(self, known: str) -> None:
        with suppress(NotFoundError):
            self._api.delete(f"{_SECRETS}/bootstrap-token-{known}")


def token_id(cluster: str, claim: str) -> str:
    """The id of a claim's token: six letters and digits, as bootstrap tokens have them, of a digest of both names."""
    number = int.from_bytes(hashlib.sha256(f"{cluster}/{claim}".encode()).digest())
    return "".join(_LETTERS[number // len(_LETTERS) ** place % len(_LETTERS)] for place in range(6))


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
