"""A real Cassandra by the scripts beside this file, and what outsiders see of it."""

from __future__ import annotations

import os
import signal
from functools import cached_property
from pathlib import Path
from typing import Any

from cassandra import ConsistencyLevel, DriverException
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.policies import ConstantReconnectionPolicy, DCAwareRoundRobinPolicy

from tools.testenv.cluster import run_script

DATACENTER = "datacenter1"
SUPERUSER = SUPERUSER_PASSWORD = "cassandra"
PORT = 23800


class Cassandra:
    """One node or a ring on 127.0.0.1, 127.0.0.2 … in `directory`; further options: cassandra-up.sh's."""

    def __init__(
        self, directory: Path, *, nodes: int = 1, auth: bool = False, port: int = PORT, **options: str
    ) -> None:
        self.directory, self.nodes, self._auth, self._port = directory, nodes, auth, port
        stated = {
            "HTAS_CASSANDRA_NODES": str(nodes),
            "HTAS_CASSANDRA_AUTH": str(int(auth)),
            "HTAS_CASSANDRA_PORT": str(port),
        }
        self._env = {**os.environ, **stated, **options}
        self.start()

    # The processes.

    def start(self, node: int | None = None) -> None:
        """Start what does not run, or one node; returns when it answers."""
        self._script("cassandra-up.sh", **({"HTAS_CASSANDRA_ONLY": str(node)} if node is not None else {}))
        if "admin" in self.__dict__ and not self._admin_answers():
            # A driver may take its time to notice that a server is back: whoever started it wants to speak to it now.
            self.admin.cluster.shutdown()
            del self.admin

    def stop(self, node: int | None = None) -> None:
        """End all nodes or one as an administrator would: it drains first."""
        self._script("cassandra-down.sh", *self._one(node))

    def kill(self, node: int | None = None) -> None:
        """End all nodes or one by SIGKILL."""
        self._script("cassandra-down.sh", "--kill", *self._one(node))

    def freeze(self, node: int = 1) -> None:
        """Stop a node as a machine that hangs: connections stay open and nobody answers."""
        os.kill(self._pid(node), signal.SIGSTOP)

    def thaw(self, node: int = 1) -> None:
        os.kill(self._pid(node), signal.SIGCONT)

    def cpu_s(self, node: int = 1) -> float:
        """Seconds of processor time a node has used since its start."""
        fields = Path(f"/proc/{self._pid(node)}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def purge(self) -> None:
        if "admin" in self.__dict__:
            self.admin.cluster.shutdown()
        self._script("cassandra-down.sh", "--kill", "--purge")

    def _pid(self, node: int) -> int:
        return int((self.directory / f"node{node}" / "pid").read_text())

    def _one(self, node: int | None) -> list[str]:
        return [] if node is None else ["--node", str(node)]

    def _script(self, name: str, *arguments: str, **options: str) -> None:
        run_script(name, self.directory, *arguments, env=self._env | options, timeout_s=400)

    # The outsiders.

    @property
    def contact_points(self) -> tuple[tuple[str, int], ...]:
        return tuple((f"127.0.0.{node}", self._port) for node in range(1, self.nodes + 1))

    @cached_property
    def admin(self) -> Any:
        """The driver's session as anybody has it; the superuser's where passwords are asked for."""
        profile = ExecutionProfile(
            DCAwareRoundRobinPolicy(DATACENTER), consistency_level=ConsistencyLevel.QUORUM, request_timeout=60
        )
        cluster = Cluster(
            list(self.contact_points),
            protocol_version=5,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            auth_provider=PlainTextAuthProvider(SUPERUSER, SUPERUSER_PASSWORD) if self._auth else None,
            reconnection_policy=ConstantReconnectionPolicy(0.5, max_attempts=None),
        )
        return cluster.connect()

    def _admin_answers(self) -> bool:
        try:
            self.admin.execute("SELECT release_version FROM system.local")
        except (DriverException, NoHostAvailable):
            return False
        return True

    def tables(self, keyspace: str) -> dict[str, Any]:
        """Ids of a keyspace's tables by name: a table made anew has another."""
        rows = self.admin.execute(
            "SELECT table_name, id FROM system_schema.tables WHERE keyspace_name = %s", [keyspace]
        )
        return {row.table_name: row.id for row in rows}

    def wipe(self, keyspace: str) -> None:
        """Leave the tables of a keyspace empty, but for the version of its schema."""
        for table in self.tables(keyspace):
            if table != "schema_version":
                self.admin.execute(f"TRUNCATE {keyspace}.{table}")
