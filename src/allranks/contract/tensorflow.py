"""The TensorFlow distribution: workers and parameter servers, at most one of each per instance, configured by
TF_CONFIG.

Source: Azure ML's "Distributed GPU training guide", whose example has port 2222 and no chief, so worker 0 is the
chief; and TensorFlow's "Multi-worker training" for the chief, which other launchers name in TF_CONFIG.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from allranks.contract import variables
from allranks.contract.launch import Distribution, Launch, Process, read_instance
from allranks.contract.layout import at_least_one
from allranks.contract.rank_env import RankEnv
from allranks.errors import Problem

PORTS = {"worker": 2222, "ps": 2223}
"""The ports of the tasks. 2222 is documented; 2223, for a parameter server next to a worker, is our choice."""

RANKED_ROLES = ("chief", "worker", "ps")
"""The roles that have ranks, in the order of the ranks."""


@dataclass(frozen=True)
class TensorFlow(Distribution):
    """Settings of TensorFlow: the job's workers (None: one per instance) and parameter servers."""

    type: ClassVar[str] = "tensorflow"
    worker_count: int | None = None
    parameter_server_count: int = 0

    def workers(self, instance_count: int) -> int:
        """Return the number of workers with that number of instances."""
        return instance_count if self.worker_count is None else self.worker_count

    def problems(self, instance_count: int) -> tuple[Problem, ...]:
        """Return the problems of the settings, by key: more workers or parameter servers than instances, or no
        worker."""
        workers = self.workers(instance_count)
        invalid = list(at_least_one({"resources.instance_count": instance_count, "distribution.worker_count": workers}))
        if self.parameter_server_count < 0:
            key = "distribution.parameter_server_count"
            invalid.append(Problem(key, str(self.parameter_server_count), "at least 0", f"set {key} to 0 or more"))
        counts = {"worker_count": workers, "parameter_server_count": self.parameter_server_count}
        for key, count in counts.items():
            if count > instance_count >= 1:
                found = f"{count} on {instance_count} instance{'s' * (instance_count > 1)}"
                expected = f"at most {instance_count}: an instance runs one of them"
                fix = f"set resources.instance_count to {count}, or distribution.{key} to {instance_count}"
                invalid.append(Problem(f"distribution.{key}", found, expected, fix))
        return tuple(invalid)

    def processes(self, instance_count: int) -> tuple[Process, ...]:
        """Return the workers in order, then the parameter servers in theirs. Raise ValueError if `problems` finds
        any."""
        if wrong := self.problems(instance_count):
            raise ValueError("; ".join(f"{problem.where}: {problem.found}" for problem in wrong))
        workers = self.workers(instance_count)
        return (
            *(Process(index, 0, index) for index in range(workers)),
            *(
                Process(workers + index, int(index < workers), index, "ps")
                for index in range(self.parameter_server_count)
            ),
        )

    def environment(self, launch: Launch, process: Process) -> dict[str, str]:
        """Return TF_CONFIG with IP addresses, which need no name resolution. It has no `ps` without parameter
        servers."""
        cluster: dict[str, list[str]] = {}
        for other in self.processes(launch.instance_count):
            port = launch.ports[other.rank] if launch.ports else PORTS[other.role]
            cluster.setdefault(other.role, []).append(f"{launch.addresses[other.instance_rank]}:{port}")
        # A role's tasks are on the first instances in order, so an instance's rank is its task's index.
        task = {"type": process.role, "index": process.instance_rank}
        return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})}


def read(environ: Mapping[str, str]) -> RankEnv | None:
    """Return the rank and layout from TF_CONFIG; None if it is not set or has no cluster, which means a single process.

    Ranks number the chief, then the workers, then the parameter servers. All are part of the world, because each needs
    a number and a log. `role` is the role of the process. The master is the first task of the cluster, at its
    TensorFlow port. Raise InputError if TF_CONFIG is not JSON, or does not list the task among these roles.
    """
    config = _config(environ)
    if config is None:
        return None
    cluster, role, index = config
    position = read_instance(environ)
    tasks = [(name, number) for name in RANKED_ROLES for number in range(len(cluster.get(name, ())))]
    if (role, index) not in tasks:
        listed = ", ".join(f"{name} {number}" for name, number in tasks)
        raise variables.wrong("TF_CONFIG", f"task {role} {index}", f"a task of its cluster: {listed}")
    rank = tasks.index((role, index))
    endpoints = [variables.split_endpoint(cluster[name][number]) for name, number in tasks]
    hosts = [host for host, _ in endpoints]
    distinct = list(dict.fromkeys(hosts))
    instance_rank, instance_count = position or (distinct.index(hosts[rank]), len(distinct))
    return RankEnv(
        rank=rank,
        local_rank=hosts[:rank].count(hosts[rank]),
        world_size=len(tasks),
        local_world_size=hosts.count(hosts[rank]),
        instance_rank=instance_rank,
        instance_count=instance_count,
        master_addr=hosts[0],
        master_port=endpoints[0][1],
        launcher=TensorFlow.type,
        role=role,
    )


def idle_instances(environ: Mapping[str, str]) -> Problem | None:
    """Return the problem of a job with instances without a task in TF_CONFIG; None if each has one, or outside Azure
    ML.

    Raise InputError if TF_CONFIG is not valid.
    """
    config, position = _config(environ), read_instance(environ)
    if config is None or position is None:
        return None
    hosts = list(dict.fromkeys(variables.split_endpoint(task)[0] for tasks in config[0].values() for task in tasks))
    used, declared = len(hosts), position[1]
    if used >= declared:
        return None
    found = f"tasks on {used} of the job's {declared} instances: {', '.join(hosts)}"
    expected = f"a worker or a parameter server on each of the {declared} instances"
    fix = f"set distribution.worker_count to {declared}, or resources.instance_count to {used}"
    return Problem("environment variable TF_CONFIG", found, expected, fix)


def _config(environ: Mapping[str, str]) -> tuple[dict[str, list[str]], str, int] | None:
    """Return the cluster, and this task's role and index."""
    value = variables.text(environ, "TF_CONFIG")
    if value is None:
        return None
    expected = '{"cluster": {"worker": ["host:port", ...]}, "task": {"type": "worker", "index": 0}}'
    try:
        config: Any = json.loads(value)
        cluster = {str(role): [str(host) for host in hosts] for role, hosts in config.get("cluster", {}).items()}
        if not cluster:
            return None
        return cluster, str(config["task"]["type"]), int(config["task"]["index"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        shown = value if len(value) <= 200 else f"{value[:200]}..."
        raise variables.wrong("TF_CONFIG", shown, expected) from error
