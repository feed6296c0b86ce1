"""Where machines come from in a real cluster: the provider that is configured, and how its pods are moved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from htas.adapters.kubernetes.access import Access
from htas.adapters.kubernetes.api import ApiServer
from htas.adapters.kubernetes.bootstrap_tokens import BootstrapTokens, ca_cert_hash
from htas.adapters.kubernetes.live import LiveView
from htas.adapters.kwok.machines import Faults
from htas.adapters.kwok.migration import KwokMigration
from htas.adapters.kwok.provider import KwokProvider
from htas.adapters.openstack import settings as openstack
from htas.adapters.openstack.api import OnCall, OpenStackApi
from htas.adapters.openstack.migration import EvictionOnly
from htas.adapters.openstack.nova import Nova
from htas.adapters.openstack.provider import OpenStackProvider
from htas.adapters.openstack.user_data import UserData
from htas.adapters.openstack.wire import size_of
from htas.config.kwok import KwokSetting
from htas.config.loader import Loaded
from htas.config.openstack import OpenStackSetting
from htas.execution.crash_points import reached
from htas.model.flavours import MachineSize
from htas.ports import MigrationPort, ProviderPort


@dataclass(frozen=True, slots=True)
class Supply:
    """A provider and its migration. `start` and `close` are for the daemon that leads, `look` is for who asks once.

    Up to `calls_at_once` go to the cloud at one time; `fence` is given what tells whether it may be changed at all.
    """

    provider: ProviderPort
    migration: MigrationPort
    start: Callable[[], None]
    close: Callable[[], None]
    look: Callable[[], None]
    calls_at_once: int
    fence: Callable[[Callable[[], bool]], None]


def kwok_supply(loaded: Loaded, setting: KwokSetting, api: ApiServer, namespace: str, live: LiveView) -> Supply:
    """Machines that KWOK plays. They are objects of the API server, whose fence is theirs."""
    faults = setting.faults
    provider = KwokProvider(
        api,
        loaded.policy.cluster,
        namespace,
        setting.startup_delay,
        Faults(setting.seed, faults.out_of_stock, faults.never_registers, faults.registers_late, faults.late),
        reached=reached,
    )
    migration = KwokMigration(api, live, reached=reached)

    def start() -> None:
        provider.start()
        migration.run()

    def close() -> None:
        migration.close()
        provider.close()

    calls = loaded.settings.kubernetes.connections
    return Supply(provider, migration, start, close, lambda: None, calls, lambda may_write: None)


def openstack_supply(
    loaded: Loaded, setting: OpenStackSetting, api: ApiServer, access: Access, on_call: OnCall
) -> Supply:
    """Machines from Nova; raises RefusedError or PermanentError where the user data cannot be made."""
    cloud = openstack_api(setting, loaded.directory, on_call)
    provider = OpenStackProvider(
        cloud,
        loaded.policy.cluster,
        _recipe(setting),
        _user_data(loaded, setting, api, access),
        interval_s=setting.poll_interval,
        quick_s=setting.quick_poll_interval,
        reached=reached,
    )

    def fence(may_write: Callable[[], bool]) -> None:
        cloud.may_write = may_write

    return Supply(
        provider,
        EvictionOnly(),
        provider.start,
        provider.close,
        provider.look,
        setting.creates_in_flight,
        fence,
    )


def openstack_sizes(setting: OpenStackSetting, folder: Path) -> list[MachineSize]:
    """The flavours that the cloud has; raises what it answers."""
    api = openstack_api(setting, folder)
    try:
        return [size_of(flavour) for flavour in Nova(api).flavours()]
    finally:
        api.close()


def openstack_api(setting: OpenStackSetting, folder: Path, on_call: OnCall = lambda *_: None) -> OpenStackApi:
    """The configured cloud; it is connected to when it is first asked. Relative paths start from `folder`."""
    clouds = folder / setting.clouds_file if setting.clouds_file is not None else None
    access = openstack.Access(setting.cloud, setting.region, clouds, setting.timeout, setting.creates_in_flight)
    return OpenStackApi(access, on_call)


def _recipe(setting: OpenStackSetting) -> openstack.Recipe:
    volume = setting.boot_volume
    return openstack.Recipe(
        image=setting.image,
        networks=setting.networks,
        key_pair=setting.key_pair,
        security_groups=setting.security_groups,
        server_group=setting.server_group,
        boot_volume=openstack.BootVolume(volume.size, volume.type) if volume is not None else None,
        has_config_drive=setting.config_drive,
        metadata=tuple(sorted(setting.metadata.items())),
    )


def _user_data(loaded: Loaded, setting: OpenStackSetting, api: ApiServer, access: Access) -> UserData | None:
    said = setting.user_data
    if said is None:
        return None
    path = loaded.directory / said.template
    if said.kubeadm is None:
        return UserData(path, said.values)
    tokens = BootstrapTokens(api, loaded.policy.cluster, said.kubeadm.token_ttl)
    join = {
        "api_server": said.kubeadm.api_server,
        "ca_cert_hash": said.kubeadm.ca_cert_hash or ca_cert_hash(access.ca_file),
    }
    return UserData(path, said.values, join=join, token=tokens.mint)
