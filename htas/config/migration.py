"""The settings of moves that keep progress, where the method is not the provider's own (docs/migration.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from htas.config.values import Count, Integer, Seconds, Section, Switch, Text
from htas.model.migrations import Commands, Deadlines, ImageRegistry, MigrationSettings, SecureCopy, Transfer

Port = Annotated[Integer, Field(ge=1, le=65_535)]


class DeadlinesSetting(Section):
    """How long each step of an attempt may take."""

    checkpoint: Seconds = Field(default=120.0, gt=0, description="Until the process is dumped; 2m: 500 MB took 3.6s.")
    transfer: Seconds = Field(default=600.0, gt=0, description="Until it is on the target; 10m: 500 MB took 10s.")
    restore: Seconds = Field(default=120.0, gt=0, description="Until it runs there; 2m: 500 MB took 3.8s.")
    switch: Seconds = Field(default=60.0, gt=0, description="Until it replaces the source, which is gone; 1m.")

    def model(self) -> Deadlines:
        return Deadlines(self.checkpoint, self.transfer, self.restore, self.switch)


class KubeletSetting(Section):
    """How kubelets are reached for checkpoints, with HTAS's own token."""

    port: Port = Field(default=10_250, description="Kubernetes' own default.")
    ca_file: Text | None = Field(
        default=None, description="The CA of their serving certificates. null: the cluster's CA; scp: or self-signed."
    )


class SecureCopySetting(Section):
    """For `transfer: scp`: how archives are copied from node to node."""

    user: Text | None = Field(
        default=None, description="Who may read /var/lib/kubelet/checkpoints and import images. Required with scp."
    )
    port: Port = Field(default=22, description="sshd's default.")
    identity_file: Text | None = Field(default=None, description="The private key. Required with scp.")
    known_hosts_file: Text | None = Field(
        default=None, description="The nodes' host keys; HTAS connects to no other node. Required with scp."
    )


class RegistrySetting(Section):
    """For `transfer: registry`: where checkpoint images are pushed to and pulled from."""

    url: Text | None = Field(default=None, description="https://HOST[:PORT], as HTAS and its agents reach it.")
    insecure: Switch = Field(
        default=False, description="true: url may be http://. What processes hold in memory is then sent in the clear."
    )
    pull_from: Text | None = Field(default=None, description="HOST[:PORT]/PATH, as kubelets name it. null: of url.")
    credentials_file: Text | None = Field(default=None, description="One line user:password. null: none are sent.")
    ca_file: Text | None = Field(default=None, description="The CA of its certificate. null: the system's CAs.")
    agent_port: Port = Field(default=10_270, description="Where the agent on each node listens.")
    agent_token_file: Text | None = Field(
        default=None, description="Token that agents require. Required with registry."
    )


class CommandsSetting(Section):
    """For `cleaning.migration: command`: the operator's executables; all four are required then."""

    checkpoint: Text | None = Field(default=None, description="Dumps the process and leaves it running.")
    transfer: Text | None = Field(default=None, description="Copies the dump to the target.")
    restore: Text | None = Field(default=None, description="Starts the twin there; ends when it runs.")
    abort: Text | None = Field(default=None, description="Removes whatever the others made for one attempt.")


class MigrationSetting(Section):
    """How pods are moved with their progress."""

    transfer: Transfer = Field(default=Transfer.SCP, description="scp: from node to node; registry: as an image.")
    attempts: Count = Field(default=3, ge=1, le=20, description="Then HTAS rolls the move back; 3 (paper 4.2).")
    at_once: Count = Field(default=10, ge=1, description="Moves under way at one time; they share disks and network.")
    several_containers: Switch = Field(
        default=False, description="true: pods of several containers move, though not dumped at one instant."
    )
    deadlines: DeadlinesSetting = Field(default=DeadlinesSetting(), description="Every step ends.")
    kubelet: KubeletSetting = Field(default=KubeletSetting(), description="How kubelets are reached.")
    scp: SecureCopySetting = Field(default=SecureCopySetting(), description="For transfer: scp.")
    registry: RegistrySetting = Field(default=RegistrySetting(), description="For transfer: registry.")
    commands: CommandsSetting = Field(default=CommandsSetting(), description="For cleaning.migration: command.")

    def model(self, directory: Path) -> MigrationSettings:
        """With file names beside the configuration, unless they are absolute; what is not named is an empty text."""

        def beside(name: str | None) -> str:
            return str(directory / name) if name is not None else ""

        scp, registry, commands = self.scp, self.registry, self.commands
        return MigrationSettings(
            transfer=self.transfer,
            attempts=self.attempts,
            at_once=self.at_once,
            deadlines=self.deadlines.model(),
            several_containers=self.several_containers,
            kubelet_port=self.kubelet.port,
            kubelet_ca_file=beside(self.kubelet.ca_file),
            secure_copy=SecureCopy(scp.user or "", scp.port, beside(scp.identity_file), beside(scp.known_hosts_file)),
            registry=ImageRegistry(
                registry.url or "",
                registry.pull_from or _pull_from(registry.url),
                beside(registry.credentials_file),
                beside(registry.ca_file),
                registry.agent_port,
                beside(registry.agent_token_file),
            ),
            commands=Commands(
                beside(commands.checkpoint),
                beside(commands.transfer),
                beside(commands.restore),
                beside(commands.abort),
            ),
        )


def _pull_from(url: str | None) -> str:
    """`https://registry.example:5000/` → `registry.example:5000/htas`."""
    return f"{url.partition('://')[2].strip('/')}/htas" if url is not None else ""
