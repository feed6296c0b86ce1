"""Moves of running pods: their states, what is known of each, and why one is refused or taken back.

The source runs on until its twin is seen running at the target: the restored process, which keeps the pod's progress
(HTAS paper 4.2), or a fresh copy of a service's pod. An eviction has no states: nothing of it needs to be found again
after a crash, nor can be taken back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from htas.model.moves import MigrationMethod, Move, MoveReason

if TYPE_CHECKING:  # pods tell why they cannot be moved, in words of this module
    from htas.model.pods import Pod


MIGRATION = "htas.io/migration"
"""The annotation that journals a move: on the source until it has switched, on the twin from then on."""

TAKE_A_TWIN = frozenset({"Job", "ReplicaSet", "ReplicationController"})
"""Controllers that were seen to take a twin for the pod it replaces."""

ENDED_KEPT = 100
"""So many moves that are over are remembered for those who ask how they ended."""


class MigrationState(StrEnum):
    PREPARED = "Prepared"
    """Journalled: nothing was done yet, or whatever a failed attempt had made is gone again."""
    CHECKPOINTED = "Checkpointed"
    """The process is written down on the source's node, where it runs on."""
    TRANSFERRED = "Transferred"
    """The checkpoint is where the target can restore it, and its digest is right."""
    RESTORED = "Restored"
    """Every container of the twin was seen running: the container's state says so, not the pod's phase. A fresh copy is
    Ready: its condition says so."""
    SWITCHED = "Switched"
    """The twin has the source's place with its controller; the source is to be deleted."""
    DONE = "Done"
    """The source is gone, and so is everything that the move had made on the way. Final."""
    ROLLED_BACK = "RolledBack"
    """The source runs where it ran, and nothing is left of the move. Final."""


CHECKPOINT_TAG = re.compile(r":([0-9a-f]{8}-)?[0-9a-f]{12}-\d+-[0-9a-f]{32}(-[a-z0-9-]+)?")
"""How the name of a checkpoint's image ends, by either transfer: move, attempt and key."""


def is_checkpoint(image: str) -> bool:
    """Whether a container's image is a checkpoint that HTAS made."""
    tag = image.rfind(":")
    return tag >= 0 and CHECKPOINT_TAG.fullmatch(image, tag) is not None


FINAL = frozenset({MigrationState.DONE, MigrationState.ROLLED_BACK})

TRANSITIONS: dict[MigrationState, frozenset[MigrationState]] = {
    MigrationState.PREPARED: frozenset(
        {
            MigrationState.PREPARED,
            MigrationState.CHECKPOINTED,
            MigrationState.TRANSFERRED,
            MigrationState.RESTORED,
            MigrationState.ROLLED_BACK,
        }
    ),
    MigrationState.CHECKPOINTED: frozenset(
        {
            MigrationState.PREPARED,
            MigrationState.TRANSFERRED,
            MigrationState.RESTORED,
            MigrationState.ROLLED_BACK,
        }
    ),
    MigrationState.TRANSFERRED: frozenset(
        {MigrationState.PREPARED, MigrationState.RESTORED, MigrationState.ROLLED_BACK}
    ),
    MigrationState.RESTORED: frozenset({MigrationState.PREPARED, MigrationState.SWITCHED, MigrationState.ROLLED_BACK}),
    MigrationState.SWITCHED: frozenset({MigrationState.DONE, MigrationState.ROLLED_BACK}),
    MigrationState.DONE: frozenset(),
    MigrationState.ROLLED_BACK: frozenset(),
}
"""Which state may follow which. Back to Prepared: the next attempt. A method that writes no archive, `replace`,
skips what it does not have; none may switch what was not seen running. A switch is taken back only while the source
lives: when the twin ended, or lost its node, before the source was deleted."""


class Refusal(StrEnum):
    """Why a pod is not moved at all: known beforehand, and nothing was touched."""

    NOT_RUNNING = "NotRunning"
    """It does not run, or is ending."""
    KEEPS_ITS_NAME = "MustKeepItsName"
    """A StatefulSet's pod: a twin cannot bear the name that its identity consists of."""
    OWNER_UNKNOWN = "OwnerNotSupported"
    """Its controller is not known to adopt a twin."""
    SEVERAL_CONTAINERS = "SeveralContainers"
    """They would be checkpointed one after the other, not at one instant (unless migration.severalContainers)."""
    SIDECAR = "RestartableInitContainer"
    """It has a restartable init container (a sidecar)."""
    EMPTY_DIR = "EmptyDirWouldBeLost"
    """It would be restored with the directory empty, or not at all where a file of it is open."""
    HOST_PATH = "HostPath"
    """It mounts a directory of its node."""
    LOCAL_VOLUME = "LocalVolume"
    """Its volume is on its node."""
    BEGINS_AGAIN = "WouldBeginAgain"
    """Batch work, by a method that starts a fresh copy: it would repeat its work."""
    READINESS_GATE = "ReadinessGate"
    """Another controller sets its readiness gates, and does not see the twin, which has no labels yet."""
    READ_WRITE_ONCE = "ReadWriteOnceVolume"
    """Its volume can be attached to one node, and the source needs it until the twin runs."""
    SHARED_VOLUME = "WritesToSharedVolume"
    """What the source writes there after the dump is there when its twin begins to do it again."""
    DEVICE = "Device"
    """CRIU does not dump the state of a GPU or another device."""
    RESOURCE_CLAIM = "ResourceClaim"
    """The scheduler allocates what a pod claims, and a twin does not meet it."""
    HOST_NAMESPACE = "HostNamespace"
    """It shares the network, processes or IPC of its node."""
    SOURCE_CANNOT_CHECKPOINT = "SourceRuntimeCannotCheckpoint"
    """The container runtime of its node writes no checkpoints."""
    TARGET_CANNOT_RESTORE = "TargetRuntimeCannotRestore"
    """The container runtime of the target restores no checkpoints."""
    TARGET_NOT_READY = "TargetNotReady"
    """It is gone, not Ready, or cordoned."""
    NO_ROOM = "NoRoomAtTarget"
    """The target has too little free room."""
    NOT_CONFIGURED = "MethodNotConfigured"
    """The configuration has no settings for this method."""
    OPTED_OUT = "OptedOut"
    """It is annotated htas.io/migrate: "false"."""
    PROTECTED = "Protected"
    """A rule protects it from disruption; a move by hand may override that (--force)."""


class Failure(StrEnum):
    """Why an attempt failed, and so why a move was taken back after the last one."""

    CHECKPOINT_FAILED = "CheckpointFailed"
    """CRIU or the kubelet did not write the checkpoint."""
    OPEN_CONNECTION = "OpenTCPConnection"
    """The process has an open TCP connection."""
    FILE_LOCK = "FileLock"
    """The process has a lock on a file."""
    WATCHES_FILES = "InotifyWatch"
    """The process watches files."""
    NO_SPACE = "NoSpaceLeft"
    """A disk is full."""
    TRANSFER_FAILED = "TransferFailed"
    """The archive did not reach the target."""
    DIGEST_WRONG = "DigestWrong"
    """What reached the target is not what the source sent."""
    RESTORE_FAILED = "RestoreFailed"
    """The twin did not start, or did not become Ready."""
    TARGET_LOST = "TargetLost"
    """The target is gone or not Ready."""
    SOURCE_ENDED = "SourceEnded"
    """The pod ended, or was deleted, before its twin ran: there is nothing left to move."""
    SOURCE_LOST = "SourceNodeLost"
    """The source's node is gone or not Ready: it is unknown whether the source still runs."""
    SWITCH_FAILED = "SwitchFailed"
    """The twin could not take the place of the pod."""
    UNEXPECTED = "UnexpectedError"
    """A defect, or an unexpected answer; the log has the details."""
    COMMAND_FAILED = "CommandFailed"
    """A command of the operator failed."""
    DEADLINE = "DeadlineExceeded"
    """A step took longer than migration.deadlines allows."""
    REFUSED = "Refused"
    """Something began to forbid it while it was under way."""
    INTERRUPTED = "Interrupted"
    """The daemon that carried it out died, and the step could not be taken up again."""


class MigrationRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A move as journalled and as told. Sizes are bytes, times seconds since the epoch.

    `reached` has the instant of each state in the present attempt; `dumped_at` is when the checkpoint was asked for:
    what the source did after that is done again. `archive` is the path on the source's node, `image` the reference
    under which the target finds it. `detail` is the text of the reason, as the one who said it put it.
    """

    id: str
    pod: str
    uid: str
    source: str
    target: str
    method: MigrationMethod
    state: MigrationState
    started_at: float
    attempt: int = 1
    reached: Mapping[str, float] = {}
    dumped_at: float | None = None
    twin: str = ""
    containers: tuple[str, ...] = ()
    """Of the pod: their names are part of those of the archives."""
    archive: str = ""
    digest: str = ""
    image: str = ""
    archive_bytes: int = 0
    memory_bytes: int = 0
    """What the pod asked for: what the size of its archive was guessed from."""
    reason: str = ""
    """A Failure: of the last attempt, or of the move if it was taken back."""
    detail: str = ""
    is_taken_up: bool = False
    """Whether it was found and carried on: its times have a daemon's absence in them."""
    left_behind: bool = False
    """Whether archives may still be on the source's node, which could not be reached."""
    image_key: str = ""
    """Of kubelet-checkpoint: what nobody can guess of its images' names, journalled before any of them is made."""
    base_images: tuple[str, ...] = ()
    """Of kubelet-checkpoint: what the containers start from where they do not go on from a checkpoint."""

    @classmethod
    def prepared(
        cls, id: str, pod: Pod, source: str, target: str, method: MigrationMethod, now: float, **facts: Any
    ) -> MigrationRecord:
        """A move that begins."""
        state = MigrationState.PREPARED
        facts |= {"reached": {state.value: now}, "memory_bytes": pod.requests.memory_bytes}
        return cls(id, pod.key, pod.uid, source, target, method, state, now, **facts)

    @property
    def move(self) -> Move:
        return Move(self.pod, self.uid, self.source, self.target, self.method, MoveReason.UNDER_WAY)

    @property
    def is_over(self) -> bool:
        return self.state in FINAL

    @property
    def needs_image(self) -> bool:
        """Whether what was delivered to the target may still be needed there.

        Of kubelet-checkpoint, until the restored containers run; by the method command, as long as the twin lives.
        """
        is_up = self.state in (MigrationState.RESTORED, MigrationState.SWITCHED, *FINAL)
        return not (self.image_key and is_up)

    def shown(self) -> MigrationRecord:
        """The record as others may see it: without what leads to an archive or an image, which hold memory."""
        return msgspec.structs.replace(
            self,
            archive="",
            digest="",
            image="",
            image_key="",
            detail=self.without_names(self.detail),
        )

    def without_names(self, words: str) -> str:
        """What somebody said, with the names of the move's images made useless."""
        return words.replace(self.image_key, "…") if self.image_key else words

    @property
    def ended_at(self) -> float | None:
        """When it ended, either way; None: it is under way."""
        return self.reached.get(self.state) if self.is_over else None

    def advanced(self, state: MigrationState, at: float, **changes: object) -> MigrationRecord:
        """The record one edge further, with whatever became known on the way; raises ValueError for a false edge.

        Back to Prepared it is the next attempt: the times of the last one, its archive and its image are dropped.
        """
        if state not in TRANSITIONS[self.state]:
            raise ValueError(f"move {self.id} of {self.pod} cannot go from {self.state} to {state}")
        if state is MigrationState.PREPARED:
            fresh = {"attempt": self.attempt + 1, "reached": {state.value: at}, "dumped_at": None}
            fresh |= {"twin": "", "archive": "", "digest": "", "image": "", "archive_bytes": 0}
            return msgspec.structs.replace(self, state=state, **{**fresh, **changes})
        return msgspec.structs.replace(self, state=state, reached={**self.reached, state.value: at}, **changes)

    @property
    def repeated_s(self) -> float | None:
        """What the restored process does again: from the dump to its restart. None: it came to neither."""
        restored = self.reached.get(MigrationState.RESTORED)
        return None if self.dumped_at is None or restored is None else restored - self.dumped_at

    def took(self, before: MigrationState, after: MigrationState) -> float | None:
        """Seconds between two states of the last attempt; None where one was not reached."""
        began, ended = self.reached.get(before), self.reached.get(after)
        return None if began is None or ended is None else ended - began


class Transfer(StrEnum):
    SCP = "scp"
    """The archive is copied from node to node (HTAS paper 4.2), and imported there."""
    REGISTRY = "registry"
    """The agent on the source's node pushes it as an image; the target's kubelet pulls it."""


class Deadlines(msgspec.Struct, frozen=True):
    """How long each step of an attempt may take. A cut page file would make CRIU spin without an end."""

    checkpoint_s: float = 120.0
    transfer_s: float = 600.0
    restore_s: float = 120.0
    switch_s: float = 60.0


class SecureCopy(msgspec.Struct, frozen=True):
    """How archives are copied from node to node by ssh. Keys are files: a Secret, mounted."""

    user: str = ""
    port: int = 22
    identity_file: str = ""
    known_hosts_file: str = ""
    """The nodes' host keys: one that is not in it is not talked to."""


class ImageRegistry(msgspec.Struct, frozen=True):
    """Where checkpoint images are pushed to, and pulled from by the target's kubelet."""

    url: str = ""
    """As HTAS and its agent reach it: `https://registry.example:5000`."""
    pull_from: str = ""
    """As kubelets name it, with a path: `registry.example:5000/htas`; empty: the host of `url` and /htas."""
    credentials_file: str = ""
    """`user:password` on one line, in a file that others cannot read; empty: none are sent."""
    ca_file: str = ""
    agent_port: int = 10270
    """Where the agent on each node listens."""
    agent_token_file: str = ""


class Commands(msgspec.Struct, frozen=True):
    """The operator's own executables (docs/migration.md has their contract)."""

    checkpoint: str = ""
    transfer: str = ""
    restore: str = ""
    abort: str = ""


class MigrationSettings(msgspec.Struct, frozen=True):
    """How pods are moved where the method is not the provider's own: the section `migration` of the configuration."""

    transfer: Transfer = Transfer.SCP
    attempts: int = 3
    """How often a move is tried before it is taken back (HTAS paper 4.2)."""
    at_once: int = 10
    """Moves under way at one time: they share disks and the network."""
    deadlines: Deadlines = Deadlines()
    several_containers: bool = False
    """Whether pods of several containers are moved; their checkpoints are not of one instant."""
    kubelet_port: int = 10250
    kubelet_ca_file: str = ""
    """Who signed the kubelets' certificates; empty: each node's own, as the cluster's CA approved it."""
    secure_copy: SecureCopy = SecureCopy()
    registry: ImageRegistry = ImageRegistry()
    commands: Commands = Commands()


Versions = tuple[tuple[str, tuple[int, int], tuple[int, int] | None], ...]
_VERSION = re.compile(r"^(?P<name>[a-z-]+)://v?(?P<major>\d+)\.(?P<minor>\d+)")
CHECKPOINTS: Versions = (("containerd", (2, 0), None),)
RESTORES: Versions = (("containerd", (2, 2), (2, 4)),)
"""From this version, below that one, a runtime restores a pod created from a checkpoint image. Before 2.2 containerd
always pulls the base image by its id, and fails; from 2.4 on it has no restore by create."""


def can_checkpoint(runtime: str) -> bool:
    """Whether a kubelet with this containerRuntimeVersion (`containerd://2.3.7`) checkpoints containers."""
    return _within(runtime, CHECKPOINTS)


def can_restore(runtime: str) -> bool:
    """Whether a kubelet with this containerRuntimeVersion restores a pod from a checkpoint image."""
    return _within(runtime, RESTORES)


@cache
def _within(runtime: str, versions: Versions) -> bool:
    match = _VERSION.match(runtime)
    if match is None:
        return False
    version = int(match["major"]), int(match["minor"])
    return any(
        name == match["name"] and version >= first and (end is None or version < end) for name, first, end in versions
    )
