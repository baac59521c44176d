"""The cluster of TF_CONFIG, as TensorFlow 2's strategies need it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

from allranks.contract import tensorflow, variables
from allranks.contract.detect import detect
from allranks.contract.rank_env import RankEnv
from allranks.errors import InputError, Problem

EVALUATOR = "evaluator"


@dataclass(frozen=True)
class Cluster:
    """The tasks of a training, and which of them this process is.

    tasks:       role -> `host:port` of each task; the roles are chief, worker and ps. An evaluator is in none of them
    role, index: this process's task
    local_count: how many tasks share this process's instance
    """

    tasks: Mapping[str, tuple[str, ...]]
    role: str
    index: int
    local_count: int = 1

    @property
    def parameter_servers(self) -> bool:
        """Whether variables live on servers of their own."""
        return "ps" in self.tasks

    @property
    def chief(self) -> tuple[str, int]:
        """The task that writes what is written once, by role and index: the chief, else worker 0."""
        return ("chief" if "chief" in self.tasks else "worker", 0)

    @property
    def is_chief(self) -> bool:
        """Whether this process is that task."""
        return (self.role, self.index) == self.chief

    @property
    def trainers(self) -> tuple[tuple[str, int], ...]:
        """The tasks that compute gradients, in the order of their ranks: under parameter servers not the chief."""
        roles = ("worker",) if self.parameter_servers else ("chief", "worker")
        return tuple((role, index) for role in roles for index in range(len(self.tasks.get(role, ()))))

    @property
    def others(self) -> tuple[tuple[str, int], ...]:
        """Every task but the chief."""
        tasks = ((role, index) for role, endpoints in self.tasks.items() for index in range(len(endpoints)))
        return tuple(task for task in tasks if task != self.chief)

    def endpoint(self, task: tuple[str, int]) -> str:
        """Return where a task listens, `host:port`."""
        role, index = task
        return self.tasks[role][index]


def read(environ: Mapping[str, str] = os.environ) -> Cluster | None:
    """Return the cluster that TF_CONFIG describes; None where this process trains alone.

    Azure ML lists workers and parameter servers and no chief ("Distributed GPU training guide"), while
    ParameterServerStrategy wants a chief that coordinates and trains nothing: worker 0 becomes it, worker 1 becomes
    worker 0, and so on. A chief that is there already stays.

    Raise InputError if TF_CONFIG cannot be read, where parameter servers would have nobody to serve, and where
    another launcher started several processes, each of which would train alone.
    """
    place = tensorflow.read(environ)
    if place is None:
        _refuse_another_launcher(detect(environ))
        return None
    config = json.loads(environ["TF_CONFIG"])
    listed = {role: tuple(map(str, config["cluster"].get(role) or ())) for role in tensorflow.RANKED_ROLES}
    tasks = {role: endpoints for role, endpoints in listed.items() if endpoints}
    role, index = str(config["task"]["type"]), int(config["task"]["index"])
    _check(tasks)
    if "ps" in tasks and "chief" not in tasks:
        first, *others = tasks.pop("worker")
        tasks = {"chief": (first,), "worker": tuple(others)} | tasks
        if role == "worker":
            role, index = ("worker", index - 1) if index else ("chief", 0)
    if role != EVALUATOR and sum(map(len, tasks.values())) == 1:
        return None
    return Cluster(tasks, role, index, place.local_world_size)


def _check(tasks: Mapping[str, tuple[str, ...]]) -> None:
    chiefs, workers, servers = (len(tasks.get(role, ())) for role in tensorflow.RANKED_ROLES)
    if chiefs > 1:
        raise variables.wrong("TF_CONFIG", f"found {chiefs} chiefs", "one chief at most")
    if not chiefs + workers:
        raise variables.wrong("TF_CONFIG", "found neither a chief nor a worker", "at least one of them")
    if servers and chiefs + workers < 2:
        raise InputError(
            Problem(
                where="distribution.worker_count",
                found=f"1 worker with {servers} parameter server{'s' * (servers > 1)}",
                expected="at least 2 workers: the first one coordinates the others, and trains nothing itself",
                fix="set distribution.worker_count to 2 or more, or distribution.parameter_server_count to 0",
            )
        )


def _refuse_another_launcher(env: RankEnv) -> None:
    if env.world_size > 1:
        raise InputError(
            Problem(
                where=f"rank {env.rank} of {env.world_size} (launcher {env.launcher})",
                found="no TF_CONFIG: every process would train alone",
                expected="a launch by the tensorflow distribution",
                fix="set distribution.type to tensorflow, or start one process",
            )
        )
