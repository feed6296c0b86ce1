"""Calls to OpenStack's services: one request, one answer, its errors in HTAS's own kinds.

The SDK finds the services, logs in, and renews tokens; requests are its plain REST calls, read with msgspec.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from threading import RLock
from time import monotonic, perf_counter
from typing import Any

import requests
from keystoneauth1 import exceptions as keystone
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session, TCPKeepAliveAdapter
from openstack import exceptions as sdk
from openstack.config import OpenStackConfig
from openstack.config.cloud_region import CloudRegion

import htas
from htas.adapters.openstack.errors import CredentialError, HeldBackError, failure, refusal
from htas.adapters.openstack.settings import Access
from htas.ports import HTASError, RefusedError, TransientError

OnCall = Callable[[str, str, int, float], None]
"""Told of each request: method, service, the answer's status (0: none came), and how long it took in seconds."""
Query = Mapping[str, str | int]

MICROVERSION = "2.69"
"""Stein (2019): flavour names within servers (2.47), volume types (2.67), and servers of a cell that is down are
listed rather than left out (2.69), without which a machine could seem to have vanished."""


OLDEST = {"compute": "2.1", "image": "2.0", "network": "2.0"}
"""The services that are used, and the oldest version of each (major versions: microversions go with each call)."""


def _ignore(method: str, service: str, status: int, seconds: float) -> None:
    pass


class OpenStackApi:
    """The services of one project. Safe from several threads; it connects when it is first asked.

    Every call raises TransientError (no answer, 5xx, or too many calls), CapacityError (quota), RefusedError (rights,
    credential), NotFoundError, ConflictError or PermanentError. Nothing is written while `may_write` says no.
    """

    def __init__(
        self,
        access: Access,
        on_call: OnCall = _ignore,
        may_write: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.may_write = may_write
        self._access = access
        self._on_call = on_call
        self._clock = clock
        self._lock = RLock()
        self._session: Session | None = None
        self._services: dict[str, Adapter] = {}
        self._quiet_until = 0.0

    def get(self, service: str, path: str, query: Query | None = None) -> bytes:
        return self._call("GET", service, path, params=dict(query or {}))

    def post(self, service: str, path: str, body: object) -> bytes:
        return self._call("POST", service, path, json=body)

    def delete(self, service: str, path: str) -> None:
        self._call("DELETE", service, path)

    def project(self) -> str:
        """The id of the project that it is logged in to; raises as a call does."""
        try:
            return str(self._service("compute").get_project_id() or "")
        except HTASError:
            raise
        except (keystone.ClientException, sdk.SDKException, requests.RequestException, OSError) as error:
            raise self._noted(failure("the project's id", error)) from error

    def close(self) -> None:
        """Forget tokens and connections. What is asked afterwards begins with clouds.yaml anew."""
        with self._lock:
            self._session = None
            self._services.clear()

    def check_may_send(self, what: str) -> None:
        """Raises HeldBackError while nothing may be sent: another daemon may lead, or the cloud asked for a pause."""
        if not self.may_write():
            raise HeldBackError(f"{what}: not sent, since another daemon may lead by now")
        self._keep_quiet(what)

    def _call(self, method: str, service: str, path: str, **options: Any) -> bytes:
        what = f"{method} {service}{path}"
        if method == "GET":
            self._keep_quiet(what)
        else:
            self.check_may_send(what)
        started, status = perf_counter(), 0
        try:
            answer = self._send(method, service, path, options)
            status = answer.status_code
        except HTASError:
            raise
        except (keystone.ClientException, sdk.SDKException, requests.RequestException, OSError) as error:
            raise self._noted(failure(what, error)) from error
        finally:
            self._on_call(method, service, status, perf_counter() - started)
        if status >= 400:
            raise self._noted(refusal(what, status, answer.text, answer.headers))
        return bytes(answer.content)

    def _send(self, method: str, service: str, path: str, options: Mapping[str, Any]) -> requests.Response:
        """One request. It is not logged: user data holds tokens, and Nova answers with a password.

        The SDK renews a token that ended and asks again, but only in the first of several threads whose token it was:
        the others find nothing to renew, and would report a credential that is not accepted.
        """
        if service == "compute":
            options = {**options, "microversion": MICROVERSION}
        request = partial(self._service(service).request, path, method, raise_exc=False, log=False, **options)
        answer: requests.Response = request()
        return answer if answer.status_code != 401 else request()

    def _service(self, name: str) -> Adapter:
        with self._lock:
            if name not in self._services:
                region = _region(self._access)
                if self._session is None:
                    self._session = region.get_session()
                    _widen(self._session, self._access.connections)
                self._services[name] = Adapter(
                    session=self._session,
                    service_type=name,
                    interface=region.get_interface(name),
                    region_name=region.get_region_name(name),
                    endpoint_override=region.get_endpoint(name),
                    min_version=OLDEST[name],
                    max_version="2.latest",
                )
            return self._services[name]

    def _noted(self, error: HTASError) -> HTASError:
        """A wish for fewer calls is kept by all; a credential that is refused is read anew, since it may be rotated."""
        if isinstance(error, TransientError) and error.retry_after_s is not None:
            self._quiet_until = max(self._quiet_until, self._clock() + error.retry_after_s)
        if isinstance(error, CredentialError):
            self.close()
        return error

    def _keep_quiet(self, what: str) -> None:
        left_s = self._quiet_until - self._clock()
        if left_s > 0:
            raise HeldBackError(f"{what}: not sent, the cloud demands a pause of {left_s:.0f} s more", left_s)


def _region(access: Access) -> CloudRegion:
    """What clouds.yaml (or the environment) says of the cloud."""
    where = str(access.clouds_file) if access.clouds_file is not None else "clouds.yaml"
    if access.clouds_file is not None and not access.clouds_file.is_file():
        raise RefusedError(f"{where}: is not there; write provider.openstack.cloudsFile")
    files = [where] if access.clouds_file is not None else None
    named: dict[str, Any] = {"region_name": access.region} if access.region is not None else {}
    try:
        configuration = OpenStackConfig(
            config_files=files,
            load_envvars=files is None,  # else OS_CLIENT_CONFIG_FILE would win over the file that is named
            app_name="htas",
            app_version=htas.__version__,
        )
        region: CloudRegion = configuration.get_one(cloud=access.cloud, api_timeout=access.timeout_s, **named)
    except sdk.SDKException as error:
        raise RefusedError(f"{where}: {error}") from error
    except Exception as error:  # the SDK trips over files of another form; what they hold is not repeated: secrets
        raise RefusedError(f"{where}: cannot be read as a clouds.yaml ({type(error).__name__})") from None
    return region


def _widen(session: Session, connections: int) -> None:
    """As many connections kept alive as there may be calls at one time; ten are the library's own limit."""
    for scheme in ("http://", "https://"):
        session.session.mount(scheme, TCPKeepAliveAdapter(pool_connections=8, pool_maxsize=connections + 2))
