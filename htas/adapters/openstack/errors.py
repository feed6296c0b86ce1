"""OpenStack's refusals in HTAS's own kinds.

Nova says "quota exceeded" by 403, "no host" by a server that ends in ERROR, "too fast" by 413 (older) or 429, and
"no such image" by 400 (Compute API reference, "Create server"; tried on Nova 26).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from time import time
from typing import Any

import msgspec
from keystoneauth1 import exceptions as keystone
from openstack import exceptions as sdk

from htas.ports import (
    CapacityError,
    ConflictError,
    HTASError,
    NotFoundError,
    PermanentError,
    RefusedError,
    TransientError,
)

_QUOTA = re.compile(r"quota|exceeded|maximum number of", re.IGNORECASE)
_NO_STOCK = re.compile(r"no valid host|not enough (hosts|available)|insufficient", re.IGNORECASE)
_OF_FLAVOUR = re.compile(r"flavor|availability zone", re.IGNORECASE)
"""What a 400 says of this flavour or zone alone ("Flavor's disk is too small for requested image")."""
_LONGEST = 300
_NEVER_REACHED = (
    keystone.EndpointNotFound,
    keystone.CatalogException,
    keystone.MissingRequiredOptions,
    keystone.NoMatchingPlugin,
    keystone.AuthPluginException,
    sdk.ConfigException,
)


class HeldBackError(TransientError):
    """The call was not carried out, for certain: there are too many, or it was not even sent."""


class CredentialError(RefusedError):
    """The cloud does not accept who we are; the credential may have been renewed meanwhile."""


def refusal(what: str, status: int, body: str, headers: Mapping[str, str]) -> HTASError:
    """The error that an answer stands for; `what` was asked, as in "POST compute/servers"."""
    told = f"{what}: {status}: {message_of(body)}"
    if status == 401:
        return CredentialError(f"{told}; the credential is not accepted: look at clouds.yaml")
    if status in (413, 429):
        return HeldBackError(f"{told}; the cloud limits the rate of calls", retry_after_s(headers) or 1.0)
    if status == 403:
        if _QUOTA.search(body):
            return CapacityError(told, is_quota=True)
        return RefusedError(f"{told}; the credential lacks a right")
    if status == 404:
        return NotFoundError(told)
    if status == 409:
        return ConflictError(told)
    if status >= 500 or status == 408:
        if _NO_STOCK.search(body):
            return CapacityError(told)
        return TransientError(told, retry_after_s(headers))
    return PermanentError(told)


def refused_order(error: HTASError) -> HTASError:
    """What a refusal means where a machine was ordered: of this flavour alone, or of any."""
    is_plain = type(error) in (PermanentError, NotFoundError, ConflictError)
    if is_plain and not _OF_FLAVOUR.search(str(error)):
        return RefusedError(str(error))
    return PermanentError(str(error)) if is_plain else error


def failure(what: str, error: Exception) -> HTASError:
    """The error that an exception of the SDK stands for: no answer came, or not from the service asked."""
    told = f"{what}: {_short(str(error) or type(error).__name__)}"
    if isinstance(error, keystone.Unauthorized):
        return CredentialError(f"{told}; the credential is not accepted: look at clouds.yaml")
    if isinstance(error, _NEVER_REACHED):
        return RefusedError(f"{told}; look at clouds.yaml and the region")
    if isinstance(error, keystone.HttpError) and error.http_status in (400, 403, 404):
        return RefusedError(f"{told}; look at clouds.yaml")
    return TransientError(told)


def message_of(body: str) -> str:
    """What an error's body says in words: `{"badRequest": {"message": …}}`, or the text itself."""
    try:
        found: Any = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return _short(body)
    for part in (found, *(found.values() if isinstance(found, dict) else ())):
        if isinstance(part, dict) and isinstance(part.get("message"), str):
            return _short(part["message"])
    return _short(body)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds, as Retry-After states them: a number or a date (RFC 9110, 10.2.3)."""
    text = next((value for key, value in headers.items() if key.lower() == "retry-after"), None)
    if text is None:
        return None
    if text.strip().isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time())
    except ValueError:
        return None


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
