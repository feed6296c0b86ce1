"""A real OpenStack control plane with Nova's fake hypervisor, by the scripts beside this file; what outsiders see."""

from __future__ import annotations

import os
import secrets
import signal
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import openstack
from openstack.compute.v2.server import Server
from openstack.connection import Connection
from openstack.exceptions import NotFoundException

from tools.testenv.cluster import eventually, run_script

PROJECT = "htas"
TINY = "tiny"


class OpenStack:
    """Keystone, Glance, Placement, Neutron, Nova, RabbitMQ, MariaDB in `directory`; options: openstack-up.sh's."""

    def __init__(self, directory: Path, **options: str) -> None:
        self.directory = directory
        self._env = {**os.environ, **options}
        self.clouds_file = directory / "clouds.yaml"
        self.start()

    # The processes.

    def start(self, **options: str) -> None:
        """Start what does not run, some of it with other options."""
        self._script("openstack-up.sh", **options)

    def stop(self, *names: str, kill: bool = False) -> None:
        """Stop some of the processes (nova-api, rabbitmq, nova-compute-fake1 …), or all."""
        self._script("openstack-down.sh", *(["--kill"] if kill else []), *names)

    def purge(self) -> None:
        self._script("openstack-down.sh", "--purge")

    def freeze(self, name: str) -> None:
        """Stop a process as a machine that hangs: connections stay open and nobody answers."""
        os.killpg(self._pid(name), signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        os.killpg(self._pid(name), signal.SIGCONT)

    def _pid(self, name: str) -> int:
        return int((self.directory / "run" / f"{name}.pid").read_text())

    def _script(self, name: str, *arguments: str, **options: str) -> None:
        run_script(name, self.directory, *arguments, env=self._env | options, timeout_s=400)

    def expire_tokens(self) -> None:
        """Make every token worthless at once, as its end in the middle of a call would: keys are replaced."""
        for key in sorted((self.directory / "fernet").iterdir()):
            key.write_bytes(urlsafe_b64encode(secrets.token_bytes(32)))

    # The outsiders.

    def connect(self, cloud: str = PROJECT) -> Connection:
        """The SDK as anybody uses it."""
        os.environ["OS_CLIENT_CONFIG_FILE"] = str(self.clouds_file)
        return openstack.connect(cloud=cloud)

    @cached_property
    def admin(self) -> Connection:
        return self.connect("htas-admin")

    @cached_property
    def user(self) -> Connection:
        return self.connect()

    def servers(self) -> list[Server]:
        """Nova's own list of the project."""
        return list(self.user.compute.servers())

    def ever_bought(self, since: datetime) -> dict[str, int]:
        """How many servers there ever were of each name since an instant, those deleted (without metadata) included."""
        project = self.user.current_project_id
        gone = self.admin.compute.servers(all_projects=True, project_id=project, deleted=True)
        counts: dict[str, int] = {}
        for server in {each.id: each for each in (*gone, *self.servers())}.values():
            if datetime.fromisoformat(server.created_at) >= since:
                counts[server.name] = counts.get(server.name, 0) + 1
        return counts

    def flavours(self) -> dict[str, int]:
        """How many servers there are of each flavour."""
        counts: dict[str, int] = {}
        for server in self.servers():
            name = server.flavor["original_name"]
            counts[name] = counts.get(name, 0) + 1
        return counts

    def quota(self, **most: int) -> None:
        """Set the project's quota: instances, cores, ram (MiB)."""
        self.admin.set_compute_quotas(self.user.current_project_id, **most)

    def add_server(self, name: str, metadata: Mapping[str, str], flavour: str = "t3.xsmall") -> Server:
        """A machine that somebody else asks for."""
        compute = self.user.compute
        made: Any = compute.create_server(
            name=name,
            flavor_id=compute.find_flavor(flavour).id,
            image_id=self.user.image.find_image(TINY).id,
            networks="none",
            metadata=dict(metadata),
        )
        return compute.wait_for_server(made, wait=60)

    def wipe(self, keep: Iterable[str] = ()) -> None:
        """Leave no server behind, and the quota as it was."""
        kept = set(keep)
        self.quota(instances=60, cores=200, ram=800_000)

        def is_swept() -> bool:
            left = [server for server in self.servers() if server.id not in kept]
            for server in left:
                try:
                    self.user.compute.delete_server(server.id, force=False)
                except NotFoundException:
                    continue
            return not left

        eventually(is_swept, 120, "the project is swept")
