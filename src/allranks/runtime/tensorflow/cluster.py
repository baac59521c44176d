"""The cluster of TF_CONFIG, and time limits for the start and the end of its tasks, which TensorFlow does not have."""

import json
import os
import select
import socket
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from allranks.contract import tensorflow, variables, world
from allranks.contract.rank_env import RankEnv
from allranks.contract.world import detect
from allranks.errors import InputError, Problem
from allranks.runtime.lifecycle import WATCH_SECONDS
from allranks.runtime.sockets.rendezvous import accept, register

CHIEF = "the chief"
"""Name of the chief in messages."""

SILENT_SECONDS = 15.0
"""Time that a task may be silent after it has answered. If its port is closed, it counts as lost immediately."""


@dataclass(frozen=True)
class Cluster:
    """The tasks of a training, and the task of this process.

    tasks:       role -> `host:port` of each task; the roles are chief, worker and ps
    role, index: this process's task
    local_count: number of tasks on this process's instance
    """

    tasks: Mapping[str, tuple[str, ...]]
    role: str
    index: int
    local_count: int = 1

    @property
    def parameter_servers(self) -> bool:
        """Whether parameter servers hold the variables."""
        return "ps" in self.tasks

    @property
    def chief(self) -> tuple[str, int]:
        """Role and index of the task that writes shared outputs: the chief, or worker 0 if there is no chief."""
        return ("chief" if "chief" in self.tasks else "worker", 0)

    @property
    def is_chief(self) -> bool:
        """Whether this process is the chief."""
        return (self.role, self.index) == self.chief

    @property
    def trainers(self) -> tuple[tuple[str, int], ...]:
        """The tasks that compute gradients, in the order of their ranks. With parameter servers, the chief does not."""
        roles = ("worker",) if self.parameter_servers else ("chief", "worker")
        return tuple((role, index) for role in roles for index in range(len(self.tasks.get(role, ()))))

    @property
    def others(self) -> dict[str, str]:
        """The `host:port` of all tasks except the chief, by their names."""
        tasks = ((role, index) for role, endpoints in self.tasks.items() for index in range(len(endpoints)))
        return {f"{role} {index}": self.tasks[role][index] for role, index in tasks if (role, index) != self.chief}

    @property
    def chief_endpoint(self) -> str:
        """The `host:port` of the chief."""
        role, index = self.chief
        return self.tasks[role][index]


def wait_for_tasks(cluster: Cluster, seconds: float) -> dict[str, socket.socket]:
    """Wait until every task of the cluster has started. TensorFlow waits for a missing task for ever, and holds the
    GIL. The chief listens at its own port, which TensorFlow uses later.

    Return the open connections by the other task's name: of the chief to all others, of the others to the chief.

    Raise ConnectionError, which names the missing tasks, if not all tasks connect in time.
    """
    host, port = variables.split_endpoint(cluster.chief_endpoint)
    others = cluster.others
    if cluster.is_chief:
        return accept(
            port or 0,
            list(others),
            seconds,
            CHIEF,
            lambda missing: ", ".join(f"{name} at {others[name]}" for name in missing),
        )
    return {CHIEF: register(host, port or 0, f"{cluster.role} {cluster.index}", len(others) + 1, seconds, CHIEF)}


def listed(environ: Mapping[str, str] = os.environ) -> Cluster:
    """Return the cluster as TF_CONFIG lists it, for a script that uses TensorFlow by itself.

    TF_CONFIG must be valid, as `contract.tensorflow.read` checks.
    """
    config = json.loads(environ["TF_CONFIG"])
    tasks = {role: tuple(map(str, config["cluster"].get(role) or ())) for role in tensorflow.RANKED_ROLES}
    existing = {role: endpoints for role, endpoints in tasks.items() if endpoints}
    return Cluster(existing, str(config["task"]["type"]), int(config["task"]["index"]))


def read(environ: Mapping[str, str] = os.environ) -> Cluster | None:
    """Return the cluster that TF_CONFIG describes; None if this is the only process that trains.

    Azure ML lists workers and parameter servers, but no chief ("Distributed GPU training guide").
    ParameterServerStrategy needs a chief, which coordinates and does not train: worker 0 becomes the chief, worker 1
    becomes worker 0, and so on. If TF_CONFIG has a chief, it does not change.

    Raise InputError if TF_CONFIG cannot be read or leaves instances of the job without a task, if parameter servers
    would have no worker, or if another launcher started several processes, which would train independently.
    """
    env = tensorflow.read(environ)
    if env is None:
        launched = detect(environ)
        world.check(launched, environ)
        refuse_another_launcher(launched, "tensorflow", "no TF_CONFIG: every process would train alone")
        return None
    world.check(env, environ)
    cluster = listed(environ)
    tasks, role, index = dict(cluster.tasks), cluster.role, cluster.index
    _check(tasks)
    if "ps" in tasks and "chief" not in tasks:
        chief, *workers = tasks.pop("worker")
        tasks = {"chief": (chief,), "worker": tuple(workers)} | tasks
        if role == "worker":
            role, index = ("worker", index - 1) if index else ("chief", 0)
    if sum(map(len, tasks.values())) == 1:
        return None
    return Cluster(tasks, role, index, env.local_world_size)


def _check(tasks: Mapping[str, tuple[str, ...]]) -> None:
    chiefs, workers, servers = (len(tasks.get(role, ())) for role in tensorflow.RANKED_ROLES)
    if chiefs > 1:
        raise variables.wrong("TF_CONFIG", f"{chiefs} chiefs", "one chief at most")
    if not chiefs + workers:
        raise variables.wrong("TF_CONFIG", "neither a chief nor a worker", "at least one of them")
    if servers and chiefs + workers < 2:
        found = f"1 worker with {servers} parameter server{'s' * (servers > 1)}"
        expected = "at least 2 workers: the first one coordinates the others, and trains nothing itself"
        fix = "set distribution.worker_count to 2 or more, or distribution.parameter_server_count to 0"
        raise InputError(Problem("distribution.worker_count", found, expected, fix))


def refuse_another_launcher(env: RankEnv, distribution: str, found: str) -> None:
    """Raise InputError if another launcher than that of a distribution started several processes."""
    if env.world_size > 1:
        where = f"rank {env.rank} of {env.world_size} (launcher {env.launcher})"
        fix = f"set distribution.type to {distribution}, or start one process"
        raise InputError(Problem(where, found, f"a launch by the {distribution} distribution", fix))


class Sight:
    """Probes of one task. A task listens from its start to its end."""

    def __init__(self, name: str, endpoint: str) -> None:
        self.name, self.endpoint, self.appeared = name, endpoint, False
        self._host, self._port = variables.split_endpoint(endpoint)
        self._since = time.monotonic()

    def missing(self, timeout_seconds: float) -> bool:
        """Probe the task. Return whether it has ended, or has not appeared within timeout_seconds."""
        try:
            socket.create_connection((self._host, self._port or 0), timeout=SILENT_SECONDS / 3).close()
        except ConnectionRefusedError:
            if self.appeared:
                return True
        except OSError:
            pass
        else:
            self.appeared, self._since = True, time.monotonic()
        return time.monotonic() - self._since >= (SILENT_SECONDS if self.appeared else timeout_seconds)

    def lost(self, timeout_seconds: float) -> ConnectionError:
        """Return the error for a task that has ended or has not appeared."""
        reason = "is gone; its own log says why" if self.appeared else f"did not appear within {timeout_seconds:g} s"
        return ConnectionError(f"{self.name} at {self.endpoint} {reason}")


def find_lost(sights: Iterable[Sight], timeout_seconds: float) -> ConnectionError | None:
    """Probe tasks. Return an error with the name of a task that has ended, or has not appeared within timeout_seconds;
    otherwise None."""
    return next((sight.lost(timeout_seconds) for sight in sights if sight.missing(timeout_seconds)), None)


def wait_until_gone(name: str, endpoint: str, timeout_seconds: float, connection: socket.socket | None = None) -> None:
    """Wait for a task's end. Raise ConnectionError if it did not appear within timeout_seconds.

    connection: to the task, which sends nothing. Its end is the task's, also before the task listens
    """
    sight = Sight(name, endpoint)
    while not sight.missing(timeout_seconds):
        if connection is None:
            time.sleep(WATCH_SECONDS)
        elif select.select([connection], [], [], WATCH_SECONDS)[0]:
            return
    if not sight.appeared:
        raise sight.lost(timeout_seconds)
