"""Who shows a token, and what they may ask for, as the API server decides.

Source: Kubernetes, "Webhook Token Authentication" (TokenReview) and "Checking API Access" (SubjectAccessReview); the
same two questions that kube-rbac-proxy and the kubelet ask.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from threading import BoundedSemaphore, Lock
from typing import TypeVar

import msgspec

from htas.adapters.kubernetes.api import ApiServer
from htas.ports import PermanentError, TransientError, User

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
KEPT_S = 10.0
"""How long an answer counts: who loses a right loses it here so much later."""
KEPT_ANSWERS = 1_000
AT_ONCE = 4
"""Questions under way; more are refused, so that made-up tokens do not keep the API server or our threads busy."""

T = TypeVar("T")


class _Kept(msgspec.Struct):
    until: float
    answer: object


class _User(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class _TokenStatus(msgspec.Struct):
    authenticated: bool = False
    user: _User = msgspec.field(default_factory=_User)


class _TokenReview(msgspec.Struct):
    status: _TokenStatus = msgspec.field(default_factory=_TokenStatus)


class _AccessStatus(msgspec.Struct):
    allowed: bool = False


class _AccessReview(msgspec.Struct):
    status: _AccessStatus = msgspec.field(default_factory=_AccessStatus)


class KubernetesReviewer:
    """Implements ReviewPort. Needs `create` on both kinds of review (ClusterRole system:auth-delegator)."""

    def __init__(self, api: ApiServer, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._clock = clock
        self._lock = Lock()
        self._under_way = BoundedSemaphore(AT_ONCE)
        self._kept: dict[str, _Kept] = {}

    def user_of(self, token: str) -> User | None:
        """Raises TransientError where the API server does not answer, PermanentError where we may not ask."""
        key = hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
        return self._once(f"user {key}", lambda: self._review_token(token))

    def may(self, user: User, verb: str, path: str) -> bool:
        """Whether a rule for `nonResourceURLs` lets them. Raises like `user_of`."""
        return self._once(f"may {user!r} {verb} {path}", lambda: self._review_access(user, verb, path))

    def _review_token(self, token: str) -> User | None:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = _decoded(self._api.post(TOKEN_REVIEWS, body), _TokenReview).status
        if not status.authenticated or not status.user.username:
            return None
        extra = tuple((key, tuple(values)) for key, values in sorted(status.user.extra.items()))
        return User(status.user.username, status.user.uid, tuple(status.user.groups), extra)

    def _review_access(self, user: User, verb: str, path: str) -> bool:
        spec = {
            "user": user.name,
            "uid": user.uid,
            "groups": list(user.groups),
            "extra": {key: list(values) for key, values in user.extra},
            "nonResourceAttributes": {"path": path, "verb": verb},
        }
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        return _decoded(self._api.post(ACCESS_REVIEWS, body), _AccessReview).status.allowed

    def _once(self, key: str, ask: Callable[[], T]) -> T:
        """An answer that is not older than `KEPT_S`; errors are not kept."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None and self._clock() < kept.until:
                return kept.answer  # type: ignore[return-value] # what this key's question was answered with
        if not self._under_way.acquire(blocking=False):
            raise TransientError("too many tokens are being checked; try again in a moment")
        try:
            answer = ask()
        finally:
            self._under_way.release()
        with self._lock:
            if len(self._kept) >= KEPT_ANSWERS:
                self._kept.clear()
            self._kept[key] = _Kept(self._clock() + KEPT_S, answer)
        return answer


def _decoded(answer: bytes, form: type[T]) -> T:
    try:
        return msgspec.json.decode(answer, type=form)
    except msgspec.DecodeError as error:
        raise PermanentError(f"the API server's review makes no sense: {error}") from error
