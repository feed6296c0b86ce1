"""Machines from OpenStack, put together from the configuration.

A module of its own, imported where OpenStack is the provider: its SDK takes 0.8 s to load.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from htas.adapters.kubernetes.access import Access
from htas.adapters.kubernetes.api import ApiServer
from htas.adapters.kubernetes.bootstrap_tokens import BootstrapTokens, ca_cert_hash
from htas.adapters.openstack.api import OnCall, OpenStackApi
from htas.adapters.openstack.nova import Nova
from htas.adapters.openstack.provider import OpenStackProvider
from htas.adapters.openstack.settings import Access as CloudAccess
from htas.adapters.openstack.settings import BootVolume, Recipe
from htas.adapters.openstack.user_data import UserData
from htas.adapters.openstack.wire import size_of
from htas.config.loader import Loaded
from htas.config.openstack import OpenStackSetting, UserDataSetting
from htas.daemon.wiring.supply import Supply
from htas.execution.crash_points import reached
from htas.model.flavours import MachineSize
from htas.ports import RefusedError


def openstack_supply(
    loaded: Loaded, setting: OpenStackSetting, api: ApiServer, access: Access, on_call: OnCall
) -> Supply:
    """Machines from Nova; raises RefusedError or PermanentError where the user data cannot be made."""
    cloud = openstack_api(setting, loaded.directory, on_call)
    tokens = _tokens(loaded, setting, api)
    provider = OpenStackProvider(
        cloud,
        loaded.policy.cluster,
        _recipe(setting),
        _user_data(loaded, setting, tokens, access),
        interval_s=setting.poll_interval,
        quick_s=setting.quick_poll_interval,
        reached=reached,
    )

    def fence(may_write: Callable[[], bool]) -> None:
        cloud.may_write = may_write

    return Supply(
        provider,
        provider.start,
        provider.close,
        provider.look,
        setting.creates_in_flight,
        fence,
        lambda: provider.problems(loaded.policy.catalogue),
        tokens,
    )


def cloud_problems(loaded: Loaded, live: bool) -> list[str]:
    """What is wrong with the user data and, `live`, what the cloud lacks; raises what the cloud answers."""
    setting = loaded.settings.provider.openstack
    if setting is None:
        return []
    told = []
    if setting.user_data is not None:
        try:
            _checked_template(loaded, setting.user_data)
        except RefusedError as error:
            told.append(str(error))
    if not live:
        return told
    provider = OpenStackProvider(
        openstack_api(setting, loaded.directory), loaded.policy.cluster, _recipe(setting), None
    )
    try:
        return told + provider.problems(loaded.policy.catalogue)
    finally:
        provider.close()


def _checked_template(loaded: Loaded, said: UserDataSetting) -> None:
    """Raises RefusedError where a template could not be filled in. What only the cluster knows is not asked for."""
    known = {"api_server": "", "ca_cert_hash": ""} if said.kubeadm is not None else {}
    UserData(loaded.directory / said.template, said.values, join=known, token=str if said.kubeadm else None)


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
    access = CloudAccess(setting.cloud, setting.region, clouds, setting.timeout, setting.creates_in_flight)
    return OpenStackApi(access, on_call)


def _recipe(setting: OpenStackSetting) -> Recipe:
    volume = setting.boot_volume
    return Recipe(
        image=setting.image,
        networks=setting.networks,
        key_pair=setting.key_pair,
        security_groups=setting.security_groups,
        server_group=setting.server_group,
        boot_volume=BootVolume(volume.size, volume.type) if volume is not None else None,
        has_config_drive=setting.config_drive,
        metadata=tuple(sorted(setting.metadata.items())),
    )


def _tokens(loaded: Loaded, setting: OpenStackSetting, api: ApiServer) -> BootstrapTokens | None:
    kubeadm = setting.user_data.kubeadm if setting.user_data is not None else None
    if kubeadm is None:
        return None
    policy = loaded.policy
    return BootstrapTokens(api, policy.cluster, kubeadm.token_ttl, asked_for_s=policy.timeouts.launch_s)


def _user_data(
    loaded: Loaded, setting: OpenStackSetting, tokens: BootstrapTokens | None, access: Access
) -> UserData | None:
    said = setting.user_data
    if said is None:
        return None
    path = loaded.directory / said.template
    if said.kubeadm is None or tokens is None:
        return UserData(path, said.values)
    join = {
        "api_server": said.kubeadm.api_server,
        "ca_cert_hash": said.kubeadm.ca_cert_hash or ca_cert_hash(access.ca_file),
    }
    return UserData(path, said.values, join=join, token=tokens.mint)
