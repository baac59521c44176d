"""A distributed job before its processes start, as plain data: its distribution, its instances, its processes, and
the variables that describe the instance of a process."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from allranks.contract import variables
from allranks.contract.layout import Layout, at_least_one
from allranks.contract.variables import MASTER_PORT
from allranks.errors import Problem

BATCH_PORT = 6000
"""The port in AZ_BATCH_MASTER_NODE. Azure Batch uses it itself, so ranks must not connect there."""


@dataclass(frozen=True)
class Process:
    """A process that the platform starts.

    rank:          its number among all processes that the platform starts, from 0
    local_rank:    its number within its instance
    instance_rank: the number of its instance
    role:          "worker", or "ps" under TensorFlow
    """

    rank: int
    local_rank: int
    instance_rank: int
    role: str = "worker"


@dataclass(frozen=True)
class Distribution:
    """The settings of a job's distribution, and what the platform starts with them. Each type is a subclass with its
    own module.

    type: the name of the type in a specification, in lower case
    """

    type: ClassVar[str]

    def problems(self, instance_count: int) -> tuple[Problem, ...]:
        """Return the problems of the settings, by key. By default, those of the counts of instances and of processes
        per instance."""
        counts = {"resources.instance_count": instance_count}
        if (processes := getattr(self, "process_count_per_instance", None)) is not None:
            counts["distribution.process_count_per_instance"] = processes
        return at_least_one(counts)

    def processes(self, instance_count: int) -> tuple[Process, ...]:
        """Return the processes, by rank; by default, equally many per instance. Raise ValueError if a count is below
        1."""
        layout = Layout(instance_count, getattr(self, "process_count_per_instance", 1))
        size = layout.process_count_per_instance
        return tuple(Process(rank, rank % size, rank // size) for rank in range(layout.world_size))

    def environment(self, launch: "Launch", process: Process) -> dict[str, str]:  # noqa: ARG002
        """Return the variables of a process besides those of its instance; by default none."""
        return {}


@dataclass(frozen=True)
class Launch:
    """One distributed job on its instances.

    addresses:   the IP address of each instance; the first is the master
    hostnames:   the name of each instance, as many as addresses
    master_port: a free port on the first instance
    ports:       a port for each process if the instances share their ports; if empty, the documented ports are used

    The constructor raises ValueError without an instance, and if not every address has a hostname.
    """

    distribution: Distribution
    addresses: tuple[str, ...]
    hostnames: tuple[str, ...]
    master_port: int = MASTER_PORT
    ports: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.addresses:
            raise ValueError("a launch needs at least one instance")
        if len(self.addresses) != len(self.hostnames):
            raise ValueError(f"{len(self.addresses)} addresses, but {len(self.hostnames)} hostnames")

    @property
    def instance_count(self) -> int:
        return len(self.addresses)


def instance_environment(launch: Launch, process: Process) -> dict[str, str]:
    """Return the variables of an instance: its number, the number of instances, and Azure Batch's lists if there are
    several.

    Sources: Azure Batch's "compute node environment variables" (AZ_BATCH_*, set only for a job with several instances;
    Lightning#14118), and azureml-assets and azureml-examples (AZUREML_*, AZ_BATCHAI_TASK_INDEX). Components of
    azureml-assets read host_list of AZUREML_CR_DISTRIBUTED_CONFIG: the first host is the master, and a job without the
    variable has one instance. A published pod of Kubernetes compute has the variable; for AmlCompute, no record is
    known.
    """
    values = {
        "AZUREML_NODE_COUNT": str(launch.instance_count),
        "AZUREML_CR_NODE_RANK": str(process.instance_rank),
        "AZUREML_PROCESS_NAME": f"rank_{process.rank}",
        "AZ_BATCHAI_TASK_INDEX": str(process.instance_rank),
    }
    if launch.instance_count > 1:
        values |= {
            "AZ_BATCH_MASTER_NODE": f"{launch.addresses[0]}:{BATCH_PORT}",
            "AZ_BATCH_HOST_LIST": ",".join(launch.addresses),
            "AZ_BATCH_NODE_LIST": ";".join(launch.addresses),
            "AZ_BATCH_IS_CURRENT_NODE_MASTER": "true" if process.instance_rank == 0 else "false",
            "AZUREML_CR_DISTRIBUTED_CONFIG": json.dumps({"host_list": launch.addresses}),
        }
    return values


def read_instance(environ: Mapping[str, str]) -> tuple[int, int] | None:
    """Return the instance's number and the number of instances; None outside Azure ML.

    Raise InputError if only one of them is set, or they contradict each other.
    """
    if not any(variables.text(environ, name) for name in ("AZUREML_NODE_COUNT", "AZUREML_CR_NODE_RANK")):
        return None
    count = variables.integer(environ, "AZUREML_NODE_COUNT", minimum=1)
    return variables.integer(environ, "AZUREML_CR_NODE_RANK", below=count), count
